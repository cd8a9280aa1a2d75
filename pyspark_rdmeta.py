"""Registers the data source `rdmeta`: Spark imports each top-level module named pyspark_*."""

from rdmeta.spark.source import DefaultSource

__all__ = ["DefaultSource"]

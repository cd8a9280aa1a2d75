"""Spark tables from recorded history: the leaders of each partition over time."""

from __future__ import annotations

from rdmeta.spark.session import NoJavaError, build_session, find_java

__all__ = ["NoJavaError", "build_session", "find_java"]

"""Tables of silver that a test has in memory, as rdmeta.spark.measures() takes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from rdmeta.pipeline.gold.measures import MEASURES
from rdmeta.spark import measures
from rdmeta.spark.silver_frames import ASIDE, Tables
from rdmeta.spark.source.schemas import spark_schema


class GivenTables(Tables):
    """These tables as DataFrames; one that is not there has no rows."""

    def __init__(self, session: SparkSession, silver: Mapping[str, pa.Table]) -> None:
        super(Tables, self).__init__(session)
        self._silver = silver

    def make(self, name: str) -> DataFrame:
        if name == "input_file" and name not in self._silver:
            return self.session.createDataFrame([], ASIDE)
        rows = self._silver.get(name)
        if not rows:  # Spark Connect infers nothing of a table without rows
            return self.session.createDataFrame([], spark_schema(name))
        return self.session.createDataFrame(rows)


def spark_gold(tables: Tables, name: str, **settings: Any) -> list[dict[str, Any]]:
    """Returns the rows of a measure, with exactly the columns of gold."""
    found = getattr(measures(tables, **settings), name).toArrow()
    rows: list[dict[str, Any]] = found.cast(MEASURES[name].schema).to_pylist()
    return rows

"""The measures of gold as DataFrames, by queries of Spark SQL over the tables of silver.

`rdmeta/pipeline/gold/sql/spark` has a query for each measure, and a prelude with the views that
they share. A DataFrame's query has those views that it needs as common table expressions, so
nothing is created in the session.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rdmeta.errors import MissingExtraError

try:
    from pyspark.sql import functions as sf
    from pyspark.sql.pandas.types import from_arrow_type
except ImportError as error:
    raise MissingExtraError.of("rdmeta.spark.measures", "spark") from error

from rdmeta.pipeline.gold.column_comments import COMMENTS
from rdmeta.pipeline.gold.measures import MEASURES, text_of
from rdmeta.pipeline.planning import checked_settings
from rdmeta.pipeline.tables import SCHEMAS
from rdmeta.spark.named_frames import NamedFrames

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from rdmeta.spark.silver_frames import Tables

_VIEW = re.compile(r"CREATE OR REPLACE TEMPORARY VIEW (\w+) AS\n(.*?);\n", re.DOTALL)


class Measures(NamedFrames):
    """The measures of gold, over all clusters and months of the tables."""

    names = tuple(MEASURES)
    coverage_hour: DataFrame
    data_quality: DataFrame
    risk_hour: DataFrame
    incident: DataFrame
    recovery: DataFrame
    churn_day: DataFrame
    isr_flap_day: DataFrame
    balance_hour: DataFrame
    reassignment: DataFrame
    broker_day: DataFrame
    topic_life: DataFrame
    config_change: DataFrame
    controller: DataFrame

    def __init__(self, tables: Tables, settings: dict[str, int | None]) -> None:
        super().__init__(tables.session)
        self._tables, self._settings = tables, settings

    def make(self, name: str) -> DataFrame:
        """Returns a measure with the columns of gold; their comments say what they mean."""
        query, needed = _query_of(name, self._tables.names)
        words = set(re.findall(r"\w+", query))
        for each in needed:
            columns = SCHEMAS[each].names if each in SCHEMAS else []
            self._tables.require_columns(each, [name for name in columns if name in words])
        silver = {each: getattr(self._tables, each) for each in needed}
        rows = self.session.sql(query, args=self._settings, **silver)
        return rows.select(
            [
                sf.col(each.name)
                .cast(from_arrow_type(each.type))
                .alias(each.name, metadata={"comment": COMMENTS[name][each.name]})
                for each in MEASURES[name].schema
            ]
        )


def _query_of(name: str, tables: tuple[str, ...]) -> tuple[str, list[str]]:
    """Returns the query of a measure, in which `{TABLE}` stands for a table, and these tables."""
    views = dict(_VIEW.findall(text_of("prelude", "spark")))
    needed = _named_in(text_of(name, "spark"), {**dict.fromkeys(tables, ""), **views})
    parts = [f"{each} AS (SELECT * FROM {{{each}}})" for each in tables if each in needed]
    parts += [f"{each} AS (\n{text})" for each, text in views.items() if each in needed]
    body = f"SELECT * FROM (\n{text_of(name, 'spark')})"
    return f"WITH {', '.join(parts)}\n{body}", [each for each in tables if each in needed]


def _named_in(text: str, things: dict[str, str]) -> set[str]:
    """Returns the tables and views that a query reads, by itself or by what it reads."""
    found: set[str] = set()
    for each in set(re.findall(r"\b(?:FROM|JOIN)\s+(\w+)", text)) & things.keys():
        found |= {each} | _named_in(things[each], things)
    return found


def measures(tables: Tables, *, min_isr: int | None = None, flap_seconds: int = 600) -> Measures:
    """Returns the 13 measures of gold as DataFrames over these tables.

        gold = rdmeta.spark.measures(rdmeta.spark.tables(spark, "history"), min_isr=2)
        gold.risk_hour.write.saveAsTable("ops.risk_hour")

    The rows are those of `rdmeta pipeline gold`, if the tables have all time: docs/measures.md.
    `min_isr` counts where silver does not know the min ISR. A broker that is back in an ISR after
    at most `flap_seconds` has flapped. Days and hours are in UTC, whatever the session's time zone
    is. Raises ValueError as `rdmeta.pipeline.plan()` does for these settings.
    """
    settings = checked_settings(min_isr, flap_seconds)
    flap_us = settings.flap_seconds * 1_000_000
    return Measures(tables, {"min_isr": settings.min_isr, "flap_us": flap_us})

"""The answers of DuckDB to the report's queries, for one span."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from rdmeta.report.gold_files import HOUR_US, Span
from rdmeta.report.wording import KINDS

if TYPE_CHECKING:
    import duckdb

Row = dict[str, Any]
# Incidents of these kinds are shown; the others are no outages, and are counted.
SHOWN_KINDS = tuple(KINDS)[:5]
GRAVEST = SHOWN_KINDS[:3]
# A name for each file of sql/ but prelude.
QUERIES_COMPARED: Sequence[str] = (
    *(
        "coverage",
        "risk_bins",
        "elections",
        "incident_counts",
        "balance",
        "skew",
        "recoveries",
        "slowest",
    ),
)
QUERIES: Sequence[str] = (
    *QUERIES_COMPARED,
    *("hole_reasons", "quality", "incident_bins", "gravest", "topics", "topic_bins", "brokers"),
    *("reassignments", "topic_changes", "configs", "controllers"),
)


class Facts:
    """What gold tells of a span; `connection` has its measures as tables.

    `names` are what people call the clusters, by id. A cell of a strip has `hours`. `queries` are
    those whose answers are needed.
    """

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        names: Mapping[str, str],
        span: Span,
        hours: int,
        queries: Sequence[str] = QUERIES,
    ) -> None:
        self.span, self.hours = span, hours
        uses = Counter(names.values())
        self.names = {c: f"{n} ({c})" if uses[n] > 1 else n for c, n in names.items()}
        self.answers: dict[str, list[Row]] = {}
        for name, us in (("since", span.begin), ("until", span.end)):
            connection.execute(
                f"SET VARIABLE {name} = TIMESTAMPTZ '1970-01-01 00:00:00+00'"
                f" + to_microseconds({us}::BIGINT)"
            )
        connection.execute(f"SET VARIABLE bin_us = {hours * HOUR_US}::BIGINT")
        kinds = ", ".join(f"'{each}'" for each in SHOWN_KINDS)
        connection.execute(f"SET VARIABLE kinds = [{kinds}]")
        connection.execute(_text("prelude"))
        for name in queries:
            self.answers[name] = connection.sql(_text(name)).to_arrow_table().to_pylist()

    @property
    def bins(self) -> int:
        """The number of cells of a strip."""
        return -(-(self.span.end - self.span.begin) // (self.hours * HOUR_US))

    @cached_property
    def observed(self) -> dict[str, dict[int, int]]:
        """The observed microseconds of each cluster, by bin."""
        found: dict[str, dict[int, int]] = {each: {} for each in self.names}
        for row in self.answers["coverage"]:
            found[row["cluster_id"]][row["bin"]] = row["observed"]
        return found

    def by_cluster(self, name: str) -> dict[str, Row]:
        """Returns the rows of a query that has one for each cluster."""
        return {row["cluster_id"]: row for row in self.answers[name]}


def _text(name: str) -> str:
    return (files(__package__) / "sql" / f"{name}.sql").read_text(encoding="utf-8")

"""The answers of DuckDB to the report's queries, for one span."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import pyarrow as pa

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
    *("coverage", "fleet", "day_bins", "incident_kinds", "balance", "skew", "recoveries"),
    "slowest",
)
QUERIES: Sequence[str] = (
    *QUERIES_COMPARED,
    *("quality", "incident_bins", "gravest", "topics", "topic_bins", "brokers"),
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
        queries: Sequence[str],
    ) -> None:
        self.span, self.hours = span, hours
        uses = Counter(names.values())
        self.names = {c: f"{n} ({c})" if uses[n] > 1 else n for c, n in names.items()}
        pairs = {"cluster_id": [*self.names], "name": [*self.names.values()]}
        connection.register("cluster", pa.table(pairs))
        for name, us in (("since", span.begin), ("until", span.end)):
            connection.execute(
                f"SET VARIABLE {name} = TIMESTAMPTZ '1970-01-01 00:00:00+00'"
                f" + to_microseconds({us}::BIGINT)"
            )
        connection.execute(f"SET VARIABLE bin_us = {hours * HOUR_US}::BIGINT")
        kinds = ", ".join(f"'{each}'" for each in SHOWN_KINDS)
        connection.execute(f"SET VARIABLE kinds = [{kinds}]")
        connection.execute(_text("prelude"))
        self.answers: dict[str, list[Row]] = {
            name: connection.sql(_text(name)).to_arrow_table().to_pylist() for name in queries
        }

    def bins(self, hours: int) -> int:
        """Returns the number of cells of a strip."""
        return -(-(self.span.end - self.span.begin) // (hours * HOUR_US))

    def seen(self, hours: int) -> dict[str, Counter[int]]:
        """Returns the observed microseconds of each cluster, by cells of so many hours."""
        found: dict[str, Counter[int]] = defaultdict(Counter)
        for row in self.answers["coverage"]:
            found[row["cluster_id"]][row["bin"] * self.hours // hours] += row["observed"]
        return found

    def bins_of(self, name: str) -> dict[str, dict[int, Row]]:
        """Returns the rows of a query by cluster and bin."""
        found: dict[str, dict[int, Row]] = defaultdict(dict)
        for row in self.answers[name]:
            found[row["cluster_id"]][row["bin"]] = row
        return found


def _text(name: str) -> str:
    return (files(__package__) / "sql" / f"{name}.sql").read_text(encoding="utf-8")

"""What a read asks for after Spark's filters; no session is needed."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import pytest
from pyspark.sql.datasource import EqualTo, GreaterThan, In

from rdmeta.history.schema import microseconds
from rdmeta.spark.source.row_filter import RowFilter, narrowed

DAY = datetime(2026, 11, 1, tzinfo=timezone.utc)
US = microseconds(DAY)


@pytest.mark.parametrize("kind", [EqualTo, GreaterThan])
def test_a_bound_of_an_end_keeps_the_intervals_that_end_there(kind: Any) -> None:
    # Rows of an interval count from `since` on, but for one that ends at `since`.
    assert narrowed(RowFilter(), "partition_interval", kind(("ended_at",), DAY)).since_us == US - 1
    assert narrowed(RowFilter(), "changes", kind(("observed_at",), DAY)).since_us == US


def test_a_file_has_rows_of_a_time_that_begins_with_its_last_row() -> None:
    limits = RowFilter(since_us=10, until_us=20)
    assert [limits.has(*bounds) for bounds in ((5, 9), (5, 10), (19, 30), (20, 30))] == [
        False,
        True,
        True,
        False,
    ]


@pytest.mark.parametrize(
    ("column", "attribute"), [("cluster_id", "cluster_ids"), ("topic", "topics")]
)
def test_filters_of_names_are_narrowed_by_each_other(column: str, attribute: str) -> None:
    once = narrowed(RowFilter(), "changes", In((column,), ("a", "b")))
    twice = narrowed(once, "changes", In((column,), ("b", "c")))
    assert getattr(twice, attribute) == {"b"}

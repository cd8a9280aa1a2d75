"""What a read asks for after Spark's filters; no session is needed."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest
from pyspark.sql import datasource
from spark_releases import since

from rdmeta._moments import microseconds
from rdmeta.spark.source.row_filter import RowFilter, narrowed

DAY = datetime(2026, 11, 1, tzinfo=timezone.utc)
US = microseconds(DAY)

pytestmark = since("4.1")


@pytest.mark.parametrize("name", ["EqualTo", "GreaterThan"])
def test_a_bound_of_an_end_keeps_the_intervals_that_end_there(name: str) -> None:
    kind = getattr(datasource, name)
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
    once = narrowed(RowFilter(), "changes", datasource.In((column,), ("a", "b")))
    twice = narrowed(once, "changes", datasource.In((column,), ("b", "c")))
    assert getattr(twice, attribute) == {"b"}

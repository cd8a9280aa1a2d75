"""A task takes no rows that are not those of its plan, also without a copy that was checked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from history_files import rewrite
from recorded import cluster_day

from rdmeta import history, pipeline
from rdmeta.pipeline import reading
from rdmeta.pipeline.days import File


def whole(directory: Path, cluster_id: str = "one") -> Path:
    """Writes a recording of one file, which has several versions and times; returns the path."""
    cluster_day(directory, cluster_id, 1)
    history.compact(directory)
    return next(directory.rglob(f"changes-{cluster_id}.*"))


def with_values(table: pa.Table, name: str, values: list[object]) -> pa.Table:
    place = table.schema.get_field_index(name)
    field = table.schema.field(place)
    return table.set_column(place, field, pa.array(values, field.type))


def one_other(table: pa.Table, name: str) -> pa.Table:
    """Returns the rows with another value in the one before the last."""
    values = table[name].to_pylist()
    return with_values(table, name, [*values[:-2], "another", values[-1]])


def swapped(table: pa.Table, name: str) -> pa.Table:
    """Returns the rows with two values in the middle in each other's place."""
    values = table[name].to_pylist()
    low = next(n for n, each in enumerate(values[1:-2], 1) if each < values[n + 1])
    values[low], values[low + 1] = values[low + 1], values[low]
    return with_values(table, name, values)


FAULTS: dict[str, tuple[Callable[[pa.Table], pa.Table], str]] = {
    "no rows": (lambda t: t.slice(0, 0), "first row is not observed_from"),
    "no baseline": (lambda t: t.slice(1), "first row is not observed_from"),
    "reversed rows": (lambda t: t.take(pa.array([0, *range(len(t) - 1, 0, -1)])), "runs backwards"),
    "versions in another order": (lambda t: swapped(t, "version"), "version runs backwards"),
    "times in another order": (lambda t: swapped(t, "observed_at"), "observed_at runs backwards"),
    "another cluster": (lambda t: one_other(t, "cluster_id"), "a row has another cluster_id"),
    "another recording": (lambda t: one_other(t, "session"), "a row has another session"),
    "later versions": (
        lambda t: with_values(t, "version", pc.add(t["version"], 10**6).to_pylist()),
        "its footer says",
    ),
}


@pytest.mark.parametrize("what", FAULTS)
def test_rows_that_are_not_those_of_the_footer_are_set_aside_in_place(
    tmp_path: Path, what: str
) -> None:
    fault, reason = FAULTS[what]
    source, out = tmp_path / "history", tmp_path / "out"
    cluster_day(source, "two", 1)
    bad = whole(source)
    rewrite(bad, fault(pq.read_table(bad, partitioning=None)))
    made = pipeline.run(pipeline.plan([source], out, in_place=True), workers=1)
    reasons = {each.path: each.reason or "" for each in made.plan.quarantined}
    assert reason in reasons[str(bad)]
    rows = [
        row
        for path in out.glob("silver/v1/*/*/*/*.parquet")
        for row in pq.ParquetFile(path).read().to_pylist()
    ]
    assert {row["cluster_id"] for row in rows} == {"two"}


def test_the_order_of_rows_is_compared_from_batch_to_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "_BATCH", 1)
    path = whole(tmp_path)
    table = pq.read_table(path, partitioning=None)
    session = table["session"][0].as_py()
    file = File(str(path.parent), path.name, "", len(table), 0, 10**9, 0, 2**62, None, False)
    assert sum(each.num_rows for each in reading.batches(file, "one", session)) == len(table)
    rewrite(path, swapped(table, "version"))
    with pytest.raises(ValueError, match="version runs backwards"):
        list(reading.batches(file, "one", session))
    with pytest.raises(ValueError, match="it has"):
        list(reading.batches(replace(file, rows=1), "one", session))


def test_rows_without_bounds_are_read_to_compare_them(tmp_path: Path) -> None:
    path = whole(tmp_path)
    table = pq.read_table(path, partitioning=None)
    session = table["session"][0].as_py()
    file = File(str(path.parent), path.name, "", len(table), 0, 10**9, 0, 2**62, None, False)
    pq.write_table(table, path, write_statistics=False)
    assert sum(each.num_rows for each in reading.batches(file, "one", session)) == len(table)
    pq.write_table(one_other(table, "session"), path, write_statistics=False)
    with pytest.raises(ValueError, match="another session"):
        list(reading.batches(file, "one", session))

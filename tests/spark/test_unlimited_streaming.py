"""A stream without limits, as Spark 4.0 and 4.1 have it: they do not say where a batch begins."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyspark
import pytest
from history_files import record

from rdmeta import history
from rdmeta.spark.source.folder_feed import DataLossError
from rdmeta.spark.source.options import Options
from rdmeta.spark.source.unlimited_streaming import UnlimitedReader
from rdmeta.spark.spark_versions import OldSparkError, require_spark


def reader_of(root: Path, **given: str) -> UnlimitedReader:
    return UnlimitedReader(Options.parse({"path": str(root), **given}))


def told(offset: dict[str, Any]) -> dict[str, Any]:
    """Returns an offset as it comes from a checkpoint."""
    found: dict[str, Any] = json.loads(json.dumps(offset))
    return found


def rows(reader: UnlimitedReader, start: dict[str, Any], end: dict[str, Any]) -> list[str]:
    tasks = reader.partitions(told(start), told(end))
    return [repr(row) for task in tasks for each in reader.read(task) for row in each.to_pylist()]


def test_each_row_comes_once_also_after_a_restart(tmp_path: Path) -> None:
    reader = reader_of(tmp_path)
    record(tmp_path, "one", changes=3)
    first = reader.latestOffset()  # Spark asks for the end before the begin
    begin = reader.initialOffset()
    found = rows(reader, begin, first)
    assert reader.latestOffset() == first
    record(tmp_path, "two")
    history.compact(tmp_path)
    second = reader.latestOffset()
    again = reader_of(tmp_path)  # of a process that died before the batch
    assert rows(again, first, second) == rows(reader, first, second)
    found += rows(again, first, second)
    assert again.latestOffset() == second
    assert reader_of(tmp_path).latestOffset() == second
    assert sorted(found) == sorted(map(repr, history.read(tmp_path).to_pylist()))


def test_latest_begins_with_a_batch_without_rows(tmp_path: Path) -> None:
    record(tmp_path, "one", changes=3)
    given = {"startingOffsets": "latest"}
    reader = reader_of(tmp_path, **given)
    first = reader.latestOffset()
    assert rows(reader, reader.initialOffset(), first) == []
    record(tmp_path, "two")
    late = reader_of(tmp_path, **given)
    assert rows(late, late.initialOffset(), first) == []
    wanted = history.read(tmp_path).num_rows - sum(p["rows"] for p in positions(first))
    assert len(rows(late, first, late.latestOffset())) == wanted


def positions(offset: dict[str, Any]) -> list[dict[str, Any]]:
    found = offset["recordings"].values()
    return [position for sessions in found for position in sessions.values()]


def test_rows_that_are_gone_are_an_error_after_a_restart_as_well(tmp_path: Path) -> None:
    paths = record(tmp_path, "one", changes=3)
    reader = reader_of(tmp_path)
    first = reader.latestOffset()
    for position in positions(first):
        position["ended"] = False  # it went on when the batch was made
    for path in paths:
        path.unlink()
    again = reader_of(tmp_path)
    with pytest.raises(DataLossError, match="it is gone"):
        again.partitions(first, again.latestOffset())


@pytest.mark.parametrize(
    "given", [{"maxFilesPerTrigger": "1"}, {"maxRowsPerTrigger": "1"}, {"failOnDataLoss": "false"}]
)
def test_options_that_need_a_later_spark_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: dict[str, str]
) -> None:
    monkeypatch.setattr(pyspark, "__version__", "4.1.4")
    with pytest.raises(OldSparkError, match="needs Spark 4.2 or later, and this is 4.1.4"):
        reader_of(tmp_path, **given)
    require_spark("4.1", "nothing")

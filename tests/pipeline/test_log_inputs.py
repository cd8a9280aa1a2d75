"""What a segment holds is the same whether its batches are passed over in C or one by one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from kraft_days import LogOfDays
from kraft_logs import GOLDEN

from rdmeta.pipeline import log_inputs
from rdmeta.pipeline.inputs import Input
from rdmeta.pipeline.log_inputs import digest_between, look_at_logs, parts_of
from rdmeta.pipeline.store import Store


def looked_at(source: Path) -> list[Input]:
    folders, bad = log_inputs.log_folders(Store(str(source)))
    assert bad == []
    look_at_logs(folders, {}, {})
    return [row for folder in folders for row in folder.rows]


def no_step(data: bytes, at: int, end: int, *_: Any) -> tuple[int, int, int, int, int]:
    return at, end, 0, 0, 0


@pytest.fixture
def source(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    if request.param == "days":
        LogOfDays(3).write(tmp_path / "in", 1, cuts=(20,), snapshots=(30, 41))
        return tmp_path / "in"
    return GOLDEN / str(request.param)


@pytest.mark.parametrize("source", ["days", "4.3.0", "4.3.0-diverged"], indirect=True)
def test_segments_are_indexed_alike(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = looked_at(source)
    monkeypatch.setattr(log_inputs, "kraft_summed", no_step)
    assert looked_at(source) == found
    assert any(parts_of(row) for row in found)


@pytest.mark.parametrize("begin", range(14, 20))
def test_the_digest_of_offsets_is_that_of_their_batches(
    begin: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    LogOfDays(2).write(tmp_path, 1)
    (row,) = looked_at(tmp_path)
    found = [digest_between(row, begin, end) for end in range(begin, 30)]
    assert len({*found}) == 30 - begin
    assert digest_between(row, 0, row.to_offset or 0) == log_inputs.sum_of(
        int(part.digest, 16) for part in parts_of(row)
    )
    monkeypatch.setattr(log_inputs, "kraft_summed", no_step)
    assert [digest_between(row, begin, end) for end in range(begin, 30)] == found

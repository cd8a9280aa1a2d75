"""Tables of real logs have the offsets, times and states that DumpLogSegments prints."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from dumped_log import Dump
from kraft_logs import GOLDEN, LOGS, Made

from rdmeta import pipeline


@pytest.mark.parametrize("log", LOGS, ids=lambda log: str(log.name))
def test_rows_are_those_that_kafkas_tool_prints(log: Made, tmp_path: Path) -> None:
    pipeline.run(pipeline.plan([GOLDEN / log.name], tmp_path), workers=1)
    dumped = Dump(gzip.decompress((GOLDEN / log.name / "dump.txt.gz").read_bytes()).decode())
    assert dumped.check_offsets(tmp_path) > 150
    assert dumped.check_snapshots(tmp_path) > 5

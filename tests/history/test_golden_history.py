"""Files that earlier versions of the recorder wrote are read, with the rows that they held."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from rdmeta.history import changes, recordings
from rdmeta.model import Change

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "history-1"


@pytest.fixture
def golden(tmp_path: Path) -> Path:
    """Returns a copy of the files, as a reader writes its index beside them."""
    return Path(shutil.copytree(GOLDEN, tmp_path / "history"))


def told(row: Change) -> dict[str, Any]:
    """Returns a row as rows.json has it: without nulls, with times and lists as JSON has them."""
    fields = row._asdict() | {"observed_at": row.observed_at.isoformat()}
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in fields.items()
        if value is not None
    }


def test_files_of_format_1_give_the_rows_that_their_recorder_wrote(golden: Path) -> None:
    wanted = json.loads((GOLDEN / "rows.json").read_text(encoding="utf-8"))
    assert [told(row) for row in changes(golden)] == wanted


def test_files_of_format_1_give_the_recordings_of_their_recorder(golden: Path) -> None:
    assert [len(found.files) for found in recordings(golden)] == [5, 3, 3]
    ends = [row.kind == "observed_to" for row in changes(golden)].count(True)
    resyncs = [row.detail for row in changes(golden) if row.kind == "resync"]
    assert (ends, resyncs) == (2, ["no observation for 95.0 s"])

"""A compaction of the input changes no table, also when the pipeline has read the input before."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from history_maker import Plan, make_history
from recorded import cluster_day

from rdmeta import history, pipeline


def made(source: Path, out: Path, in_place: bool) -> tuple[pipeline.Made, dict[str, pa.Table]]:
    """Makes the tables; returns what the run says, and the tables by their files' names."""
    done = pipeline.run(pipeline.plan([source], out, in_place=in_place), workers=1)
    assert pipeline.check(out) == []
    silver = out / "silver"
    tables = {
        str(path.relative_to(out)): pq.read_table(path) for path in silver.rglob("part-*.parquet")
    }
    return done, tables


@pytest.mark.slow
@pytest.mark.parametrize("in_place", [False, True])
def test_a_compaction_changes_no_table(tmp_path: Path, in_place: bool) -> None:
    source = tmp_path / "history"
    # This recording has two files, and the first one has the name of what they become.
    cluster_day(source, "small", 1, (1,))
    make_history(source, 1, Plan(days=2, changes=200, gaps=1, recorders=2, file_every=2e4))
    _, before = made(source, tmp_path / "out", in_place)
    count = len(history.files(source))
    assert len(history.compact(source)) > 3
    assert len(history.files(source)) < count
    done, after = made(source, tmp_path / "out", in_place)
    assert {each.state for each in done.plan.files} <= {"good", "copied", "duplicate", "gone"}
    _, fresh = made(source, tmp_path / "new", in_place)
    assert before == after == fresh
    assert before

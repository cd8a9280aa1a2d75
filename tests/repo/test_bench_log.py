"""The bench of metadata logs writes a log that is whole, and times both ways on it. No speeds."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import build
from bench.log import to_arrow
from rdmeta import KraftLog


@pytest.mark.slow
def test_the_log_has_its_partitions_and_changes(tmp_path: Path) -> None:
    build.c_benches()
    to_arrow.write_log(str(tmp_path), 200, 500)
    log = KraftLog(tmp_path, cluster_id="bench")
    state = log.state()
    rows = list(state.partitions())
    assert (len(state.topics), len(rows), len(state.brokers)) == (20, 200, 9)
    assert sum(row.partition_epoch for row in rows) == 500
    changed = len(list(log.records(types=["partition_change"])))
    assert (changed, log.end) == (500, 500 + 200 + 20 + 9)
    assert not state.partial


@pytest.mark.slow
def test_changes_of_a_log_and_of_an_image_are_timed() -> None:
    build.c_benches()
    found = to_arrow.measure(100, 2)
    assert {name: len(samples) for name, samples in found.items()} == {"log": 2, "image": 2}

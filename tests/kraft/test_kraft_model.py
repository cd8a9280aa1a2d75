"""The naive replay agrees with Kafka's own snapshots.

tests/core/test_kraft.py compares it with the replay in C, over random logs that have each trap.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from kraft_logs import GOLDEN, LOG
from kraft_model import Model
from kraft_records import batches

# This node loaded a topic's creation and its removal at once, when it was started again. Kafka
# 4.3.0 then keeps the topic's configuration, and writes it to its next snapshot.
RESTARTED, KEPT = GOLDEN / "4.3.0-dynamic/n2", ("CONFIG_RECORD", 2, "gone", "retention.ms")
WHOLE = [path.parent for path in sorted(GOLDEN.glob(f"*/n*/{LOG}/{0:020d}.log"))]
SNAPSHOTS = [path for folder in WHOLE for path in sorted(folder.glob("*.checkpoint"))]


@pytest.mark.parametrize("file", SNAPSHOTS, ids=lambda file: str(file.relative_to(GOLDEN)))
def test_a_replay_equals_kafkas_snapshot(file: Path) -> None:
    end = int(file.name[:20])
    replayed, loaded = Model(), Model()
    log = next(file.parent.glob("*.log"))
    for batch in batches(log.read_bytes()):
        if batch.last < end:
            replayed.apply(batch)
    assert replayed.next == end
    loaded.load(batches(file.read_bytes()), end)
    ours, theirs = replayed.shown(), loaded.shown()
    kept = theirs["facts"].keys() - ours["facts"].keys()
    assert kept <= ({KEPT} if file.parent.parent == RESTARTED else set())
    for key in kept:
        del theirs["facts"][key]
    assert ours == theirs
    assert replayed.partitions or end < 40

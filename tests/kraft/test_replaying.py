"""A replay of files begins at the right place, ends at the right one, and says what is bad."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from kraft_cluster import NOTHING, Cluster, model_of, random_node, replayed
from kraft_logs import GOLDEN, LOGS, Made
from kraft_model import Model
from kraft_records import batches

from rdmeta.generate.logs import Log, snapshot_name
from rdmeta.kraft import KraftError, NodeLog, replaying, scanning
from rdmeta.kraft.log_files import find_nodes
from rdmeta.kraft.proving import looked_at
from rdmeta.kraft.replaying import offset_at
from rdmeta.kraft.scanning import batch_heads, next_batch


@pytest.mark.parametrize("seed", range(4))
def test_each_offset_of_a_log_has_its_state_whatever_the_pieces(tmp_path: Path, seed: int) -> None:
    log, made = random_node(tmp_path, seed)
    assert len(log.used) == 3
    assert len(model_of(replayed(log).replay).partitions) > 3
    for end in random.Random(seed).sample(sorted(made.states), 12):
        found = replayed(log, end, piece=random.Random(end).choice([62, 1000, 1 << 20]))
        assert model_of(found.replay).shown() == made.states[end].shown()
        assert found.replay.info()["next"] == end
        nearest = [each.end for each in log.used if each.end <= end]
        assert (found.began.end if found.began else 0) == (nearest[-1] if nearest else 0)


def test_a_log_whose_begin_is_gone_is_replayed_from_its_snapshot(tmp_path: Path) -> None:
    log, made = random_node(tmp_path, 9, cut=1)
    assert log.scan.start > 0
    for end in [each for each in made.states if each >= log.scan.start][:5]:
        assert model_of(replayed(log, end).replay).shown() == made.states[end].shown()
    with pytest.raises(KraftError, match="no state at offset"):
        replayed(log, log.scan.start - 1)


@pytest.mark.parametrize("made", LOGS, ids=lambda made: str(made.name))
def test_real_logs_have_the_state_of_the_model_at_their_end(made: Made) -> None:
    for files in find_nodes([GOLDEN / made.name]):
        log, model = looked_at(files), Model()
        for segment in files.segments:
            for batch in batches(segment.path.read_bytes()):
                model.apply(batch)
        found = replayed(log)
        assert found.began is not None
        ours, theirs = model_of(found.replay).shown(), model.shown()
        for what in ("topics", "partitions", "brokers"):
            assert ours[what] == theirs[what]


def test_a_time_is_before_the_first_batch_that_is_later(tmp_path: Path) -> None:
    log = Log()
    log.lead(1, 1)
    for time_ms in (5000, 9000, 4000, 12_000):
        log.time_ms = time_ms
        log.append(NOTHING)
    (tmp_path / log.name).write_bytes(bytes(log.data))
    node = looked_at(find_nodes([tmp_path])[0])
    assert offset_at(node, 0) == 0
    begun = log.ends[0][2]
    later = Log()
    for time_ms in (5000, 9000, 4000, 12_000):
        later.time_ms = time_ms
        later.append(NOTHING)
    (tmp_path / log.name).write_bytes(bytes(later.data))
    node = looked_at(find_nodes([tmp_path])[0])
    assert begun > 12_000
    wanted = {4_999_999: 0, 5_000_000: 1, 8_999_999: 1, 9_000_000: 3, 12_000_000: 4}
    assert {us: offset_at(node, us) for us in wanted} == wanted


def test_a_torn_end_is_the_end(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, 2)
    for cut, end in ((0, 3), (1, 2), (100, 1)):
        data = cluster.logs[1].data
        cluster.logs[2].data = data[: len(data) - cut]
        (log,) = cluster.looked_at(2)
        assert replayed(log).replay.info()["next"] == end


def damaged(cluster: Cluster, batch: int, place: int) -> NodeLog:
    """Returns a log of which a byte of one batch is another one."""
    for _ in range(3):
        cluster.append(1)
    log = cluster.logs[1]
    log.data[log.ends[batch - 1][0] + place] ^= 1
    (found,) = cluster.looked_at(1)
    return found


def test_a_corrupt_batch_is_an_error_with_its_place_or_passed_over(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, 0)
    log = damaged(cluster, 2, 70)
    byte = cluster.logs[1].ends[1][0]
    for piece in (62, 1 << 20):
        with pytest.raises(KraftError, match=rf"\.log, byte {byte}, offset 2: ") as raised:
            replayed(log, piece=piece)
        assert (raised.value.byte, raised.value.offset) == (byte, 2)
        found = replayed(log, skip=True, piece=piece)
        assert len(found.skipped) == 1
        assert f"byte {byte}, offset 2" in found.skipped[0]
        assert (found.replay.info()["next"], found.replay.info()["partial"]) == (4, True)


@pytest.mark.parametrize("has_next", [True, False])
def test_behind_a_damaged_head_each_byte_is_looked_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_next: bool
) -> None:
    log = Log()
    log.lead(1, 1)
    (head, end), longer = (len(log.data), log.end), b"\2\3" * 30_000
    log.append(NOTHING)
    behind = log.data[head:]
    log.data[head:] = b"\xff" * len(behind) + longer
    # A begin of a batch that is none, and one that is.
    log.data += behind[:65] + b"\7" * 2000 + behind * has_next
    (tmp_path / log.name).write_bytes(bytes(log.data))
    node = looked_at(find_nodes([tmp_path])[0], skip=True)
    sizes: list[int] = []

    def sought(held: bytes, *place: Any) -> tuple[int, bool]:
        sizes.append(len(held))
        return next_batch(held, *place)

    for module in (scanning, replaying):
        monkeypatch.setattr(module, "next_batch", sought)
    faults: list[str] = []
    lost: list[str] = []
    path = tmp_path / log.name
    heads = [each.last for each in batch_heads(path, faults, 1000, lost)]
    assert (heads, len(lost)) == ([end - 1, *[end] * has_next], not has_next)
    found = replayed(node, skip=True, piece=1000)
    assert found.replay.info()["next"] == end + has_next
    for _ in found.steps(end + 9):  # to the end of the file
        pass
    assert len(found.skipped) == 1
    assert max(sizes) < 2200
    assert sum(sizes) < 4 * len(log.data)


def test_a_record_that_contradicts_the_state_is_an_error(tmp_path: Path) -> None:
    log = Log()
    log.lead(1, 1)
    log.append(("FENCE_BROKER_RECORD", 0, {"id": 1, "epoch": 5}))
    (tmp_path / log.name).write_bytes(bytes(log.data))
    node = looked_at(find_nodes([tmp_path])[0])
    with pytest.raises(KraftError, match=r"byte 106, offset 1: ") as raised:
        replayed(node)
    assert "broker" in str(raised.value)
    assert replayed(node, skip=True).replay.info()["skipped"] == 1


def test_a_snapshot_that_shrank_since_the_look_is_an_error(tmp_path: Path) -> None:
    log, made = random_node(tmp_path, 2)
    last = log.used[-1]
    assert last.path.name == snapshot_name(last.end, last.epoch)
    last.path.write_bytes(last.path.read_bytes()[:-1])
    with pytest.raises(KraftError, match="the snapshot is cut short"):
        replayed(log)
    found = model_of(replayed(looked_at(log.files)).replay)
    assert found.shown() == made.states[log.scan.end].shown()


def test_options_reach_the_replay(tmp_path: Path) -> None:
    log, _ = random_node(tmp_path, 1)
    changes = replayed(log, log.scan.end, session="s", cluster_id="c").replay.changes().read()
    assert {(change.session, change.cluster_id) for change in changes} <= {("s", "c")}
    early = replayed(log, sorted(each.end for each in log.used)[0] - 1, session="s")
    assert "controller_changed" in {change.kind for change in early.replay.changes().read()}

"""What is proven: by snapshots that belong to the log, and by copies of a majority of voters."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from kraft_cluster import NOTHING, Cluster
from kraft_logs import GOLDEN, LOG, LOGS, Made

from rdmeta.generate.logs import Log, uuid_text
from rdmeta.kraft import KraftError
from rdmeta.kraft.log_files import find_nodes
from rdmeta.kraft.proving import looked_at, proof_of, restart_of


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    return Cluster(tmp_path, 1)


# ---- majorities -----------------------------------------------------------


def test_what_a_majority_holds_is_proven(cluster: Cluster) -> None:
    cluster.append(1, 2)
    cluster.append(1)
    assert proof_of(cluster.looked_at()).end == 3
    assert proof_of(cluster.looked_at(1, 2)) == (3, "the copies of nodes 1, 2, of 3 voters")
    assert proof_of(cluster.looked_at(1, 3)).end == 2
    assert proof_of(cluster.looked_at(1)) == (0, "nothing")


def test_the_tail_that_never_was_is_not_proven(cluster: Cluster) -> None:
    """A leader appends alone; the others elect another one and go on."""
    cluster.append(1)
    cluster.append(1)
    cluster.lead(2, 3, 2, 3)
    cluster.append(2, 3)
    assert proof_of(cluster.looked_at()).end == 4
    assert proof_of(cluster.looked_at(1, 2)) == (0, "nothing")  # epoch 2 is known, by one


def test_a_quorum_state_that_knows_a_higher_epoch_takes_its_copy_out(cluster: Cluster) -> None:
    cluster.noted[1] = 2
    assert proof_of(cluster.looked_at(1, 2)).end == 0
    assert proof_of(cluster.looked_at()).end == 2  # the two others are a majority
    cluster.noted[2] = 2
    assert proof_of(cluster.looked_at()).end == 0


def test_a_copy_without_its_quorum_state_counts_for_no_majority(cluster: Cluster) -> None:
    cluster.noted[1] = None
    assert proof_of(cluster.looked_at(1, 2)).end == 0
    assert proof_of(cluster.looked_at(2, 3)).end == 2


def test_two_copies_of_one_node_are_one(cluster: Cluster, tmp_path: Path) -> None:
    cluster.looked_at()
    shutil.copytree(tmp_path / "n1", tmp_path / "n1-copy")
    found = find_nodes([tmp_path / "n1", tmp_path / "n1-copy"])
    assert proof_of([looked_at(each) for each in found]).end == 0


def test_an_observer_is_no_voter(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, voters=(1, 2, 4))
    cluster.lead(1, 1)
    cluster.append()
    assert proof_of(cluster.looked_at(1, 3)).end == 0
    assert proof_of(cluster.looked_at()).end == 2


def test_voters_are_those_of_the_last_record_that_names_them(cluster: Cluster) -> None:
    """With their directories: a voter that lost its disk is another one."""
    voters = [
        {
            "voterId": node,
            "voterDirectoryId": uuid_text(node if node != 2 else 22),
            "endpoints": [{"name": "CONTROLLER", "host": "h", "port": 1}],
            "kRaftVersionFeature": {"minSupportedVersion": 0, "maxSupportedVersion": 1},
        }
        for node in (1, 2, 3)
    ]
    for log in cluster.logs.values():
        log.control(("KRAFT_VOTERS", {"version": 0, "voters": voters}))
    assert proof_of(cluster.looked_at(1, 2)).end == 0
    assert proof_of(cluster.looked_at(1, 3)).end == 3


@pytest.mark.parametrize("made", LOGS, ids=lambda made: str(made.name))
def test_real_logs_are_proven_to_their_end_by_two_copies(made: Made) -> None:
    logs = [looked_at(each) for each in find_nodes([GOLDEN / made.name])]
    assert [(log.files.faults, log.scan.faults) for log in logs] == [((), [])] * 3
    assert proof_of(logs).end == min(log.scan.end for log in logs)
    assert proof_of(logs[:2]).end == logs[0].scan.end
    assert proof_of(logs[:1]).end == logs[0].used[-1].end < logs[0].scan.end


# ---- snapshots ------------------------------------------------------------


def test_a_snapshot_that_belongs_proves_its_log_up_to_its_end(cluster: Cluster) -> None:
    path = cluster.snapshot(1, 2, 1, cluster.logs[1].ends[1][2])
    cluster.append()
    assert proof_of(cluster.looked_at(1)) == (2, f"the snapshot {path.name}")
    assert proof_of(cluster.looked_at(1, 2)).end == 3


def test_each_real_snapshot_belongs_to_its_log_and_to_no_other(tmp_path: Path) -> None:
    logs = {each.directory: looked_at(each) for each in find_nodes([GOLDEN / "4.3.0"])}
    logs |= {each.directory: looked_at(each) for each in find_nodes([GOLDEN / "3.9.1"])}
    for directory, log in logs.items():
        assert [each.why_not for each in log.snapshots] == [None] * len(log.snapshots)
        for other in logs:
            if directory.parts[-3] != other.parts[-3]:
                foreign = logs[other].files._replace(segments=log.files.segments)
                assert looked_at(foreign).used == []


@pytest.mark.parametrize(
    ("end", "epoch", "later_ms", "cut", "why"),
    [
        (3, 1, 0, 0, "it ends at 3, where no batch of the log ends"),
        (2, 2, 0, 0, "it is of another log: its last batch has epoch 2"),
        (2, 1, -1, 0, "it is of another log"),
        (2, 1, 10_000, 0, "it is of another log"),
        (2, 1, 0, 1, "it is cut short"),
        (2, 1, 0, 90, "it is cut short"),
        (2, 1, 0, 10_000, "it is cut short"),
    ],
)
def test_a_snapshot_that_does_not_belong_is_named_and_not_used(
    cluster: Cluster, end: int, epoch: int, later_ms: int, cut: int, why: str
) -> None:
    cluster.logs[1].append(NOTHING, NOTHING)
    cluster.snapshot(1, end, epoch, cluster.logs[1].ends[1][2] + later_ms, cut)
    (log,) = cluster.looked_at(1)
    assert log.used == []
    assert why in (log.snapshots[0].why_not or "")
    assert proof_of([log]).end == 0


def test_a_leader_notes_in_a_snapshot_when_it_appended_the_batch(cluster: Cluster) -> None:
    cluster.snapshot(1, 2, 1, cluster.logs[1].ends[1][2] + 47)
    assert proof_of(cluster.looked_at(1)).end == 2


def test_a_snapshot_that_ends_with_another_control_record_is_cut_short(cluster: Cluster) -> None:
    path = cluster.snapshot(1, 2, 1, cluster.logs[1].ends[1][2])
    cut = Log(0, 1)
    for _ in range(2):
        header = {"version": 0, "lastContainedLogTimestamp": cluster.logs[1].ends[1][2]}
        cut.control(("SNAPSHOT_HEADER", header))
    path.write_bytes(bytes(cut.data))
    (log,) = cluster.looked_at(1)
    assert "it is cut short" in (log.snapshots[0].why_not or "")


def test_the_next_older_snapshot_is_used(cluster: Cluster) -> None:
    cluster.snapshot(1, 2, 1, cluster.logs[1].ends[1][2])
    cluster.append()
    cluster.snapshot(1, 3, 1, 0)
    cluster.append()
    damaged = cluster.snapshot(1, 4, 1, cluster.logs[1].ends[-1][2])
    data = bytearray(damaged.read_bytes())
    data[-1] ^= 1
    damaged.write_bytes(bytes(data))
    (log,) = cluster.looked_at(1)
    assert [each.why_not is None for each in log.snapshots] == [True, False, False]
    assert "its CRC is wrong" in (log.snapshots[-1].why_not or "")
    assert proof_of([log]).end == 2


# ---- where a replay begins -------------------------------------------------


def test_a_replay_begins_at_the_nearest_snapshot_before(cluster: Cluster) -> None:
    for _ in range(4):
        cluster.append()
    for end in (2, 4):
        cluster.snapshot(1, end, 1, cluster.logs[1].ends[end - 1][2])
    (log,) = cluster.looked_at(1)
    begins = [restart_of(log, at) for at in range(7)]
    assert [each.end if each else 0 for each in begins] == [0, 0, 2, 2, 4, 4, 4]


def test_a_log_that_begins_above_0_needs_a_snapshot(cluster: Cluster) -> None:
    cluster.logs[1] = Log(20, 3)
    cluster.append(1)
    cluster.append(1)
    (log,) = cluster.looked_at(1)
    said = r"no state at offset 21 can be made: .* offsets 20 to 21 \(2023-11-14 22:13:20\.000 to"
    with pytest.raises(KraftError, match=said) as raised:
        restart_of(log, 21)
    assert "no snapshot can be used" in str(raised.value)
    cluster.snapshot(1, 20, 2, 7)
    (log,) = cluster.looked_at(1)
    begin = restart_of(log, 21)
    assert begin is not None
    assert begin.end == 20
    with pytest.raises(KraftError, match="snapshots end at 20"):
        restart_of(log, 19)


def test_a_gap_leaves_what_lies_before_it_and_behind_a_snapshot(
    cluster: Cluster, tmp_path: Path
) -> None:
    later = Log(10, 1, cluster.logs[1].time_ms)
    for _ in range(3):
        later.append(NOTHING)
    cluster.snapshot(1, 12, 1, later.ends[1][2])
    (tmp_path / "n1" / LOG / later.name).write_bytes(bytes(later.data))
    (log,) = cluster.looked_at(1)
    assert [run[:2] for run in log.scan.runs] == [(0, 2), (10, 13)]
    assert restart_of(log, 2) is None
    begin = restart_of(log, 13)
    assert begin is not None
    assert begin.end == 12
    with pytest.raises(KraftError, match="offsets 0 to 1 .*, 10 to 12"):
        restart_of(log, 11)

"""Copies of a log are compared by Raft's rule, and each node's notes with its log."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from kraft_cluster import NOTHING, Cluster, replayed
from kraft_logs import DIVERGED, GOLDEN, LOG, LOGS, Made

from rdmeta.generate.logs import Log
from rdmeta.kraft import NodeLog
from rdmeta.kraft.comparing import findings_of
from rdmeta.kraft.log_files import find_nodes
from rdmeta.kraft.proving import looked_at, proof_of


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    return Cluster(tmp_path, 3)


def said(logs: list[NodeLog]) -> list[str]:
    """Returns the findings as text, without paths; a serious one begins with a "!"."""
    return [
        f"{'!' * finding.is_serious}{finding.text}".replace(str(logs[0].files.directory), "1")
        .replace(str(logs[-1].files.directory), "N")
        for finding in findings_of(logs)
    ]  # fmt: skip


@pytest.mark.parametrize("made", LOGS, ids=lambda made: str(made.name))
def test_nothing_is_odd_about_real_logs(made: Made) -> None:
    assert findings_of([looked_at(each) for each in find_nodes([GOLDEN / made.name])]) == []


def test_the_tail_that_never_was_is_found_in_real_logs() -> None:
    """Its leader appended it while the others were paused, and was killed."""
    logs = [looked_at(each) for each in find_nodes([GOLDEN / DIVERGED.name])]
    (finding,) = findings_of(logs)
    assert not finding.is_serious
    (tail,) = re.findall(r"offsets (\d+) to (\d+) of epoch \d+ never committed", finding.text)
    begin, end = map(int, tail)
    stale = next(log for log in logs if f"node {log.files.node} " in finding.text.split(":")[0])
    assert (stale.scan.end, proof_of([stale]).end) == (end + 1, 0)
    others = [log for log in logs if log is not stale]
    assert proof_of(logs).end == min(log.scan.end for log in others) > begin
    lost, kept = (
        {name: id for name, id, *_ in replayed(log).replay.topics()} for log in (stale, others[0])
    )
    assert lost["orders"] == kept["orders"]
    assert lost["never"] != kept.get("never")  # a client that asks again makes another one
    assert "after" not in lost


def test_a_copy_may_be_behind(cluster: Cluster) -> None:
    cluster.append(1, 2)
    cluster.append(1)
    assert said(cluster.looked_at()) == []


def test_a_tail_that_never_committed_is_shown_once_and_is_harmless(cluster: Cluster) -> None:
    cluster.append(1)
    cluster.append(1)
    cluster.lead(2, 3, 2, 3)
    cluster.append(2, 3)
    (finding,) = findings_of(cluster.looked_at())
    assert not finding.is_serious
    assert "n1" in finding.text
    assert "offsets 4 to 5 of epoch 1 never committed: in node 2" in finding.text
    assert finding.text.endswith("epoch 2 has offset 4")


def test_a_snapshot_of_a_tail_that_never_committed_is_serious(cluster: Cluster) -> None:
    cluster.append(1)
    cluster.append(1)
    cluster.snapshot(1, 5, 1, cluster.logs[1].ends[4][2])
    cluster.lead(2, 3, 2, 3)
    (finding,) = findings_of(cluster.looked_at())
    assert finding.is_serious
    assert finding.text.endswith("; but its snapshot says that they did")


def test_other_bytes_before_a_common_record_are_serious(cluster: Cluster) -> None:
    cluster.append()
    begin, end = cluster.logs[2].ends[1][0], cluster.logs[2].ends[2][0]
    log = Log(2, 1, cluster.logs[2].ends[2][2] + 1)
    log.append(NOTHING)
    cluster.logs[2].data[begin:end] = log.data  # the same size, another time
    found = said(cluster.looked_at(1, 2))
    assert found == [
        "!node 1 (1) and node 2 (N) both have offset 4 of epoch 1, and differ before it:"
        " first the record at offset 2 (NO_OP_RECORD)"
    ]
    assert said(cluster.looked_at(1, 3)) == []


def test_a_copy_that_lacks_an_epoch_before_a_common_one_contradicts(cluster: Cluster) -> None:
    cluster.lead(2, 2, 1)
    cluster.append(1)
    cluster.append(2)
    for _ in (1, 2):
        cluster.lead(3, 3, 1, 2)
    (serious,) = said(cluster.looked_at(1, 2))
    assert "both have offset 6 of epoch 3" in serious
    assert "first the record at offset 4 (LEADER_CHANGE and NO_OP_RECORD)" in serious


def test_two_leaders_of_one_epoch_are_serious(cluster: Cluster) -> None:
    cluster.lead(2, 2, 1, 2)
    cluster.lead(2, 3, 3)
    found = said(cluster.looked_at())
    assert found[0] == (
        "!epoch 2 has two leaders: 2 by node 1 (1), and 3 by node 3 (N) at offset 4"
    )
    assert len(found) == 3  # and the copies differ


def test_copies_that_do_not_overlap_are_not_compared(cluster: Cluster) -> None:
    cluster.logs[3] = Log(50, 1)
    cluster.append(3)
    cluster.looked_at()
    cluster.snapshot(3, 50, 1, 7)
    assert said(cluster.looked_at()) == []


# ---- what a node notes --------------------------------------------------------------------------


def noted(cluster: Cluster, text: str) -> list[str]:
    """Returns the findings of node 1 with this leader-epoch-checkpoint."""
    cluster.looked_at()
    (cluster.directory / "n1" / LOG / "leader-epoch-checkpoint").write_text(text)
    return said(cluster.looked_at(1))


def test_epochs_begin_where_the_node_noted_it(cluster: Cluster) -> None:
    cluster.lead(3, 2)
    assert noted(cluster, "0\n2\n1 0\n3 4\n") == []
    assert noted(cluster, "0\n3\n1 0\n3 4\n4 5\n") == []  # behind the log's end: no record yet
    (serious,) = noted(cluster, "0\n2\n1 0\n3 2\n")
    assert serious == (
        "!node 1 (1): leader-epoch-checkpoint says that epochs begin at 2 (epoch 3),"
        " and in the log they begin at 4 (epoch 3)"
    )
    assert len(noted(cluster, "0\n1\n1 0\n")) == 1
    assert noted(cluster, "0\n2\n1 2\n3 4\n") == []  # deleted up to 2, with the segment to come
    assert noted(cluster, "0\n1\n3 5\n") == []


def test_a_log_with_a_higher_epoch_than_its_node_knew_is_serious(cluster: Cluster) -> None:
    cluster.lead(3, 2)
    cluster.noted[1] = 2
    (serious,) = said(cluster.looked_at(1))
    assert serious.startswith("!node 1 (1): quorum-state knows epoch 2, and the log has")


def test_what_is_missing_or_cut_off_is_named(cluster: Cluster, tmp_path: Path) -> None:
    cluster.looked_at()
    later = Log(10, 1, 5)
    later.append(NOTHING)
    (tmp_path / "n1" / LOG / later.name).write_bytes(bytes(later.data[:-1]))
    cluster.snapshot(1, 3, 9, 0)
    found = said(cluster.looked_at(1))
    assert ["cut off at the end" in found[0], found[0][0]] == [True, "1"]
    assert "is not used: it is of another log" in found[1]
    (tmp_path / "n1" / LOG / later.name).write_bytes(bytes(later.data))
    found = said(cluster.looked_at(1))
    assert "!node 1 (1): offsets 4 to 9 are missing" in found
    (tmp_path / "n1" / LOG / f"{0:020d}.log").rename(tmp_path / "away")
    begun = [looked_at(each) for each in find_nodes([tmp_path / "n1"])]
    assert "!node 1 (1): no snapshot covers what was before offset 10" in said(begun)

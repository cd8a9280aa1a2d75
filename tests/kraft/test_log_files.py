"""Metadata logs are found at any of their paths, with what their nodes note beside them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from kraft_logs import GOLDEN, LOG

from rdmeta.errors import ArgumentError
from rdmeta.kraft import KraftError
from rdmeta.kraft.log_files import QuorumState, find_nodes

CLUSTER = GOLDEN / "4.3.0"


@pytest.fixture
def node(tmp_path: Path) -> Path:
    """Returns the directory of one node."""
    return Path(shutil.copytree(CLUSTER / "n2", tmp_path / "n2"))


@pytest.mark.parametrize(
    "paths",
    [
        [CLUSTER],
        [CLUSTER / "n1", CLUSTER / "n2", CLUSTER / "n3"],
        [CLUSTER / "n1" / LOG, CLUSTER / "n2" / LOG, CLUSTER / "n3"],
        [CLUSTER / f"n{n}" / LOG / f"{0:020d}.log" for n in (1, 2, 3)],
        [CLUSTER, CLUSTER / "n1"],
    ],
    ids=["one for all", "their parents", "mixed", "files", "one twice"],
)
def test_the_logs_of_nodes_are_found(paths: list[Path]) -> None:
    assert [(node.node, len(node.segments)) for node in find_nodes(paths)] == [
        (1, 1),
        (2, 1),
        (3, 1),
    ]


def test_a_directory_of_copies_under_other_names_is_found(tmp_path: Path) -> None:
    for n in (1, 2):
        shutil.copytree(CLUSTER / f"n{n}" / LOG, tmp_path / f"controller-{n}")
    found = find_nodes([tmp_path])
    assert [node.directory.name for node in found] == ["controller-1", "controller-2"]
    assert [node.node for node in found] == [None, None]


def test_only_the_files_that_were_named_are_read(node: Path) -> None:
    (found,) = find_nodes([next((node / LOG).glob("*.checkpoint"))])
    assert (len(found.segments), len(found.snapshots)) == (0, 1)
    assert found.node == 2


def test_what_a_node_notes_is_read() -> None:
    first = find_nodes([CLUSTER / "n1"])[0]
    assert first.quorum is not None
    assert first.quorum.voters == (1, 2, 3)
    assert first.epochs is not None
    assert first.epochs[-1][0] == first.quorum.epoch
    assert len(first.cluster_id or "") == len(first.directory_id or "") == 22
    assert first.faults == ()
    dynamic = find_nodes([GOLDEN / "4.3.0-dynamic/n1"])[0]
    assert dynamic.quorum == QuorumState(5, 1, None, None)


def test_unfinished_deleted_and_bootstrap_snapshots_are_passed_over(node: Path) -> None:
    (whole,) = find_nodes([node])
    name = whole.snapshots[0].path.name
    for other in (
        f"{name}.part",
        f"{name}.deleted",
        f"{0:020d}-{0:010d}.checkpoint",
        "bootstrap.checkpoint",
        f"{0:020d}.index",
    ):
        (node / LOG / other).write_bytes(b"x")
    assert find_nodes([node]) == [whole]


@pytest.mark.parametrize(
    ("file", "text"),
    [
        (f"{LOG}/quorum-state", "{"),
        (f"{LOG}/quorum-state", '{"leaderId":1,"data_version":0}'),
        (f"{LOG}/quorum-state", '{"leaderId":1,"leaderEpoch":1,"votedId":1,"data_version":9}'),
        (f"{LOG}/leader-epoch-checkpoint", "0\n2\n1 0\n"),
        (f"{LOG}/leader-epoch-checkpoint", "0\n1\nx 0\n"),
        (f"{LOG}/leader-epoch-checkpoint", ""),
    ],
)
def test_a_note_that_cannot_be_read_is_a_fault_and_counts_as_missing(
    node: Path, file: str, text: str
) -> None:
    (node / file).write_text(text)
    (found,) = find_nodes([node])
    (fault,) = found.faults
    assert str(node / file) in fault
    assert None in (found.quorum, found.epochs)


def test_a_node_without_its_notes_has_none(node: Path) -> None:
    for name in ("quorum-state", "leader-epoch-checkpoint", "../meta.properties"):
        (node / LOG / name).unlink()
    (found,) = find_nodes([node])
    assert (found.quorum, found.epochs, found.node, found.cluster_id) == (None,) * 4
    assert found.faults == ()


def test_another_topics_log_is_named_as_that(tmp_path: Path) -> None:
    other = tmp_path / "orders-3"
    other.mkdir()
    (other / f"{0:020d}.log").write_bytes(b"")
    (other / "partition.metadata").write_text("version: 0\ntopic_id: 2Zulo9SfRqCL_flC2Mt-wQ")
    for path in (other, tmp_path):
        with pytest.raises(KraftError, match=r"orders-3: the log of topic 'orders', partition 3"):
            find_nodes([path])
    (other / "partition.metadata").write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ")
    assert len(find_nodes([other])) == 1


def test_what_is_no_log_is_said_to_be_none(tmp_path: Path) -> None:
    (tmp_path / "a.txt").touch()
    with pytest.raises(KraftError, match="no metadata log is here; give the directory"):
        find_nodes([tmp_path])
    with pytest.raises(KraftError, match=r"a\.txt: no segment"):
        find_nodes([tmp_path / "a.txt"])
    with pytest.raises(FileNotFoundError, match="gone"):
        find_nodes(str(tmp_path / "gone"))
    with pytest.raises(ArgumentError, match="no path"):
        find_nodes([])


def test_two_clusters_in_one_call_are_refused() -> None:
    with pytest.raises(KraftError, match=r"the logs are of 2 clusters: .*4\.3\.0.*3\.9\.1"):
        find_nodes([CLUSTER, GOLDEN / "3.9.1"])


def test_logs_need_no_pyarrow_but_tables_and_recordings_do() -> None:
    code = f"""
import sys; sys.modules["pyarrow"] = None
import rdmeta
log = rdmeta.KraftLog({str(CLUSTER)!r})
log.state().topics, log.changes().records, list(log.records())
from rdmeta.kraft import *
asks = (
    lambda: log.state().to_arrow("topics"),
    lambda: log.records().to_arrow(),
    lambda: rdmeta.kraft.record,
)
for ask in asks:
    try:
        ask()
    except rdmeta.MissingExtraError as error:
        assert "arrow" in str(error), error
    else:
        sys.exit("it needs no pyarrow")
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)

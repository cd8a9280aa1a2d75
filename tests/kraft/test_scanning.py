"""The heads of batches are read whatever the pieces, and what is odd is named with its place."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from kraft_logs import GOLDEN, LOG
from kraft_records import batches

from rdmeta.generate.logs import Given, Log
from rdmeta.kraft import KraftError
from rdmeta.kraft.log_files import NodeFiles, find_nodes
from rdmeta.kraft.scanning import LogScan, batch_heads, pieces, scan_log

NOTHING: Given = ("NO_OP_RECORD", 0, {})


def a_log(count: int = 4) -> Log:
    """Returns a log of an election and then batches of two records."""
    log = Log()
    log.lead(1, 2)
    for _ in range(count):
        log.append(NOTHING, NOTHING)
    return log


def node(directory: Path, *logs: Log) -> NodeFiles:
    """Writes logs as segments; returns the node's files."""
    directory.mkdir(exist_ok=True)
    for log in logs:
        (directory / log.name).write_bytes(bytes(log.data))
    return find_nodes([directory])[0]


def scanned(path: Path, size: int = 1 << 20) -> tuple[list[int], list[str]]:
    """Returns the last offset of each batch of a file, and the faults."""
    faults: list[str] = []
    return [head.last for head in batch_heads(path, faults, size)], faults


@pytest.mark.parametrize("size", [1, 7, 61, 62, 100, 1 << 20])
def test_pieces_of_any_size_give_the_same_heads(tmp_path: Path, size: int) -> None:
    path = tmp_path / "log"
    path.write_bytes(bytes(a_log().data))
    assert scanned(path, size) == ([0, 2, 4, 6, 8], [])
    assert b"".join(piece for _, piece in pieces(path, size)) == path.read_bytes()


def test_the_heads_of_a_real_log_are_those_of_the_model() -> None:
    for made in ("4.3.0", "4.3.0-dynamic", "3.9.1"):
        path = GOLDEN / made / "n1" / LOG / f"{0:020d}.log"
        found = list(batch_heads(path, []))
        assert [
            (h.at, h.at + h.size, h.base, h.last, h.epoch, h.time_ms, h.is_control, h.records)
            for h in found
        ] == [(*batch[:-1], len(batch.records)) for batch in batches(path.read_bytes())]


def test_each_prefix_of_a_log_is_a_log(tmp_path: Path) -> None:
    log, path = a_log(1), tmp_path / "log"
    ends = {0: -1} | {end: offset - 1 for end, offset, _, _ in log.ends}
    for size in range(len(log.data) + 1):
        path.write_bytes(bytes(log.data[:size]))
        found, faults = scanned(path)
        whole = max(end for end in ends if end <= size)
        assert (found[-1] if found else -1) == ends[whole]
        assert len(faults) == (size not in ends)
        if faults:
            assert f"byte {whole}: " in faults[0]
            assert f"at the end, {size - whole} bytes" in faults[0]


def test_zeros_at_the_end_are_a_fault(tmp_path: Path) -> None:
    path = tmp_path / "log"
    data = bytes(a_log(1).data)
    for zeros in (5, 61, 3_000_000):
        path.write_bytes(data + bytes(zeros))
        found, (fault,) = scanned(path)
        assert found == [0, 2]
        assert f"zeros at the end, {zeros} bytes, behind offset 2" in fault
    path.write_bytes(data + bytes(100) + b"x")
    with pytest.raises(KraftError, match=f"byte {len(data)}: zeros, and bytes behind them"):
        scanned(path)


@pytest.mark.parametrize(
    ("place", "value", "said"),
    [
        (16, b"\0", "message format 0"),
        (16, b"\1", "message format 1"),
        (16, b"\3", "no record batch"),
        (8, b"\0\0\0\1", "no record batch"),
        (8, b"\x01\x00\x00\x01", "no record batch"),
        (8, b"\xff\xff\xff\xff", "no record batch"),
        (21, b"\0\1", "a compressed batch"),
        (23, b"\xff\xff\xff\xff", "no record batch"),
        (0, b"\0" * 8, "offset 0 follows offset 0"),
        (0, b"\xff" * 8, "no record batch"),
        (0, b"\x7f" + b"\xff" * 7, "no record batch"),
    ],
)
def test_a_damaged_head_is_an_error_with_its_place(
    tmp_path: Path, place: int, value: bytes, said: str
) -> None:
    log, path = a_log(), tmp_path / "log"
    second = log.ends[0][0]
    log.data[second + place : second + place + len(value)] = value
    path.write_bytes(bytes(log.data))
    with pytest.raises(KraftError, match=f"byte {second}, offset 1: {said}") as raised:
        scanned(path)
    assert (raised.value.file, raised.value.byte, raised.value.offset) == (path, second, 1)


def test_a_scan_has_the_runs_the_epochs_and_the_ends(tmp_path: Path) -> None:
    first = a_log(2)
    second = Log(first.end, 1, first.time_ms)
    second.append(NOTHING)
    second.lead(4, 3)
    second.append(NOTHING)
    scan = scan_log(node(tmp_path, first, second), [3, 5, 6, 99])
    ((start, end, begin_ms, end_ms),) = scan.runs
    assert (start, end, end_ms - begin_ms) == (0, 8, 5000)
    assert [span[:3] for span in scan.epochs] == [(1, 0, 5), (4, 6, 7)]
    assert {end: epoch for end, (epoch, *_) in scan.ends.items()} == {3: 1, 5: 1, 6: 1}
    assert [head.base for _, head in scan.control] == [0, 6]
    assert (scan.start, scan.end, scan.faults, scan.clocks_back) == (0, 8, [], 0)


def test_an_empty_log_has_no_run(tmp_path: Path) -> None:
    scan = scan_log(node(tmp_path, Log()))
    assert scan == LogScan(faults=[f"{tmp_path / Log().name} is empty"])
    assert (scan.start, scan.end) == (0, 0)


def test_a_missing_segment_makes_two_runs(tmp_path: Path) -> None:
    first, later = a_log(1), Log(10, 1)
    later.append(NOTHING)
    assert [run[:2] for run in scan_log(node(tmp_path, first, later)).runs] == [(0, 3), (10, 11)]


def test_a_clock_that_goes_back_is_counted(tmp_path: Path) -> None:
    log = a_log(1)
    latest = log.time_ms - 1000
    log.time_ms -= 60_000
    log.append(NOTHING)
    scan = scan_log(node(tmp_path, log))
    assert (scan.clocks_back, scan.runs[0].last_ms) == (1, latest)


def _epoch_back(first: Log, second: Log) -> None:
    first.lead(3, 1)
    second.base = second.end = first.end
    second.append(NOTHING)


def _offset_back(first: Log, second: Log) -> None:
    second.base = second.end = 2
    second.append(NOTHING)


def _other_name(first: Log, second: Log) -> None:
    second.end = first.end
    second.append(NOTHING)
    second.base = first.end + 5


def _torn(first: Log, second: Log) -> None:
    second.base = second.end = first.end
    second.append(NOTHING)
    del first.data[-3:]


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (_epoch_back, "offset 6: epoch 1 follows epoch 3"),
        (_offset_back, "offset 2: offset 2 follows offset 4"),
        (_other_name, "its name says 10, and it has offset 5"),
        (_torn, "it is not the newest segment"),
    ],
)
def test_segments_that_do_not_follow_each_other_are_errors(
    tmp_path: Path, spoil: Callable[[Log, Log], None], said: str
) -> None:
    first, second = a_log(2), Log()
    spoil(first, second)
    with pytest.raises(KraftError, match=said):
        scan_log(node(tmp_path, first, second))


def test_a_segment_that_went_is_passed_over_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = a_log(1), Log(3, 1)
    second.append(NOTHING)
    files = node(tmp_path, first, second)
    (tmp_path / first.name).unlink()  # as a node does that deletes what is old
    assert [run[:2] for run in scan_log(files).runs] == [(3, 4)]

    def gone(path: Path, flags: int) -> int:
        raise FileNotFoundError(2, "gone", str(path))

    monkeypatch.setattr(os, "open", gone)
    with pytest.raises(KraftError, match=r"0003\.log: the file went"):
        scan_log(files)

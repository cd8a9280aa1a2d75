"""A compaction makes one file of a recording that has ended; readers see the same rows."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from fake_cache import FakeCache, FakeClock
from history_files import record, rewrite

from rdmeta.history import HistoryError, Recorder, compact, files, look, read, recordings, verify

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "history-1"

# Kills itself before or after the Nth call of a function of os.
KILLED = """
import os, signal, sys
from rdmeta.history import compact

directory, name, nth, when = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
real, calls = getattr(os, name), 0

def stopped(*args, **kwargs):
    global calls
    calls += 1
    if calls == nth and when == "before":
        os.kill(os.getpid(), signal.SIGKILL)
    result = real(*args, **kwargs)
    if calls == nth and when == "after":
        os.kill(os.getpid(), signal.SIGKILL)
    return result

setattr(os, name, stopped)
compact(directory)
"""


def test_the_new_file_is_on_the_disk_before_the_old_ones_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = record(tmp_path, changes=3)
    seen: list[tuple[str, str]] = []
    fsync, replace, unlink = os.fsync, os.replace, Path.unlink

    def synced(descriptor: int) -> None:
        seen.append(("sync", os.readlink(f"/proc/self/fd/{descriptor}")))
        fsync(descriptor)

    def replaced(source: Path, target: Path) -> None:
        seen.append(("rename", str(source)))
        replace(source, target)

    def unlinked(path: Path, missing_ok: bool = False) -> None:
        seen.append(("remove", str(path)))
        unlink(path, missing_ok)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", replaced)
    monkeypatch.setattr(Path, "unlink", unlinked)
    compact(tmp_path)
    begin = next(n for n, (what, _) in enumerate(seen) if what == "sync" and "tmp" in seen[n][1])
    temporary, folder = seen[begin][1], str(old[0].parent)
    wanted = [("sync", temporary), ("rename", temporary), ("sync", folder)]
    removed = sorted(("remove", str(path)) for path in old)
    assert seen[begin : begin + 3] == wanted
    assert sorted(seen[begin + 3 : begin + 3 + len(old)]) == removed
    assert seen[begin + 3 + len(old)] == ("sync", folder)


def test_a_recording_that_has_ended_becomes_one_file(tmp_path: Path) -> None:
    old = record(tmp_path, changes=4)
    rows, (before,) = read(tmp_path), recordings(tmp_path)
    (new,) = compact(tmp_path)
    (after,) = recordings(tmp_path)
    assert [file.path for file in after.files] == [new]
    assert read(tmp_path).equals(rows)
    assert sorted(new.parent.iterdir()) == [new]
    assert new.parent == old[0].parent
    assert after._replace(files=()) == before._replace(files=())
    assert (after.ended_by, after.continues) == (before.ended_by, before.continues)
    assert after.files[0].compacted == len(before.files)
    assert verify(new).file.rows == len(rows)


def test_a_second_compaction_does_nothing(tmp_path: Path) -> None:
    record(tmp_path)
    (new,) = compact(tmp_path)
    before = new.stat()
    assert compact(tmp_path) == []
    after = new.stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_a_recording_of_a_first_and_a_last_file_becomes_one_file(tmp_path: Path) -> None:
    first, _ = record(tmp_path, changes=0)
    rows = read(tmp_path)
    assert compact(tmp_path) == [first]
    assert read(tmp_path).equals(rows)
    assert files(tmp_path)[0].compacted == 2


def test_a_recording_that_goes_on_stays_as_it_is(tmp_path: Path) -> None:
    clock = FakeClock()
    cache = FakeCache(clock, "cluster-A")
    cache.add_broker(1)
    cache.add_topic("orders", None, [1])
    recorder = Recorder(cache, tmp_path, clock=clock)
    for leader in (2, 3, 1):
        recorder.observe()
        recorder.flush()
        cache.set_leader("orders", 0, leader)
        clock.pass_seconds(1)
    assert len(files(tmp_path)) == 3
    assert compact(tmp_path) == []
    recorder.close()
    assert len(compact(tmp_path)) == 1
    assert len(files(tmp_path)) == 1


def test_recordings_of_format_1_become_one_file_if_a_row_ends_them(tmp_path: Path) -> None:
    directory = Path(shutil.copytree(GOLDEN, tmp_path / "old"))
    rows = read(directory)
    assert len(compact(directory)) == 2
    assert sorted(len(each.files) for each in recordings(directory)) in ([1, 1, 3], [1, 1, 5])
    assert read(directory).equals(rows)


def test_a_recording_with_a_fault_stays_as_it_is(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    missing, damaged, good = (record(tmp_path, name) for name in "ABC")
    missing[1].unlink()
    rewrite(damaged[1], pq.ParquetFile(damaged[1]).read().slice(0, 0), name="x")
    content = bytearray(damaged[0].read_bytes())
    content[4:600] = bytes(596)
    damaged[0].write_bytes(content)
    made = compact(tmp_path)
    assert [path.parent for path in made] == [good[0].parent]
    assert damaged[0].name in caplog.text
    assert all(path.exists() for path in (missing[0], missing[2], *damaged))


def test_columns_of_a_later_version_are_not_lost(tmp_path: Path) -> None:
    path = record(tmp_path)[0]
    table = pq.read_table(path)
    rewrite(path, table.append_column("new", table["version"]))
    assert compact(tmp_path) == []
    assert "new" in pq.read_schema(path).names


def test_a_second_compaction_at_once_is_refused(tmp_path: Path) -> None:
    descriptor = os.open(tmp_path, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        with pytest.raises(HistoryError, match="another compaction is at work"):
            compact(tmp_path)
    finally:
        os.close(descriptor)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "when", "changes"),
    [
        ("fsync", "before", 2),
        ("replace", "before", 2),
        ("replace", "after", 2),
        ("replace", "after", 0),
        ("unlink", "after", 2),
    ],
)
def test_a_compaction_that_is_killed_harms_no_reader(
    tmp_path: Path, name: str, when: str, changes: int
) -> None:
    record(tmp_path, changes=changes)
    rows = read(tmp_path)
    for nth in range(1, 9):
        directory = Path(shutil.copytree(tmp_path, tmp_path.parent / f"{tmp_path.name}-{nth}"))
        words = [sys.executable, "-c", KILLED, str(directory), name, str(nth), when]
        code = subprocess.run(words, check=False, timeout=300).returncode
        assert read(directory).equals(rows)
        if code == 0:
            assert nth > 1
            break
        assert code == -signal.SIGKILL
        compact(directory)
        (found,) = files(directory)
        assert read(directory).equals(rows)
        assert sorted(found.path.parent.iterdir()) == [found.path]
        shutil.rmtree(directory)
    else:
        pytest.fail("the compaction calls that function more often than is tested")


@pytest.mark.slow
def test_a_reader_at_the_same_time_sees_all_rows_once(tmp_path: Path) -> None:
    for name in "ABCDEFGH":
        record(tmp_path, name, changes=6)
    rows = read(tmp_path)
    worker = threading.Thread(target=compact, args=(tmp_path,))
    worker.start()
    while worker.is_alive():
        assert read(tmp_path).equals(rows)
    worker.join()
    assert len(look(tmp_path).files) == 8

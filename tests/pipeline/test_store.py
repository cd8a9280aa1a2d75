"""A file comes into a store whole, or not at all."""

from __future__ import annotations

import errno
import os
import pickle
import resource
import signal
from collections.abc import Iterator
from pathlib import Path
from threading import Event
from typing import NoReturn

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import fs

from rdmeta._atomic import is_leftover
from rdmeta.pipeline.errors import PipelineError
from rdmeta.pipeline.store import Store, StoredFile, contacted, is_asking


@pytest.fixture
def small_files() -> Iterator[None]:
    """Lets this process write files of 64 kB at most, as on a disk that is full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (65_536, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)
    signal.signal(signal.SIGXFSZ, ignored)


def test_a_file_has_its_name_when_it_is_whole(tmp_path: Path) -> None:
    store = Store(tmp_path / "out")
    with store.draft("a/b.parquet") as draft:
        draft.path.write_bytes(b"whole")
        assert is_leftover(draft.path.name)
        assert not draft.path.name.endswith(".parquet")
        assert store.read("a/b.parquet") is None
        draft.commit()
    assert store.read("a/b.parquet") == b"whole"
    assert [entry.name for entry in store.files()] == ["a/b.parquet"]


def test_a_file_is_synced_before_it_has_its_name_and_its_folder_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = []
    fsync, replace = os.fsync, os.replace

    def synced(descriptor: int) -> None:
        events.append(os.readlink(f"/proc/self/fd/{descriptor}"))
        fsync(descriptor)

    def replaced(source: Path, target: Path) -> None:
        events.append(f"{target} <- {source}")
        replace(source, target)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", replaced)
    Store(tmp_path).put("x.json", b"{}")
    temporary = events[0]
    assert events == [temporary, f"{tmp_path}/x.json <- {temporary}", str(tmp_path)]


@pytest.mark.usefixtures("small_files")
def test_a_file_that_does_not_fit_leaves_the_old_one_and_nothing_else(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.put("x", b"old")
    with pytest.raises(OSError, match="too large") as caught:
        store.put("x", b"." * 100_000)
    assert caught.value.errno == errno.EFBIG
    assert store.read("x") == b"old"
    assert [entry.name for entry in store.files()] == ["x"]


def test_a_store_lists_files_by_their_path_in_it(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.put("b/1", b"1")
    store.put("a", b"22")
    found = list(store.files())
    assert [(entry.name, entry.size) for entry in found] == [("a", 2), ("b/1", 1)]
    assert list(store.files("b")) == [StoredFile("b/1", 1, (tmp_path / "b/1").stat().st_mtime_ns)]
    assert list(store.files("c")) == []
    store.remove("a")
    store.remove("a")
    assert store.read("a") is None


def test_a_folder_that_cannot_be_read_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def denied(path: str) -> NoReturn:
        raise PermissionError(errno.EACCES, "Permission denied", path)

    monkeypatch.setattr(os, "scandir", denied)
    with pytest.raises(PermissionError):
        list(Store(tmp_path).files())


def test_a_uri_of_this_machine_is_a_path(tmp_path: Path) -> None:
    store = Store(f"file://{tmp_path}/x")
    assert store.is_local
    assert store.path("a") == f"{tmp_path}/x/a"
    assert pickle.loads(pickle.dumps(store)).path("a") == store.path("a")


def test_an_empty_name_is_no_folder() -> None:
    with pytest.raises(PipelineError, match="the name of a folder is empty"):
        Store("")


def test_a_uri_that_pyarrow_does_not_know_is_an_error() -> None:
    with pytest.raises(PipelineError, match="^nowhere://x: "):
        Store("nowhere://x")


def test_files_behind_links_are_found_and_pipes_and_loops_are_not(tmp_path: Path) -> None:
    other = tmp_path / "other"
    Store(other).put("a.parquet", b"a")
    store = Store(tmp_path / "in")
    store.put("b.parquet", b"b")
    (tmp_path / "in/day").symlink_to(other)
    (other / "loop").symlink_to(tmp_path / "in")
    (other / "self").symlink_to("self")
    (other / "nothing").symlink_to("nowhere")
    os.mkfifo(other / "pipe")
    assert [entry.name for entry in store.files()] == ["b.parquet", "day/a.parquet"]


def test_a_name_that_is_no_text_is_shown_as_far_as_it_is(tmp_path: Path) -> None:
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/a\xff.parquet")).write_bytes(b"")
    assert [entry.name for entry in Store(tmp_path).files()] == ["a\ufffd.parquet"]


def test_an_unknown_scheme_is_refused_and_those_of_hadoop_are_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for where in ("dbfs:/x", "foo://x"):
        with pytest.raises(PipelineError, match="scheme .* is unknown; known are file, s3, s3a"):
            Store(where)
    with pytest.raises(PipelineError, match="s3a://: it names no bucket; write s3a://BUCKET/PATH"):
        Store("s3a://")
    for scheme in ("s3a", "s3n", "s3"):
        store = Store(f"{scheme}://bucket/folder?region=eu-west-1")
        assert store.path("a") == "bucket/folder/a"
        assert not store.is_local
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(PipelineError, match="lib(jvm|hdfs).*; hdfs needs Java"):
        Store("hdfs://host/x")


def test_a_store_without_an_answer_ends_the_wait_and_so_does_a_signal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    where, never = "gs://bucket/folder", Event()
    monkeypatch.setattr(Store, "_info", lambda store, path: never.wait())
    with pytest.raises(PipelineError, match="did not answer within 0.1 s: check the network"):
        contacted(where, 0.1)
    assert is_asking()

    def interrupted(store: Store, path: str) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        never.wait()

    monkeypatch.setattr(Store, "_info", interrupted)
    with pytest.raises(KeyboardInterrupt):
        contacted(where, 60)
    never.set()

    def refused(store: Store, path: str) -> None:
        raise pa.ArrowException("no token\nfrom any of these")

    monkeypatch.setattr(Store, "_info", refused)
    with pytest.raises(PipelineError, match="the store cannot be asked: no token$"):
        contacted(where, 60)


def test_what_fails_in_a_store_is_told_from_damage_by_the_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path)
    pq.write_table(pa.table({"n": [1, 2]}), tmp_path / "whole")
    (tmp_path / "cut").write_bytes((tmp_path / "whole").read_bytes()[:-9])
    unnumbered = OSError("somewhere something failed")
    assert store.is_failing("whole", OSError(errno.EIO, "the disk"))
    assert not store.is_failing("whole", unnumbered)
    monkeypatch.setattr(store, "_store", fs.LocalFileSystem())
    assert store.is_failing("whole", unnumbered)
    assert not store.is_failing("whole", ValueError("a row is wrong"))
    assert not store.is_failing("cut", unnumbered)
    assert not store.is_failing("gone", unnumbered)

    def fail(name: str) -> NoReturn:
        raise OSError("still")

    monkeypatch.setattr(store, "read", fail)
    assert store.is_failing("cut", unnumbered)

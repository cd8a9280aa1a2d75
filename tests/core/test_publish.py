"""Publishing: real processes feed and read a file, and are killed and restarted."""

from __future__ import annotations

import math
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import answers
import feeder
import pytest
from answers import apply_topics
from clocks import Clock
from waiting import until

from rdmeta import ForkedError, Image, MetadataCache, Publisher, Reading, attach

READERS = 8


@contextmanager
def fed(path: Path, topics: int, period: float, *more: object) -> Iterator[subprocess.Popen[str]]:
    """Yields a feeder that has published; kills it at the end."""
    command = [sys.executable, feeder.__file__, path, topics, period, *more]
    process = subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        process.session = process.stdout.readline().strip()  # type: ignore[attr-defined]
        yield process
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def generation_of(reading: Reading) -> tuple[int, float]:
    """Returns the generation of a reading, and the time at which the feeder made it."""
    generation, stamp = (reading.brokers[0].rack or "0 0").split()
    return int(generation), float(stamp)


def check(image: Image) -> int:
    """Checks that all topics have the values of one generation; returns that generation."""
    generation, _ = generation_of(image)
    for topic in image.topics(allow_stale=True):
        for p in topic.partitions:
            assert p.leader_epoch == generation
            assert p.leader == feeder.leader(topic.name, p.partition, generation)
    return generation


def read(path: str, seconds: float, ready: Any, results: Any) -> None:
    """Runs a reader process: puts (versions, seconds until it saw each generation), or an error."""
    try:
        attached = attach(path)
        ready.wait(50)  # so that no reader's start delays another reader
        end, versions, lags = time.monotonic() + seconds, [0], {0: 0.0}
        while time.monotonic() < end:
            partition = attached.partition("topic-00000", 1)  # an ordinary lookup
            assert partition.leader_epoch is not None
            assert partition.leader_epoch >= max(lags)
            assert partition.leader == feeder.leader("topic-00000", 1, partition.leader_epoch)
            if partition.leader_epoch not in lags:
                now, (generation, stamp) = time.monotonic(), generation_of(attached)
                assert generation >= partition.leader_epoch  # this was read later
                if generation == partition.leader_epoch:
                    lags[generation] = now - stamp
                version = attached.version
                assert version >= versions[-1]
                versions.append(version)
                check(attached.image())
            time.sleep(0.003)
        results.put((versions, lags))
    except BaseException as error:
        results.put(repr(error))
        raise


def lags_of_eight(method: str, path: Path) -> list[float]:
    """Returns the seconds until each of eight readers saw each generation, in ascending order.

    A generation that a reader never saw counts as infinity. So do the generations that are missing
    if a reader saw fewer than five.
    """
    context: Any = multiprocessing.get_context(method)
    results, ready, seconds = context.Queue(), context.Barrier(READERS), 3.0
    with fed(path, 20, 0.15):
        arguments = (str(path), seconds, ready, results)
        readers = [context.Process(target=read, args=arguments) for _ in range(READERS)]
        for reader in readers:
            reader.start()
        found = [results.get(timeout=50) for _ in readers]
        for reader in readers:
            reader.join()
    assert not [each for each in found if isinstance(each, str)]
    lags: list[float] = []
    for _versions, seen in found:
        generations = sorted(seen)[2:]  # without 0 and the generation that was there at the start
        due = max(5, generations[-1] - generations[0] + 1 if generations else 0)
        lags += [seen[generation] for generation in generations]
        lags += [math.inf] * (due - len(generations))
    return sorted(lags)


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_eight_processes_see_every_generation_within_100_ms_and_none_torn(
    method: str, tmp_path: Path
) -> None:
    """Nine of ten times must be within 100 ms, as ten processes and other programs share the cores.

    If the cores are very busy, the test measures again, at most five times.
    """
    tried = []
    for attempt in range(6):
        lags = lags_of_eight(method, tmp_path / f"state-{attempt}")
        quantiles = {q: lags[int(q * (len(lags) - 1))] for q in (0.5, 0.9, 0.99, 1.0)}
        tried.append({q: round(1000 * lag, 1) for q, lag in quantiles.items()})
        print(f"readers saw a generation after (ms): {tried[-1]}, {len(lags)} times")
        if quantiles[0.9] <= 0.1:
            return
    pytest.fail(f"seen late (ms): {tried}")


@pytest.mark.slow
def test_a_feeder_that_is_killed_leaves_its_last_state(tmp_path: Path) -> None:
    """Kills feeders at random moments of publishing; readers follow the next feeder."""
    seed = random.randrange(1 << 32)
    print(f"seed={seed}")
    chance = random.Random(seed)
    path, attached, sessions = tmp_path / "state", None, set()
    for _ in range(8):
        with fed(path, 300, 0.001) as process:
            session = process.session  # type: ignore[attr-defined]
            attached = attached or attach(path)
            until(lambda: attached.session == session)  # noqa: B023, B035
            time.sleep(chance.uniform(0.01, 0.2))
            process.send_signal(signal.SIGKILL)
            process.wait()
        last = Image.open(path)
        last.verify()
        assert check(last) == check(attached.image())
        assert (attached.version, attached.session) == (last.version, session)
        before, taken = attached.age("topic-00000"), attached.taken
        time.sleep(0.05)
        after = attached.age("topic-00000")
        assert 0.01 < after - before < 60
        assert (attached.age() or 0) >= after
        assert attached.taken == taken == last.taken
        assert attached.leader("topic-00000", 0) > 0
        sessions.add(session)
    assert len(sessions) == 8


def forked(work: Any) -> None:
    """Runs `work` in the child of a fork, which must exit with 0."""
    pid = os.fork()
    if pid == 0:
        try:
            work()
            os._exit(0)
        except BaseException as error:
            os.write(2, repr(error).encode() + b"\n")
            os._exit(1)
    assert os.waitpid(pid, 0)[1] == 0


def test_a_reader_attached_before_a_fork_follows_the_file_after_it(tmp_path: Path) -> None:
    """This is the order of gunicorn's `preload_app`."""
    cache, path = MetadataCache(), tmp_path / "state"
    apply_topics(cache, 1, 1)
    with cache.publish(path, interval=0.001):
        attached, image = attach(path), cache.image()
        assert attached.leader("orders", 0) == 1
        read_end, write_end = os.pipe()

        def worker() -> None:
            os.read(read_end, 1)
            until(lambda: attached.leader("orders", 0) == 2)
            assert attached.version == 2
            assert [t.name for t in attached.topics()] == ["orders"]
            assert image.leader("orders", 0) == image.topics()[0].partitions[0].leader == 1

        pid = os.fork()
        if pid == 0:
            forked(worker)
            os._exit(0)
        apply_topics(cache, 2, 2)
        os.write(write_end, b".")
        assert os.waitpid(pid, 0)[1] == 0
        os.close(read_end)
        os.close(write_end)


def test_a_publisher_does_nothing_in_the_child_of_a_fork(tmp_path: Path) -> None:
    cache, path = MetadataCache(), tmp_path / "state"
    apply_topics(cache, 1, 1)
    with cache.publish(path) as publisher:
        before = path.stat().st_ino
        forked(publisher.close)
        assert path.stat().st_ino == before
        apply_topics(cache, 2, 2)
        until(lambda: publisher.version == 2)


# ---- the publisher --------------------------------------------------------------------------


@pytest.mark.slow
def test_a_change_is_published_and_many_changes_share_an_image(tmp_path: Path) -> None:
    cache, path = MetadataCache(), tmp_path / "state"
    apply_topics(cache, 1, 1)
    files: set[int] = set()
    with cache.publish(path, interval=0.2) as publisher:
        assert Image.open(path).version == publisher.version == 1
        begun, took = time.monotonic(), 0.0
        while took < 1.0 or len(files) < 3:
            apply_topics(cache, cache.version % 3 + 1, cache.version + 1)
            files.add(Image.open(path).version)
            took = time.monotonic() - begun
    assert len(files) <= took / 0.2 + 2
    assert Image.open(path).version == cache.version == publisher.version
    assert "closed" in repr(publisher)
    publisher.close()


def test_an_answer_that_changes_nothing_is_published_as_it_renews_deadlines(tmp_path: Path) -> None:
    clock, path = Clock(), tmp_path / "state"
    cache = MetadataCache(clock=clock)
    apply_topics(cache)
    with cache.publish(path) as publisher:
        clock.advance(100)
        apply_topics(cache)
        until(lambda: Image.open(path).taken == cache.image().taken)
        assert Image.open(path).age("orders") == 0
        assert publisher.version == 1


def test_a_failed_save_is_repeated_and_raised_by_close(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    cache = MetadataCache()
    apply_topics(cache)
    publisher = cache.publish(home / "state")
    assert publisher.error is None
    home.rename(tmp_path / "moved")
    apply_topics(cache, 2, 2)
    until(lambda: isinstance(publisher.error, FileNotFoundError))
    home.mkdir()
    until(lambda: publisher.error is None)
    assert Image.open(home / "state").version == 2
    home.rename(tmp_path / "moved again")
    apply_topics(cache, 3, 3)
    for _ in range(2):
        with pytest.raises(FileNotFoundError):
            publisher.close()
        assert isinstance(publisher.error, FileNotFoundError)
    home.mkdir()
    publisher.close()
    assert publisher.error is None
    assert Image.open(home / "state").version == 3
    publisher.close()


def test_one_publisher_at_a_time_has_a_path_and_a_fork_does_not_keep_it(tmp_path: Path) -> None:
    cache, other, path = MetadataCache(), MetadataCache(), tmp_path / "state"
    apply_topics(cache)
    with cache.publish(path):
        holder = rf"another publisher has this path \(process {os.getpid()}\)"
        with pytest.raises(BlockingIOError, match=holder):
            other.publish(path)
        with other.publish(tmp_path / "another"):
            assert Image.open(path).version == 1
        read_end, write_end = os.pipe()
        begun, begins = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(write_end)
            os.write(begins, b".")
            os.read(read_end, 1)  # until the parent closes the pipe
            os._exit(0)
        os.read(begun, 1)  # by now the child has closed its copy of the lock
        os.close(begun)
        os.close(begins)
    other.publish(path).close()
    assert Image.open(path).version == 0
    os.close(write_end)
    os.close(read_end)
    assert os.waitpid(pid, 0)[1] == 0
    with fed(path, 1, 0.01), pytest.raises(BlockingIOError):
        cache.publish(path)
    cache.publish(path).close()  # the feeder was killed


@pytest.mark.parametrize("kind", ["link", "dangling", "pipe", "other", "hard", "folder"])
def test_a_lock_that_is_no_file_of_this_user_is_refused(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, lock, precious = tmp_path / "state", tmp_path / "state.lock", tmp_path / "precious"
    if kind == "pipe":
        os.mkfifo(lock)
    elif kind == "folder":
        lock.mkdir()
    elif kind == "hard":
        precious.write_text("kept")
        lock.hardlink_to(precious)
    elif kind == "other":
        lock.write_text("kept")
        monkeypatch.setattr(os, "geteuid", lambda: os.stat(lock).st_uid + 1)
    else:
        lock.symlink_to(precious)
        if kind == "link":
            precious.write_text("kept")
    with pytest.raises(OSError, match="regular file of this user with one name: remove it"):
        MetadataCache().publish(path)
    assert not path.exists()
    assert precious.exists() == (kind in {"link", "hard"})
    assert kind in {"pipe", "dangling", "folder"} or lock.read_text() == "kept"


def test_a_lock_that_is_removed_is_taken_again_unless_another_has_it(tmp_path: Path) -> None:
    cache, other, path = MetadataCache(), MetadataCache(), tmp_path / "state"
    apply_topics(cache)
    with cache.publish(path) as publisher:
        (tmp_path / "state.lock").unlink()
        apply_topics(cache, 2, 2)
        until(lambda: publisher.version == 2)
        with pytest.raises(BlockingIOError):
            other.publish(path)
        (tmp_path / "state.lock").unlink()
        with other.publish(path):
            apply_topics(cache, 3, 3)
            until(lambda: isinstance(publisher.error, BlockingIOError))
            assert Image.open(path).session == other.session
        until(lambda: publisher.error is None)
        assert Image.open(path).session == cache.session


def test_temporary_files_of_killed_publishers_are_removed_and_no_others(tmp_path: Path) -> None:
    """tests/c/image/test_file_temporary.c has the names and locks of such files."""
    path, cache = tmp_path / "state", MetadataCache()
    dead = [tmp_path / f".state.rdmeta-{i:016x}" for i in (0, 7, 1 << 63)]
    locked = tmp_path / ".state.rdmeta-00000000000000aa"
    link = tmp_path / ".state.rdmeta-00000000000000bb"
    others = [
        tmp_path / name
        for name in (
            ".stat.rdmeta-0000000000000000",
            ".other.rdmeta-0000000000000000",
            ".state.rdmeta-000000000000000",
            ".state.rdmeta-00000000000000000",
            ".state.rdmeta-000000000000000g",
            "state.rdmeta-0000000000000000",
            "state.other",
        )
    ]
    for each in (*dead, locked, *others):
        each.write_bytes(b"")
    link.symlink_to(others[-1])
    program = "import fcntl, sys; f = open(sys.argv[1]); fcntl.flock(f, fcntl.LOCK_EX); print()"
    owner = subprocess.Popen(
        [sys.executable, "-c", program + "; sys.stdout.flush(); sys.stdin.read()", locked],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert owner.stdout is not None
    owner.stdout.readline()
    cache.publish(path).close()
    remaining = {path, tmp_path / "state.lock", locked, link, *others}
    assert set(tmp_path.iterdir()) == remaining
    owner.communicate()
    cache.publish(path).close()
    assert set(tmp_path.iterdir()) == remaining - {locked}


def test_a_directory_that_cannot_be_listed_can_be_published_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(_path: object) -> list[str]:
        raise PermissionError

    monkeypatch.setattr(os, "listdir", refused)
    with MetadataCache().publish(tmp_path / "state"):
        assert (tmp_path / "state").exists()


def test_nothing_is_published_from_the_child_of_a_fork(tmp_path: Path) -> None:
    cache, path = MetadataCache(), tmp_path / "state"
    apply_topics(cache)

    def child() -> None:
        with pytest.raises(ForkedError):
            cache.publish(path)
        assert not path.exists()

    forked(child)


def test_the_last_state_is_published_when_the_interpreter_exits(tmp_path: Path) -> None:
    program = """
import sys, time
from answers import apply_topics
import rdmeta
cache = rdmeta.MetadataCache()
publisher = cache.publish(sys.argv[1], interval=60)
apply_topics(cache)
time.sleep(0.1)
apply_topics(cache, 2, 2)
sys.exit(3)
"""
    done = subprocess.run(
        [sys.executable, "-c", program, tmp_path / "state"],
        cwd=Path(answers.__file__).parent,
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert (done.returncode, done.stderr) == (3, "")
    assert Image.open(tmp_path / "state").version == 2


def test_a_clock_that_fails_does_not_end_a_publisher(tmp_path: Path) -> None:
    class Failing(Clock):
        fails = False

        def monotonic(self) -> float:
            if self.fails:
                raise RuntimeError("no time")
            return super().monotonic()

    clock = Failing()
    cache = MetadataCache(clock=clock)
    apply_topics(cache)
    with cache.publish(tmp_path / "state", interval=0.01) as publisher:
        clock.fails = True
        until(lambda: isinstance(publisher.error, RuntimeError))
        clock.fails = False
        apply_topics(cache, 2, 2)
        until(lambda: publisher.version == 2)
        assert publisher.error is None


def test_a_publisher_ends_with_its_cache(tmp_path: Path) -> None:
    cache = MetadataCache()
    cache.publish(tmp_path / "state")
    thread = next(t for t in threading.enumerate() if t.name == "rdmeta-publisher")
    del cache
    thread.join(30)
    assert not thread.is_alive()
    assert (tmp_path / "state").exists()


def test_a_publisher_takes_a_path_and_an_interval(tmp_path: Path) -> None:
    cache: Any = MetadataCache()
    with cache.publish(tmp_path / "state") as publisher:
        assert isinstance(publisher, Publisher)
        assert publisher.path == str(tmp_path / "state")
    with pytest.raises(ValueError, match="interval"):
        cache.publish(tmp_path / "state", interval=-1)
    with pytest.raises(TypeError):
        cache.publish(7)
    with pytest.raises(ValueError, match="interval"):
        cache.publish(tmp_path / "state", interval=float("inf"))
    with pytest.raises(TypeError, match="interval must be seconds"):
        cache.publish(tmp_path / "state", "x")


@pytest.mark.parametrize("interval", [Fraction(1, 1000), 0, True])
def test_an_interval_may_be_any_real_number(tmp_path: Path, interval: Any) -> None:
    cache = MetadataCache()
    with cache.publish(tmp_path / "state", interval) as publisher:
        for version in (1, 2, 3):  # it waits between the first and the next
            apply_topics(cache, 1 + version % 2, version)
            until(lambda: publisher.version == version)  # noqa: B023


def replace(path: Path) -> None:
    (path.parent / "other").write_bytes(b"no image")
    (path.parent / "other").replace(path)


@pytest.mark.parametrize(
    "spoil", [Path.unlink, replace, lambda path: path.write_bytes(b"no image")]
)
def test_a_file_that_is_removed_or_replaced_is_saved_again(tmp_path: Path, spoil: Any) -> None:
    cache = MetadataCache()
    apply_topics(cache)
    path = tmp_path / "state"
    with cache.publish(path) as publisher:
        reader = attach(path, look=0.001, copy=True)
        spoil(path)
        until(lambda: path.exists() and path.read_bytes() != b"no image")
        assert attach(path).leader("orders", 0) == reader.leader("orders", 0) == 1
        assert (publisher.version, publisher.error) == (1, None)
        path.unlink()
    assert not path.exists()  # a closed publisher does not save it again


def test_a_directory_is_not_published_to_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    with pytest.raises(IsADirectoryError):
        MetadataCache().publish(tmp_path / "state")
    assert [each.name for each in tmp_path.iterdir()] == ["state"]


def test_a_published_file_has_the_mode_that_is_asked_for(tmp_path: Path) -> None:
    path, cache, before = tmp_path / "state", MetadataCache(), os.umask(0o077)
    try:
        with cache.publish(path, mode=0o644):
            assert path.stat().st_mode & 0o777 == 0o644
            apply_topics(cache)
        assert path.stat().st_mode & 0o777 == 0o644
        with cache.publish(path):
            assert path.stat().st_mode & 0o777 == 0o600
        cache.image().save(path, mode=0o440)
        assert path.stat().st_mode & 0o777 == 0o440
    finally:
        os.umask(before)


@pytest.mark.parametrize(
    ("mode", "error"), [(0, ValueError), (0o1777, ValueError), ("6", TypeError)]
)
def test_a_wrong_mode_leaves_nothing(tmp_path: Path, mode: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        MetadataCache().publish(tmp_path / "state", mode=mode)
    with pytest.raises(error):
        MetadataCache().image().save(tmp_path / "state", mode=mode)
    assert list(tmp_path.iterdir()) == []


def test_a_loaded_cache_is_published_stale(tmp_path: Path) -> None:
    cache = MetadataCache()
    apply_topics(cache)
    cache.image().save(tmp_path / "old")
    warm = MetadataCache.load(tmp_path / "old")
    with warm.publish(tmp_path / "state"):
        attached = attach(tmp_path / "state", look=0.001)
        until(lambda: attached.leader("orders", 0, None) is None)  # clocks differ by a tick
        assert attached.last_leader("orders", 0) == 1
        apply_topics(warm, 2, 5)
        until(lambda: attached.leader("orders", 0, None) == 2)

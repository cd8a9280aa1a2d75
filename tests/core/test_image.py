"""Images: of a cache, in files, attached; differences; damaged files; warm starts."""

from __future__ import annotations

import errno
import os
import pickle
import random
import stat
import subprocess
import sys
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import frames
import pytest
from answers import apply_answer, apply_topics
from clocks import Clock
from frames import B, P, T

from rdmeta import (
    ALL,
    Image,
    MalformedError,
    MetadataCache,
    NotCachedError,
    Reading,
    StaleError,
    UnsupportedVersionError,
    attach,
)
from rdmeta._core import Attached

ORDERS = frames.topic_id("orders")


def dump(reading: Reading) -> Any:
    """Returns everything that the lookups return."""
    return (
        reading.cluster_id,
        reading.controller,
        reading.brokers,
        reading.topics(),
        reading.topics(allow_stale=True),
        reading.names(),
        list(reading),
        len(reading),
        reading.health(),
        [reading.source(name) for name in reading.names(allow_stale=True)],
        [(b.id, reading.partitions_on(b.id)) for b in reading.brokers],
        [reading.topic_by_id(frames.topic_id(n), None) for n in ("orders", "nope")],
        [reading.leader(name, 0, None) for name in ("orders", "payments", "nope")],
        list(reading.leaders(["orders", "nope", "orders"], [0, 0, 99])),
        reading.available("orders", None),
        "orders" in reading,
    )


def save_and_open(image: Image, path: Path, copy: bool = False) -> Image:
    image.save(path)
    return Image.open(path, copy=copy)


def save_and_attach(image: Image, path: Path) -> Reading:
    image.save(path)
    return attach(path)


HOWS: dict[str, Callable[[Image, Path], Reading]] = {
    "of a cache": lambda image, path: image,
    "in a file": save_and_open,
    "in a copied file": lambda image, path: save_and_open(image, path, True),
    "attached": save_and_attach,
}


@pytest.mark.parametrize("how", HOWS)
def test_lookups_of_an_image_return_what_the_caches_returned(how: str, tmp_path: Path) -> None:
    cache = MetadataCache()
    body = frames.response(
        12,
        topics=[
            T("orders", [P(0, 1, 3), P(1, -1, 4, error=5), P(7, 9, 5, (1, 9), (9,), (1,))], ORDERS),
            T("__internal", [P(0, 2)], frames.topic_id("i"), internal=True, operations=8),
            T("b\xe9ta", [P(i) for i in range(100)]),
        ],
        brokers=[B(1), B(2, "h2", 9093, "rack")],
    )
    cache.apply(body, 12, ALL, 2)
    reading = HOWS[how](cache.image(), tmp_path / "image")
    assert dump(reading) == dump(cache)
    assert reading.version == cache.version
    assert reading.age("orders") < 5
    age = reading.age()
    assert age is not None
    assert age < 5
    with pytest.raises(NotCachedError):
        reading.leader("nope", 0)


@pytest.mark.parametrize("how", ["of a cache", "in a file", "in a copied file"])
def test_an_image_stays_as_it_was_while_the_cache_changes(how: str, tmp_path: Path) -> None:
    clock = Clock()
    cache = MetadataCache(clock=clock, max_age=60)
    apply_topics(cache, 1, 1, "orders payments")
    before = dump(cache)
    image = HOWS[how](cache.image(), tmp_path / "image")
    for epoch in range(2, 50):
        apply_topics(cache, epoch % 3 + 1, epoch, "orders other")
    cache.purge()
    clock.advance(10_000)
    cache.sweep()
    assert dump(image) == before
    assert (len(cache), cache.version > image.version) == (0, True)


def test_an_image_outlives_its_cache() -> None:
    cache = MetadataCache()
    apply_topics(cache)
    before, image = dump(cache), cache.image()
    del cache
    assert dump(image) == before


def test_time_stands_still_in_an_image() -> None:
    clock = Clock()
    cache = MetadataCache(clock=clock, max_age=60)
    apply_topics(cache)
    clock.advance(30)
    image = cache.image()
    clock.advance(1000)
    assert image.leader("orders", 0) == 1
    assert image.age("orders") == image.age() == 30
    assert cache.age("orders") == cache.age() == 1030
    assert cache.stats()["all_topics_age"] == 1030
    with pytest.raises(StaleError):
        cache.image().leader("orders", 0)
    assert cache.image().last_leader("orders", 0) == 1


def test_the_age_is_none_without_an_all_topics_answer(tmp_path: Path) -> None:
    cache = MetadataCache()
    cache.apply(frames.response(12, topics=[T("orders")]), 12, ["orders"])
    image = cache.image()
    image.save(tmp_path / "image")
    assert cache.age() is None
    assert image.age() is None
    assert Image.open(tmp_path / "image").age() is None
    assert attach(tmp_path / "image").age() is None
    assert image.age("orders") < 5


def test_an_old_image_costs_only_the_blocks_that_changed_since() -> None:
    cache = MetadataCache()
    names = [f"topic-{i:05}" for i in range(5000)]
    apply_topics(cache, 1, 1, " ".join(names))
    whole = cache.stats()["bytes"]
    image = cache.image()
    taken = cache.stats()
    assert (taken["images"], taken["bytes_images"] < whole / 20) == (1, True)
    for epoch in range(2, 30):  # ten topics, again and again
        body = frames.response(12, topics=[T(n, [P(0, 2, epoch)]) for n in names[:10]])
        cache.apply(body, 12, names[:10])
    assert cache.stats()["bytes_images"] < whole / 10
    apply_topics(cache, 3, 99, " ".join(names))
    assert cache.stats()["bytes_images"] > whole / 4
    assert image.leader(names[0], 0) == image.leader(names[-1], 0) == 1
    del image
    assert (cache.stats()["images"], cache.stats()["bytes_images"]) == (0, 0)


def test_a_difference_of_images_is_a_list_of_changes() -> None:
    cache = MetadataCache()
    apply_topics(cache, 1, 1, "a b c")
    before = cache.image()
    apply_topics(cache, 2, 2, "b c d")
    apply_topics(cache, 2, 2, "b c d")
    after = cache.image()
    changes = before.diff(after)
    assert (changes.until, changes.resync) == (after.version, False)
    records = {(c.kind, c.topic) for c in changes}
    assert {("leader_changed", "b"), ("leader_changed", "c"), ("topic_added", "d")} <= records
    assert {c.session for c in changes} == {cache.session} == {after.session}
    assert {c.version for c in changes} == {after.version}
    assert {c.source for c in changes} == {"poll"}
    leaders = [(c.old_leader, c.new_leader) for c in changes if c.kind == "leader_changed"]
    assert set(leaders) == {(1, 2)}
    assert list(after.diff(after)) == []
    assert {c.kind for c in after.diff(before)} >= {"leader_changed", "topic_added"}


def test_a_difference_keeps_empty_lists_apart_from_none() -> None:
    cache = MetadataCache()
    apply_answer(cache, T("orders", []))
    before = cache.image()
    apply_answer(cache, T("orders", [P(0, 1, 0, ())]))
    records = [(c.kind, c.new_isr, c.new_replicas) for c in before.diff(cache.image())]
    assert records == [("partitions_added", (), ())]
    assert records == [(c.kind, c.new_isr, c.new_replicas) for c in cache.changes(before.version)]


def test_the_changes_of_an_image_tell_all_of_its_state() -> None:
    cache = MetadataCache()
    apply_answer(cache, T("orders", [P(0, 1, 4, (1, 2), (1,), offline=(2,))]), T("none", []))
    image = cache.image()
    apply_answer(cache, T("orders", [P(0, 2, 5, (1, 2), (1, 2))]))
    changes = image.changes()
    assert (changes.until, changes.resync) == (image.version, False)
    brokers = [c.broker for c in changes if c.kind == "broker_added"]
    assert brokers == [broker.id for broker in image.brokers]
    rest = [c for c in changes if c.kind != "broker_added"]
    assert {c.kind for c in rest} == {"topic_added"}
    assert [(c.topic, c.partition, c.new_isr, c.new_replicas, c.new_offline) for c in rest] == [
        ("none", None, None, None, None),
        ("orders", None, None, None, None),
        ("orders", 0, (1,), (1, 2), (2,)),
    ]
    assert (rest[2].new_leader, rest[2].new_leader_epoch) == (1, 4)


def test_whole_changes_tell_the_partitions_of_a_topic_that_came() -> None:
    cache = MetadataCache()
    since = cache.version
    apply_answer(cache, T("orders", [P(0, 1, 4)]))
    apply_answer(cache, T("orders", [P(0, 2, 5)]))
    brief = [c.partition for c in cache.changes(since) if c.kind == "topic_added"]
    assert brief == [None]
    whole = [c for c in cache.changes(since, whole=True) if c.topic]
    assert [(c.kind, c.partition, c.new_leader, c.new_leader_epoch) for c in whole] == [
        ("topic_added", None, None, None),
        ("topic_added", 0, 1, 4),
        ("leader_changed", 0, 2, 5),
    ]


def test_the_difference_of_files_equals_that_of_the_caches_images(tmp_path: Path) -> None:
    cache = MetadataCache()
    apply_topics(cache, 1, 1, "a b c")
    before = cache.image()
    apply_topics(cache, 2, 2, "b c d")
    after = cache.image()
    files = [save_and_open(image, tmp_path / str(image.version)) for image in (before, after)]
    assert tuple(files[0].diff(files[1])) == tuple(before.diff(after))
    assert list(files[1].diff(after)) == []


def test_diff_refuses_other_types_and_an_image_has_no_constructor() -> None:
    image: Any = MetadataCache().image()
    with pytest.raises(TypeError, match="Image"):
        image.diff(MetadataCache())
    for given in ((), (1,)):
        with pytest.raises(TypeError, match="given by"):
            Image(*given)
    with pytest.raises(TypeError, match="pickled"):
        pickle.dumps(image)


def test_an_image_has_a_session_a_time_a_repr_and_stats() -> None:
    cache = MetadataCache()
    apply_topics(cache)
    image = cache.image()
    assert image.session == cache.session
    assert abs((datetime.now(timezone.utc) - image.taken).total_seconds()) < 60
    assert "version=1" in repr(image)
    assert "topics=1" in repr(image)
    assert bool(MetadataCache().image())
    stats = image.stats()
    assert (stats["topics"], stats["partitions"], stats["mapped"]) == (1, 3, False)


def test_every_cache_has_a_session_of_its_own() -> None:
    assert len({MetadataCache(seed=1).session for _ in range(20)}) == 20


# ---- files ----------------------------------------------------------------------------------


def test_a_file_is_mapped_and_says_so(tmp_path: Path) -> None:
    cache = MetadataCache()
    apply_topics(cache)
    cache.image().save(tmp_path / "image", sync=True)
    assert os.listdir(tmp_path) == ["image"]
    image, copy = Image.open(tmp_path / "image"), Image.open(tmp_path / "image", copy=True)
    assert (image.stats()["mapped"], copy.stats()["mapped"]) == (True, False)
    assert image.stats()["bytes"] == (tmp_path / "image").stat().st_size
    image.verify()
    copy.verify()
    os.truncate(tmp_path / "image", 0)  # a mapping could not be read now; a copy can
    assert copy.leader("orders", 0) == 1


@pytest.mark.parametrize("kind", [str, os.fsencode, Path])
def test_a_path_may_be_of_any_kind(kind: Any, tmp_path: Path) -> None:
    cache = MetadataCache()
    apply_topics(cache)
    path = kind(tmp_path / "im\xe4ge")
    cache.image().save(path)
    assert Image.open(path).leader("orders", 0) == 1
    assert attach(path).leader("orders", 0) == 1
    assert MetadataCache.load(path).last_leader("orders", 0) == 1


def test_an_error_of_the_system_is_an_oserror_with_the_path(tmp_path: Path) -> None:
    image, missing = MetadataCache().image(), tmp_path / "missing" / "image"
    calls: list[Callable[[], object]] = [
        lambda: Image.open(missing),
        lambda: attach(missing),
        lambda: MetadataCache.load(missing),
        lambda: image.save(missing),
        lambda: MetadataCache().publish(missing),
    ]
    for call in calls:
        with pytest.raises(FileNotFoundError) as refused:
            call()
        assert (refused.value.errno, refused.value.filename) == (errno.ENOENT, str(missing))
    with pytest.raises(IsADirectoryError):
        image.save(tmp_path)
    with pytest.raises(ValueError, match="NUL"):
        Image.open("a\0b")
    with pytest.raises(TypeError):
        Image.open(7)  # type: ignore[arg-type]
    assert os.listdir(tmp_path) == []


def test_a_file_that_is_not_an_image_is_malformed(tmp_path: Path) -> None:
    path = tmp_path / "image"
    for content in (b"", b"no image", bytes(4096), os.urandom(4096)):
        path.write_bytes(content)
        for call in (Image.open, attach, MetadataCache.load):
            with pytest.raises(MalformedError):
                call(path)


def test_another_version_of_the_format_is_an_error_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "image"
    MetadataCache().image().save(path)
    content = bytearray(path.read_bytes())
    content[12] = 99  # the format, after magic and byte order
    path.write_bytes(content)
    with pytest.raises(UnsupportedVersionError):
        Image.open(path)


def read_all(path: Path) -> bool:
    """Reads a file in every way; returns whether no call raised MalformedError."""
    whole = True
    try:
        image = Image.open(path, copy=True)
    except (MalformedError, UnsupportedVersionError):
        return False
    names = ["orders", *(f"topic-{i}" for i in range(30))]
    calls: list[Callable[[], object]] = [
        image.verify,
        image.topics,
        image.names,
        lambda: image.partitions_on(1),
        lambda: image.leaders(names, [0] * len(names)),
        lambda: image.diff(MetadataCache().image()),
        lambda: MetadataCache.load(path),
        *(lambda name=name: image.topic(name, None, allow_stale=True) for name in names),
        *(lambda name=name: image.leader(name, 1, None) for name in names),
        *(lambda name=name: image.topic_by_id(frames.topic_id(name), None) for name in names),
    ]
    for call in calls:
        try:
            call()
        except MalformedError:
            whole = False
    return whole


WRITES = """
import sys, time
path, end = sys.argv[1], time.monotonic() + 20
whole = open(path, "rb").read()
print("ready", flush=True)
while time.monotonic() < end:
    with open(path, "r+b") as file:
        file.truncate(4096)
        time.sleep(0.0005)
        file.write(whole)
"""
LOADS = """
import sys, rdmeta
for _ in range(300):
    for read in rdmeta.MetadataCache.load, rdmeta.Image.open:
        try:
            read(sys.argv[1], copy=True)
        except rdmeta.MalformedError:
            pass
"""


def test_a_process_that_reads_copies_survives_truncations_of_the_file(tmp_path: Path) -> None:
    cache = MetadataCache()
    apply_topics(cache, names=" ".join(f"topic-{i}" for i in range(2000)))
    path = tmp_path / "image"
    cache.image().save(path)
    assert MetadataCache.load(path, copy=True).names(allow_stale=True) == cache.names()
    command = [sys.executable, "-c"]
    with subprocess.Popen([*command, WRITES, path], stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        writer.stdout.readline()
        done = subprocess.run([*command, LOADS, path], timeout=50, check=False)
        writer.kill()
    assert done.returncode == 0


def test_a_damaged_file_raises_and_never_crashes(tmp_path: Path) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed={seed}")
    chance = random.Random(seed)
    cache = MetadataCache()
    apply_topics(cache, 1, 1, "orders " + " ".join(f"topic-{i}" for i in range(30)))
    path = tmp_path / "image"
    cache.image().save(path)
    good = path.read_bytes()
    assert read_all(path)
    for _ in range(300):
        content = bytearray(good)
        if chance.random() < 0.3:
            del content[chance.randrange(len(content)) :]
        for _ in range(chance.randrange(1, 4)):
            if content:
                content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
        if bytes(content) == good:
            continue
        path.write_bytes(content)
        assert not read_all(path)  # verify() finds any damage


# ---- warm start -----------------------------------------------------------------------------


def test_a_warm_start_is_stale_until_the_first_refresh(tmp_path: Path) -> None:
    cache = MetadataCache()
    apply_topics(cache, 2, 7)
    cache.image().save(tmp_path / "image")
    warm = MetadataCache.load(tmp_path / "image", max_age=30)
    assert warm.session != cache.session
    assert warm.brokers == cache.brokers
    assert warm.cluster_id == cache.cluster_id
    assert warm.names() == []
    assert warm.names(allow_stale=True) == ["orders"]
    with pytest.raises(StaleError):
        warm.leader("orders", 0)
    assert warm.last_leader("orders", 0) == 2
    assert warm.topic("orders", allow_stale=True).topic_id == cache.topic("orders").topic_id
    apply_topics(warm, 1, 6)  # an older epoch than the image's
    assert warm.last_leader("orders", 0) == 2
    apply_topics(warm, 3, 8)
    assert warm.leader("orders", 0) == 3


@pytest.mark.parametrize("age", [0, 5, 7200, 864000])
@pytest.mark.parametrize("max_age", [60, 900, 100000])
def test_a_loaded_topic_keeps_its_age(age: int, max_age: int, tmp_path: Path) -> None:
    clock = Clock()
    cache = MetadataCache(clock=clock)
    apply_topics(cache)
    cache.image().save(tmp_path / "image")
    clock.advance(age)
    warm = MetadataCache.load(tmp_path / "image", clock=clock, max_age=max_age)
    assert warm.age("orders") == age
    with pytest.raises(StaleError):
        warm.leader("orders", 0)
    assert warm.last_leader("orders", 0) == 1
    assert warm.image().age("orders") == age
    warm.image().save(tmp_path / "again")
    clock.advance(100)
    for reading in (
        Attached(tmp_path / "again", clock=clock),
        MetadataCache.load(tmp_path / "again", clock=clock, max_age=30),
        MetadataCache.load(tmp_path / "again", clock=clock, max_age=30000),
    ):
        assert reading.age("orders") == age + 100
        assert reading.leader("orders", 0, None) is None
        assert reading.last_leader("orders", 0) == 1
        assert reading.names() == []
    apply_topics(warm)
    assert warm.age("orders") == 0
    assert warm.leader("orders", 0) == 1


@pytest.mark.parametrize("is_link", [False, True])
def test_the_umask_sets_the_mode_whatever_lies_at_the_path(tmp_path: Path, is_link: bool) -> None:
    path, other = tmp_path / "image", tmp_path / "other"
    image = MetadataCache().image()
    before = os.umask(0o027)
    try:
        for mode in (0o600, 0o444, 0o666):
            path.unlink(missing_ok=True)
            (other if is_link else path).write_bytes(b"x")
            if is_link:
                path.symlink_to(other)
            path.chmod(mode)
            image.save(path)
            assert path.lstat().st_mode == stat.S_IFREG | 0o640
            if is_link:
                assert (other.read_bytes(), other.stat().st_mode & 0o777) == (b"x", mode)
                other.unlink()
    finally:
        os.umask(before)


def test_a_warm_start_makes_a_subclass_and_takes_its_settings(tmp_path: Path) -> None:
    class Mine(MetadataCache):
        pass

    MetadataCache().image().save(tmp_path / "image")
    clock = Clock()
    warm = Mine.load(tmp_path / "image", clock=clock)
    assert type(warm) is Mine
    with pytest.raises(TypeError, match="max_size"):
        Mine.load(tmp_path / "image", max_size=1)  # type: ignore[call-arg]


def test_iterators_and_lists_keep_their_image_alive() -> None:
    """A walk and a list must not outlive the memory of their image."""
    cache = MetadataCache()
    apply_topics(cache, 1, 1, "a b c")
    names = iter(cache.image())
    assert list(names) == ["a", "b", "c"]
    assert sys.getrefcount(cache.image()) <= 2

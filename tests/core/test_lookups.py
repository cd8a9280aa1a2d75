"""Lookups of every source: caches, images, files, attached states; reasons; keys."""

from __future__ import annotations

import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

import frames
import pytest
from clocks import Clock
from frames import B, P, T

from rdmeta import ALL, DENIED, UNKNOWN_TOPIC, Image, Request, _core, attach
from rdmeta._core import MetadataCache, Reading
from rdmeta.errors import LeaderNotAvailableError, NoSuchPartitionError, NotCachedError, StaleError
from rdmeta.model import TopicPartition


def test_lookups_are_methods_of_the_cache_type_which_cpython_calls_at_full_speed() -> None:
    names = [name for name, made in vars(Reading).items() if type(made) is type(str.join)]
    assert "leader" in names
    owners = {name: vars(MetadataCache)[name].__objclass__ for name in names}
    assert owners == dict.fromkeys(names, MetadataCache)


def test_names_returns_the_names_of_what_topics_returns() -> None:
    clock = Clock()
    cache = MetadataCache(clock=clock, max_age=10, negative_ttl=1000)
    old = [T("alpha"), T("beta"), T("gone", [], error=3), T("secret", [], error=29)]
    cache.apply(frames.response(12, topics=old), 12, ["alpha", "beta", "gone", "secret"])
    assert cache.names(state=UNKNOWN_TOPIC) == ["gone"]
    assert cache.names(state=DENIED) == ["secret"]
    clock.advance(9)
    new = [T("beta"), T("_internal", [P(0)], internal=True)]
    cache.apply(frames.response(12, topics=new), 12, ["beta", "_internal"])
    clock.advance(9)
    assert cache.names() == list(cache) == ["_internal", "beta"]
    assert cache.names(allow_stale=True) == ["_internal", "alpha", "beta"]
    assert cache.names(internal=True) == ["_internal"]
    assert cache.names(internal=False, allow_stale=True) == ["alpha", "beta"]
    assert cache.names(prefix="b") == ["beta"]


def readings(cache: MetadataCache, path: Path) -> list[Reading]:
    """Returns every kind of source with the same state: cache, image, file, attached."""
    image = cache.image()
    image.save(path)
    return [cache, image, Image.open(path), attach(path)]


def test_a_default_may_be_given_by_keyword(tmp_path: Path) -> None:
    cache = MetadataCache()
    cache.apply(frames.response(12, topics=[T("orders", [P(0, 1, 3)])]), 12)
    for reading in readings(cache, tmp_path / "image"):
        assert reading.leader("orders", 0, default=None) == 1
        assert reading.leader("nope", 0, default=None) is None
        assert reading.last_leader("orders", 0, default=-1) == 1
        assert reading.last_leader("orders", 9, default=-1) == -1
        assert reading.partition_for("orders", b"key", default=None) == 0
        assert reading.partition_for("nope", b"key", default=None) is None
        with pytest.raises(TypeError):
            reading.leader("orders", 0, None, default=None)  # type: ignore[call-overload]
        with pytest.raises(TypeError):
            reading.leader("orders", 0, defualt=None)  # type: ignore[call-overload]


def test_a_replica_is_found_by_rack(tmp_path: Path) -> None:
    brokers = [B(1, rack="a"), B(2, rack="b"), B(3, rack="b"), B(4)]
    rows = [P(0, 1, 3, (1, 3, 2)), P(1, 2, 3, (3, 2)), P(2, 1, 3, (1, 3), (1,)), P(3, -1, 3)]
    cache = MetadataCache()
    cache.apply(frames.response(12, [T("orders", rows)], brokers), 12)
    for reading in readings(cache, tmp_path / "image"):
        assert reading.replica_in("orders", 0, "b") == 3
        assert reading.replica_in("orders", 1, "b") == 2, "the leader is there"
        assert reading.replica_in("orders", 2, "b") == 1, "the one there is not in sync"
        for rack in ("a", "", "elsewhere", None):
            assert reading.replica_in("orders", 0, rack) == 1
        with pytest.raises(LeaderNotAvailableError):
            reading.replica_in("orders", 3, "b")
        with pytest.raises(NoSuchPartitionError):
            reading.replica_in("orders", 9, "b")
        with pytest.raises(NotCachedError):
            reading.replica_in("nope", 0, "b")
        assert reading.replica_in("nope", 0, "b", None) is None
        assert reading.replica_in("nope", 0, "b", default=-1) == -1
        with pytest.raises(TypeError, match="rack"):
            reading.replica_in("orders", 0, 7)  # type: ignore[call-overload]


def test_a_replica_of_a_stale_topic_is_found_on_request() -> None:
    clock = Clock()
    cache = MetadataCache(clock=clock, max_age=10)
    brokers = [B(1, rack="a"), B(2, rack="b")]
    cache.apply(frames.response(12, [T("orders", [P(0, 1, 3, (1, 2))])], brokers), 12)
    clock.advance(11)
    with pytest.raises(StaleError):
        cache.replica_in("orders", 0, "b")
    assert cache.replica_in("orders", 0, "b", allow_stale=True) == 2
    assert cache.replica_in("orders", 0, "c", allow_stale=True) == 1


def test_the_error_of_a_missing_partition_contains_the_number_of_partitions(tmp_path: Path) -> None:
    cache = MetadataCache()
    cache.apply(frames.response(12, topics=[T("orders", [P(0), P(1), P(2)]), T("one")]), 12)
    for reading in readings(cache, tmp_path / "image"):
        for lookup in (reading.leader, reading.last_leader, reading.partition):
            with pytest.raises(NoSuchPartitionError, match="'orders': the topic has 3 partitions$"):
                lookup("orders", 3)
            with pytest.raises(NoSuchPartitionError, match="'one': the topic has 1 partition$"):
                lookup("one", 1)
            for number, retriable in ((3, True), (2**31 - 1, True), (-1, False), (-(2**31), False)):
                with pytest.raises(NoSuchPartitionError) as raised:
                    lookup("orders", number)
                assert (raised.value.partitions, raised.value.retriable) == (3, retriable)


def test_the_error_of_an_unknown_or_stale_topic_contains_advice(tmp_path: Path) -> None:
    clock = Clock()
    cache = MetadataCache(clock=clock, max_age=10)
    cache.apply(frames.response(12, topics=[T("old")]), 12, ["old"])
    clock.advance(11)
    ways = (r"rdmeta\.fetch", "newer image", "newer image", "process that publishes")
    for reading, way in zip(readings(cache, tmp_path / "image"), ways, strict=True):
        with pytest.raises(NotCachedError, match=way):
            reading.leader("nope", 0)
        with pytest.raises(NotCachedError, match=way):
            reading.broker(99)
        with pytest.raises(StaleError, match=f"{way}.*allow_stale"):
            reading.leader("old", 0)
        with pytest.raises(StaleError, match=f"{way}.*allow_stale"):
            reading.topic("old")
    cache.hint(["asked"])
    with pytest.raises(NotCachedError, match=r"wait_for_topic"):
        cache.leader("asked", 0)


def test_reason_returns_why_a_topic_was_asked_for() -> None:
    cache = MetadataCache()
    raw = frames.topic_id("b")
    body = frames.response(12, topics=[T("a"), T("b", id=raw), T("c")])
    cache.apply(body, 12, ALL)
    assert cache.reason("a") is None
    cache.apply(body, 12, ALL, reason="start")
    assert [cache.reason(name) for name in "abc"] == ["start"] * 3
    only_a = frames.response(12, topics=[T("a")])
    cache.apply(only_a, 12, Request(["a"], reason="not the leader"))
    only_b = frames.response(12, topics=[T("b", id=raw)])
    cache.apply(only_b, 12, [uuid.UUID(bytes=raw)], reason="unknown id")
    assert [cache.reason(name) for name in "abc"] == ["not the leader", "unknown id", "start"]
    cache.apply(body, 12, None, reason="unknown")
    assert [cache.reason(name) for name in "abc"] == ["unknown"] * 3
    cache.apply(body, 12, None)
    assert [cache.reason(name) for name in "abc"] == [None] * 3
    cache.apply(only_a, 12, (name for name in "a"), reason="again")
    assert [cache.reason(name) for name in "ab"] == ["again", None]
    cache.apply(body, 12, Request(["a"], reason="mine"), reason="no, mine")
    assert cache.reason("a") == "no, mine"
    cache.apply(only_a, 12, ["a"])
    assert cache.reason("a") is None
    cache.apply(body, 12, ALL, reason="age")
    assert [cache.reason(name) for name in "abc"] == ["age"] * 3
    with pytest.raises(NotCachedError):
        cache.reason("nope")


def test_a_reason_belongs_to_every_topic_of_the_answer() -> None:
    cache = MetadataCache()
    body = frames.response(12, topics=[T("a"), T("b")])
    cache.apply(body, 12, ALL, reason="start")
    cache.apply(body, 12, ["a", "b"], reason="again")
    cache.purge()
    cache.apply(body, 12, None)
    assert [cache.reason(name) for name in "ab"] == [None, None]
    cache.apply(body, 12, ALL, reason="start")
    cache.purge()
    cache.apply(body, 12, ["a"], broker=7, reason="next")  # the answer also contains "b"
    assert [cache.reason(name) for name in "ab"] == ["next", "next"]
    assert [cache.source(name) for name in "ab"] == [7, 7]


def test_a_cache_keeps_a_thousand_reasons_and_counts_what_it_drops() -> None:
    cache = MetadataCache()
    body = frames.response(12, topics=[T("a"), T("b")])
    cache.apply(body, 12, ["a", "b"])
    assert cache.stats()["reasons"] == 0
    for i in range(1024):
        cache.apply(body, 12, ["a"], reason=f"for {i}")
    assert cache.reason("a") == "for 1023"
    cache.apply(body, 12, ["a"], reason="one too many")
    assert cache.reason("a") is None
    cache.apply(body, 12, ["a"], reason="for 7")
    assert cache.reason("a") == "for 7"
    stats = cache.stats()
    assert (stats["reasons"], stats["reasons_dropped"]) == (1024, 1)


def test_a_reason_is_any_text_and_a_long_one_is_cut_between_characters() -> None:
    cache = MetadataCache()
    body = frames.response(12, topics=[T("a")])
    for reason in ("", "die alte läuft ab", "\udcff", "x" * 255, "\0"):
        cache.apply(body, 12, ["a"], reason=reason)
        assert cache.reason("a") == reason
    cache.apply(body, 12, ["a"], reason="xx" + "é" * 200)
    assert cache.reason("a") == "xx" + "é" * 126
    wrong: Any = b"bytes"
    with pytest.raises(TypeError, match="reason must be str, not bytes"):
        cache.apply(body, 12, ["a"], reason=wrong)
    assert cache.reason("a") == "xx" + "é" * 126


def test_images_files_and_warm_starts_keep_reasons(tmp_path: Path) -> None:
    cache = MetadataCache()
    path = tmp_path / "state"
    body = frames.response(12, topics=[T("a"), T("b"), T("c")])
    cache.apply(body, 12, ALL, reason="start")
    cache.apply(frames.response(12, topics=[T("b")]), 12, ["b"], broker=2, reason="läuft ab")
    cache.apply(frames.response(12, topics=[T("c")]), 12, ["c"], broker=3)
    wanted = ["start", "läuft ab", None]
    image = cache.image()
    image.save(path)
    cache.apply(body, 12, ALL, reason="later")
    assert [cache.reason(name) for name in "abc"] == ["later"] * 3
    warm = MetadataCache.load(path)
    for each in (image, Image.open(path), Image.open(path, copy=True), attach(path), warm):
        assert [each.reason(name) for name in "abc"] == wanted
        with pytest.raises(NotCachedError):
            each.reason("nope")
    assert warm.source("b") == 2
    other = "import rdmeta, sys; a = rdmeta.attach(sys.argv[1]); print(ascii(a.reason('b')))"
    done = subprocess.run(
        [sys.executable, "-c", other, str(path)], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == ascii("läuft ab")


def test_an_answer_that_another_extension_applies_has_its_reason() -> None:
    pytest.importorskip("cffi", reason="cffi is not installed")
    from rdmeta.ffi import cache as cache_of
    from rdmeta.ffi import ffi, lib, now, reader

    cache = MetadataCache()
    body = frames.response(12, topics=[T("a")])
    words = ffi.new("char[]", b"asked by C")
    asked = ffi.new("rdmeta_request_t *", {"asked": lib.RDMETA_ASKED_ALL, "broker": 4})
    asked.reason.data, asked.reason.len = words, 10
    assert not lib.rdmeta_cache_apply(cache_of(cache), body, len(body), 12, asked, now(), ffi.NULL)
    ffi.memmove(words, b"XXXXX", 5)  # the cache has a copy
    assert (cache.reason("a"), cache.source("a")) == ("asked by C", 4)
    cache.apply(body, 12, ALL, reason="asked by Python")
    info, topic = ffi.new("rdmeta_topic_info_t *"), ffi.new("rdmeta_topic_t **")
    r = reader(cache)
    lib.rdmeta_reader_enter(r)
    assert not lib.rdmeta_topic_find(r, b"a", 1, now().mono_us, topic)
    lib.rdmeta_topic_info(r, topic[0], now().mono_us, info)
    assert ffi.unpack(info.reason.data, info.reason.len) == b"asked by Python"
    lib.rdmeta_reader_leave(r)


def test_stale_and_leaderless_partitions_are_on_their_last_brokers_with_allow_stale() -> None:
    clock = Clock()
    cache = MetadataCache(clock=clock, max_age=10)
    led = [T("a", [P(0, 1, 5), P(1, 2, 5)])]
    cache.apply(frames.response(12, topics=led), 12, ALL)
    a0, a1 = TopicPartition("a", 0), TopicPartition("a", 1)
    cache.apply(frames.response(12, topics=[T("a", [P(0, -1, 6, error=5), P(1, 2, 5)])]), 12, ["a"])
    assert cache.partitions_on(1) == []
    assert cache.partitions_on(1, allow_stale=True) == [a0]
    clock.advance(11)
    assert cache.partitions_on(2) == []
    assert cache.partitions_on(2, allow_stale=True) == [a1]
    assert cache.partitions_on(2, "replica", allow_stale=True) == [
        TopicPartition("a", p.partition)
        for p in cache.topic("a", allow_stale=True).partitions
        if 2 in p.replicas
    ]


def test_every_source_returns_the_same_partition_for_a_key(tmp_path: Path) -> None:
    cache = MetadataCache()
    topics = [T("orders", [P(i, -1 if i == 3 else 1) for i in range(7)]), T("none", [])]
    cache.apply(frames.response(12, topics=topics), 12, ALL)
    cache.image().save(tmp_path / "state")
    handle = cache.resolve("orders")
    keys: list[bytes | bytearray | memoryview] = [b"", b"a", bytearray(b"k"), memoryview(b"x" * 99)]
    readings: list[Reading] = [
        cache,
        cache.image(),
        Image.open(tmp_path / "state"),
        attach(tmp_path / "state"),
    ]
    for reading in readings:
        assert [reading.partition_for("orders", key) for key in keys] == [
            handle.partition_for(key) for key in keys
        ]
        assert {reading.partition_for("orders", None) for _ in range(300)} == {0, 1, 2, 4, 5, 6}
        assert reading.partition_for("nope", b"k", 5) == 5
        with pytest.raises(NotCachedError):
            reading.partition_for("nope", None)
        with pytest.raises(TypeError, match="bytes or a buffer"):
            reading.partition_for("orders", "key")  # type: ignore[call-overload]


def test_no_type_of_the_core_can_be_half_made(tmp_path: Path) -> None:
    """Types that C code fills refuse to be made by their constructors, and none crashes."""
    program = """
import rdmeta
from rdmeta import _core
tried = [(), (None,), (object(),), ("x",), (b"x", 1)]
made = 0
for name, kind in sorted(vars(_core).items()):
    if not isinstance(kind, type) or kind.__module__ != "rdmeta._core":
        continue
    for new in (kind, type("Sub", (kind,), {}) if kind.__flags__ & 1024 else kind):
        for arguments in tried:
            try:
                found = new.__new__(new, *arguments)
            except (TypeError, ValueError, AttributeError, OSError, rdmeta.Error):
                continue
            made += 1
            for each in dir(kind):
                if each in ("__class__", "__init_subclass__", "__subclasshook__", "__new__"):
                    continue
                if each.startswith("wait"):
                    continue
                for more in ((), ("x",), ("x", 0), (0,)):
                    try:
                        value = getattr(found, each)
                        value(*more) if callable(value) else repr(value)
                    except SystemError as error:
                        raise AssertionError((name, each)) from error
                    except Exception:
                        pass
print(made)
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 0
    for name in ("Reading", "Readers", "ArrowTable", "ImageTable", "ChangeTable", "Image"):
        kind: Any = getattr(_core, name)
        with pytest.raises(TypeError):
            kind()
        with pytest.raises(TypeError):
            kind.__new__(kind)

"""Unusual and wrong arguments: which are accepted, and what the errors say."""

from __future__ import annotations

import asyncio
import os
from enum import Enum
from pathlib import Path
from typing import Any

import frames
import pytest
from clocks import Clock
from frames import B, P, T

from rdmeta import ALL, Broker, Image, MetadataCache, encode_metadata_request
from rdmeta.errors import ArgumentError, MalformedError

ORDERS_ID, OTHER_ID = frames.topic_id("orders"), frames.topic_id("other")


@pytest.fixture
def cache() -> MetadataCache:
    cache = MetadataCache()
    topics = [T("orders", [P(0, 1, 3), P(1, 2, 3)], id=ORDERS_ID), T("other", id=OTHER_ID)]
    cache.apply(frames.response(12, topics), 12, ALL, 1)
    return cache


# ---- names --------------------------------------------------------------------------------------


class Topics(str, Enum):
    """Topic names as an enum of an application; str() of a member is "Topics.ORDERS"."""

    ORDERS = "orders"
    NEW = "new"


def test_a_member_of_an_enum_of_str_is_the_name_that_it_holds(cache: MetadataCache) -> None:
    name = Topics.ORDERS
    assert cache.leader(name, 0) == cache.last_leader(name, 0) == 1
    assert name in cache
    assert cache.state(name) == 0
    for partition in (cache.partition(name, 1), cache.wait_for_topic(name, 1, timeout=0)):
        assert (partition.topic, type(partition.topic)) == ("orders", str)
    assert cache.topic(name).name == "orders"
    assert list(cache.leaders([name], [1])) == [2]
    assert cache.apply_leader_hint(name, 0, 2, 4).changed == 1
    assert cache.hint([Topics.NEW]) == ["new"]
    assert cache.purge_hints(["new"]) == 1
    assert cache.replica_in(name, 0, "rack") == 2
    assert cache.forget([name]) == 1


class Raw(bytes):
    """A subclass of bytes, as NumPy's bytes_ is."""


def test_a_subclass_of_bytes_is_accepted_as_bytes(cache: MetadataCache, tmp_path: Path) -> None:
    number = Raw(ORDERS_ID)
    assert cache.topic_by_id(number).name == "orders"
    assert cache.apply_leader_hint(number, 0, 2, 4).changed == 1
    assert encode_metadata_request(12, [number]) == encode_metadata_request(12, [ORDERS_ID])
    path = Raw(os.fsencode(tmp_path / "image"))
    cache.image().save(path)
    assert Image.open(path).path == str(tmp_path / "image")
    assert MetadataCache.load(path).last_leader("orders", 0) == 2


# ---- leader hints -------------------------------------------------------------------------------


def test_a_leader_hint_by_id_takes_no_second_id(cache: MetadataCache) -> None:
    with pytest.raises(TypeError, match="topic_id"):
        cache.apply_leader_hint(ORDERS_ID, 0, 2, 4, topic_id=OTHER_ID)
    with pytest.raises(TypeError, match="topic"):
        cache.apply_leader_hint(None, 0, 2, 4)  # type: ignore[arg-type]
    assert cache.apply_leader_hint("orders", 0, 2, 4, topic_id=OTHER_ID).changed == 0
    assert cache.leader("orders", 0) == 1
    assert cache.apply_leader_hint("orders", 0, 2, 4, topic_id=ORDERS_ID).changed == 1


@pytest.mark.parametrize(
    ("node", "error", "what"),
    [
        (Broker(5, "h", 1), ValueError, "broker 5, but the leader is 8"),
        (("h", 65536), ValueError, "port"),
        (("h", -1), ValueError, "port"),
        (("h", "9092"), TypeError, "port"),
        (("", 9092), ValueError, "host"),
        ((b"h", 9092), TypeError, "host"),
        (("h",), TypeError, "node"),
        (("h", 1, None, None), TypeError, "node"),
        (("h", 1, 7), TypeError, "rack"),
        (5, TypeError, "node"),
    ],
)
def test_a_leader_hint_with_an_invalid_node_changes_nothing_and_says_why(
    node: Any, error: type[Exception], what: str, cache: MetadataCache
) -> None:
    version = cache.version
    with pytest.raises(error, match=what):
        cache.apply_leader_hint("orders", 0, 8, 14, node)
    assert (cache.version, cache.broker(8, None), cache.leader("orders", 0)) == (version, None, 1)


# ---- error texts --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "why"), [("", "is empty"), ("x" * 32768, "has 32768 bytes, more than 32767")]
)
def test_the_error_of_a_name_that_no_request_can_carry_contains_its_position(
    name: str, why: str, cache: MetadataCache
) -> None:
    with pytest.raises(ArgumentError, match=rf"topics\[1\] {why}"):
        cache.hint(["ok", name])
    with pytest.raises(ArgumentError, match=rf"topics\[1\] {why}"):
        encode_metadata_request(12, ["ok", name])
    assert cache.stats()["hints"] == 0


def test_the_error_of_an_id_of_zeros_in_a_request_contains_its_position() -> None:
    with pytest.raises(ArgumentError, match=r"topics\[1\] is an id of zeros"):
        encode_metadata_request(12, [ORDERS_ID, bytes(16)])


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"", "at byte 0"),
        (frames.response(12, [T("orders")])[:-1], "at byte"),
        (frames.response(12, [T("orders"), T("orders")]), "twice"),
        (frames.response(12, [T("orders", [P(0), P(0)])]), "twice"),
        (frames.response(12, [], [B(1), B(1)]), "twice"),
        (frames.response(12, [], [B(1, port=65536)]), "port"),
    ],
)
def test_a_malformed_answer_says_at_which_byte_or_what_it_contradicts(
    body: bytes, why: str, cache: MetadataCache
) -> None:
    with pytest.raises(MalformedError, match=why):
        cache.apply(body, 12)


@pytest.mark.parametrize("timeout", ["1", b"1", [], {}])
def test_a_timeout_that_is_not_a_number_is_a_type_error_that_names_it(
    timeout: Any, cache: MetadataCache
) -> None:
    for call in (
        lambda: cache.wait_change(0, timeout),
        lambda: cache.wait_for_topic("new", timeout=timeout),
        lambda: asyncio.run(cache.wait_change_async(0, timeout)),
        lambda: asyncio.run(cache.wait_for_topic_async("new", timeout=timeout)),
    ):
        with pytest.raises(TypeError, match="timeout must be a number of seconds"):
            call()


@pytest.mark.parametrize("since", [1.0, "0", None])
def test_a_version_that_is_not_an_integer_is_a_type_error_that_names_it(
    since: Any, cache: MetadataCache
) -> None:
    for call in (lambda: cache.changes(since), lambda: cache.wait_change(since, 0)):
        with pytest.raises(TypeError, match="since must be an int"):
            call()


def test_the_error_of_an_unnamed_or_unknown_setting_says_so() -> None:
    with pytest.raises(TypeError, match="settings without a name"):
        MetadataCache(900)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="'maximum_age'"):
        MetadataCache(maximum_age=900)  # type: ignore[call-arg]


# ---- subclasses and truth -----------------------------------------------------------------------


class Named(MetadataCache):
    """A cache whose constructor has one more argument."""

    name: str

    def __new__(cls, name: str, **settings: Any) -> Named:
        self = super().__new__(cls, **settings)
        self.name = name
        return self


def test_a_subclass_can_add_arguments_by_overriding_new() -> None:
    cache = Named("mine", max_age=5.0)
    cache.apply(frames.response(12, [T("orders")]), 12, ALL)
    assert (cache.name, cache.leader("orders", 0)) == ("mine", 1)
    assert cache.stats()["all_topics_age"] < 5.0


def test_an_empty_cache_is_true(cache: MetadataCache) -> None:
    assert len(MetadataCache()) == 0
    assert MetadataCache()
    assert cache


# ---- invalid arguments, and absent topics -------------------------------------------------------


def test_a_default_is_for_absent_topics_and_not_for_invalid_arguments(cache: MetadataCache) -> None:
    assert cache.leader("nothing", 0, None) is None
    assert cache.leader("orders", (1 << 31) - 1, None) is None
    for partition in (1 << 31, 1 << 70, -(1 << 31) - 1):
        with pytest.raises(ValueError, match="partition"):
            cache.leader("orders", partition, None)
    with pytest.raises(ValueError, match="surrogates"):
        cache.leader("\ud800", 0, None)
    with pytest.raises(ValueError, match="surrogates"):
        "\ud800" in cache  # noqa: B015
    for word in ("TypeError", "ValueError", "int32"):
        assert word in str(MetadataCache.leader.__doc__)


def test_a_leader_hint_leaves_source_and_age_to_the_answer() -> None:
    clock = Clock()
    cache = MetadataCache(clock=clock, max_age=10.0)
    cache.apply(frames.response(12, [T("orders", [P(0, 1, 3)])]), 12, ALL, 3)
    clock.advance(3.0)
    version = cache.version
    assert cache.apply_leader_hint("orders", 0, 2, 4).changed == 1
    assert (cache.leader("orders", 0), cache.source("orders")) == (2, 3)
    assert cache.age("orders") == pytest.approx(3.0)
    assert [(c.source, c.source_broker, c.new_leader) for c in cache.changes(version)] == [
        ("hint", None, 2)
    ]

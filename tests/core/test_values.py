"""Conversions between Python and C: names, numbers, buffers, requests, responses, settings."""

from __future__ import annotations

import base64
import inspect
import uuid
from array import array
from typing import Any

import frames
import numpy as np
import pytest
from frames import B, P, T

from rdmeta import _core
from rdmeta._core import MetadataCache, decode_metadata_response, encode_metadata_request
from rdmeta.errors import ArgumentError, MalformedError, NotCachedError, UnsupportedVersionError
from rdmeta.model import ALL, Broker, Request

ORDERS_ID = frames.topic_id("orders")
ORDERS = T(
    "orders",
    [P(0, 1, 7, (1, 2, 3), (1, 2)), P(1, -1, 8, (2, 3), (), (2, 3), error=5)],
    id=ORDERS_ID,
    operations=0xF8,
)


def base64_id(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def filled(*topics: T, version: int = 12, **more: Any) -> MetadataCache:
    """Returns a cache after an all-topics answer of these topics."""
    cache = MetadataCache()
    cache.apply(frames.response(version, topics, **more), version, ALL, 1)
    return cache


# ---- decoded responses --------------------------------------------------------------------------


@pytest.mark.parametrize("version", frames.VERSIONS)
def test_a_response_of_every_version_is_decoded_with_every_field(version: int) -> None:
    body = frames.response(
        version, [ORDERS], [B(1, "h1", 9093, "r1"), B(2, "h2")], throttle_ms=9, operations=4
    )
    one = {"error": 0, "partition": 0, "leader": 1, "leader_epoch": 7 if version >= 7 else None}
    two = {"error": 5, "partition": 1, "leader": None, "leader_epoch": 8 if version >= 7 else None}
    assert decode_metadata_response(body, version) == {
        "throttle_ms": 9 if version >= 3 else 0,
        "brokers": [
            {"id": 1, "host": "h1", "port": 9093, "rack": "r1" if version >= 1 else None},
            {"id": 2, "host": "h2", "port": 9092, "rack": None},
        ],
        "cluster_id": "cluster" if version >= 2 else None,
        "controller": 1 if version >= 1 else None,
        "topics": [
            {
                "error": 0,
                "name": "orders",
                "topic_id": base64_id(ORDERS_ID) if version >= 10 else None,
                "internal": False,
                "partitions": [
                    one | {"replicas": [1, 2, 3], "isr": [1, 2], "offline_replicas": []},
                    two
                    | {
                        "replicas": [2, 3],
                        "isr": [],
                        "offline_replicas": [2, 3] if version >= 5 else [],
                    },
                ],
                "operations": 0xF8 if version >= 8 else None,
            }
        ],
        "operations": 4 if 8 <= version <= 10 else None,
        "error": 0,
    }


def test_a_topic_without_a_name_and_a_top_level_error_are_decoded() -> None:
    nameless = T(None, [], id=ORDERS_ID, error=100)
    tree = decode_metadata_response(frames.response(13, [nameless], error=129), 13)
    assert tree["topics"][0]["name"] is None
    assert tree["topics"][0]["topic_id"] == base64_id(ORDERS_ID)
    assert tree["error"] == 129


def test_the_error_of_malformed_bytes_contains_the_position() -> None:
    with pytest.raises(MalformedError, match="at byte 4"):
        decode_metadata_response(b"\0\0\0\0", 12)


def test_an_extra_byte_is_refused_unless_the_caller_tolerates_it() -> None:
    body = frames.response(12, [ORDERS]) + b"\0"
    with pytest.raises(MalformedError):
        decode_metadata_response(body, 12)
    assert decode_metadata_response(body, 12, tolerate_trailing=True)["topics"]


@pytest.mark.parametrize("version", [-1, 14, 32767])
def test_an_unknown_version_is_refused(version: int) -> None:
    with pytest.raises(UnsupportedVersionError):
        decode_metadata_response(b"", version)
    with pytest.raises(UnsupportedVersionError):
        encode_metadata_request(version)
    with pytest.raises(UnsupportedVersionError):
        MetadataCache().apply(b"", version)


@pytest.mark.parametrize("version", [1 << 15, -(1 << 15) - 1, 1 << 70])
def test_a_version_beyond_int16_is_a_value_error(version: int) -> None:
    for call in (decode_metadata_response, MetadataCache().apply):
        with pytest.raises(ValueError, match="version"):
            call(b"", version)


# ---- requests -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "topics", "more"),
    [
        (0, (), {"allow_auto_create": True}),
        (3, ["orders"], {}),
        (11, [ORDERS_ID], {}),
        (7, ALL, {"topic_authorized_operations": True}),
        (7, ALL, {"cluster_authorized_operations": True}),
        (11, ALL, {"cluster_authorized_operations": True}),
    ],
)
def test_a_request_that_a_version_cannot_express_is_refused(
    version: int, topics: Any, more: dict[str, bool]
) -> None:
    with pytest.raises(UnsupportedVersionError, match=f"v{version}"):
        encode_metadata_request(version, topics, **more)


def test_a_request_may_contain_ids_in_any_form() -> None:
    as_bytes = encode_metadata_request(12, [ORDERS_ID])
    assert ORDERS_ID in as_bytes
    assert encode_metadata_request(12, [uuid.UUID(bytes=ORDERS_ID)]) == as_bytes


@pytest.mark.parametrize(
    ("topics", "error"),
    [
        ("orders", TypeError),
        (b"orders", TypeError),
        (None, TypeError),
        ([1], TypeError),
        ([b"short"], ValueError),
        (["orders", ORDERS_ID], ValueError),
        ([""], ArgumentError),
        (["\ud800"], UnicodeEncodeError),
    ],
)
def test_a_request_for_invalid_topics_is_refused(topics: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        encode_metadata_request(12, topics)


# ---- names --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["orders", "bestellungen-ä", "注文", "x" * 300, "\udcff\udc80", "🐝"]
)
def test_a_name_in_any_script_is_found_by_every_lookup(name: str) -> None:
    raw = name.encode("utf-8", "surrogateescape")
    cache = filled(T(raw, [P(0, 3)]))
    assert cache.leader(name, 0) == 3
    assert cache.last_leader(name, 0) == 3
    assert name in cache
    assert list(cache) == [name]
    assert cache.topic(name).name == name
    assert cache.partition(name, 0).topic == name
    assert cache.leaders([name], [0])[0] == 3
    assert [topic.name for topic in cache.topics(prefix=name[:1])] == [name]
    assert next(iter(cache.changes())).topic in (None, name)


class Name(str):
    """A subclass of str, as the members of an Enum and NumPy's str_ are."""


def test_a_subclass_of_str_is_a_name() -> None:
    cache = filled(T("orders"))
    for name in (Name("orders"), np.str_("orders")):
        assert cache.leader(name, 0) == 1
        assert type(cache.partition(name, 0).topic) is str


@pytest.mark.parametrize("name", ["", "x" * 250, "x" * 40_000])
def test_a_lookup_of_an_impossible_name_finds_nothing(name: str) -> None:
    cache = filled(T("orders"))
    assert cache.leader(name, 0, None) is None
    assert name not in cache
    with pytest.raises(NotCachedError):
        cache.leader(name, 0)


@pytest.mark.parametrize("name", [b"orders", 1, None, ["orders"]])
def test_a_name_that_is_not_a_str_is_a_type_error(name: Any) -> None:
    cache = filled(T("orders"))
    for call in (
        lambda: cache.leader(name, 0),
        lambda: cache.leader(name, 0, None),
        lambda: cache.partition(name, 0),
        lambda: cache.topic(name),
        lambda: cache.age(name),
        lambda: cache.state(name),
        lambda: name in cache,
        lambda: cache.hint([name]),
        lambda: cache.topics(prefix=name),
    ):
        with pytest.raises(TypeError, match="must be str"):
            call()


def test_a_surrogate_that_stands_for_no_byte_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="surrogates"):
        MetadataCache().leader("\ud800", 0)


# ---- numbers ------------------------------------------------------------------------------------


class Index:
    def __index__(self) -> int:
        return 1


@pytest.mark.parametrize("partition", [1, True, np.int64(1), np.uint8(1), Index()])
def test_a_partition_may_be_an_integer_of_any_type(partition: Any) -> None:
    cache = filled(T("orders", [P(0, 1), P(1, 2)]))
    assert cache.leader("orders", partition) == 2
    assert cache.partition("orders", partition).partition == 1
    assert list(cache.leaders(["orders"], [partition])) == [2]


@pytest.mark.parametrize("partition", [1.0, "1", None, b"1"])
def test_a_partition_that_is_not_an_integer_is_a_type_error(partition: Any) -> None:
    cache = filled(T("orders", [P(0), P(1)]))
    for call in (cache.leader, cache.last_leader, cache.partition):
        with pytest.raises(TypeError, match="partition must be an int"):
            call("orders", partition)
        with pytest.raises(TypeError, match="partition must be an int"):
            call("orders", partition, None)


@pytest.mark.parametrize("partition", [1 << 31, -(1 << 31) - 1, 1 << 80])
def test_a_partition_beyond_int32_is_a_value_error(partition: int) -> None:
    cache = filled(T("orders"))
    for call in (cache.leader, cache.last_leader, cache.partition):
        with pytest.raises(ValueError, match="partition"):
            call("orders", partition)
    with pytest.raises(ValueError, match="partition"):
        cache.leaders(["orders"], [partition])


@pytest.mark.parametrize("partition", [-(1 << 31), -1, 2, (1 << 30) - 1, 1 << 30, (1 << 31) - 1])
def test_a_lookup_of_a_missing_partition_finds_nothing(partition: int) -> None:
    cache = filled(T("orders", [P(0), P(1)]))
    assert cache.leader("orders", partition, None) is None
    assert cache.state("orders", partition) == _core.NO_PARTITION
    assert list(cache.leaders(["orders"], [partition])) == [_core.NO_PARTITION]


# ---- topic ids ----------------------------------------------------------------------------------


@pytest.mark.parametrize("raw", [ORDERS_ID, b"\xff" * 16, b"\xfb" * 16, bytes(15) + b"\1"])
def test_a_topic_id_has_kafkas_text_form_and_is_found_in_every_form(raw: bytes) -> None:
    cache = filled(T("orders", id=raw))
    assert cache.topic("orders").topic_id == base64_id(raw)
    for form in (raw, uuid.UUID(bytes=raw), base64_id(raw)):
        assert cache.topic_by_id(form).name == "orders"


def test_a_lookup_of_an_unknown_topic_id_finds_nothing() -> None:
    cache = filled(T("orders"))
    assert cache.topic("orders").topic_id is None
    assert cache.topic_by_id(ORDERS_ID, None) is None
    with pytest.raises(NotCachedError):
        cache.topic_by_id(ORDERS_ID)


@pytest.mark.parametrize(
    ("wrong", "error"),
    [("orders", ValueError), ("?" * 22, ValueError), (b"x", ValueError), (7, TypeError)],
)
def test_an_invalid_topic_id_is_refused(wrong: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        MetadataCache().topic_by_id(wrong)


# ---- buffers ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview, np.frombuffer])
def test_a_response_may_be_any_buffer(kind: Any) -> None:
    body = frames.response(12, [T("orders")])
    more = {"dtype": np.uint8} if kind is np.frombuffer else {}
    cache = MetadataCache()
    assert cache.apply(kind(body, **more), 12).changed == 1


@pytest.mark.parametrize("body", ["text", 7, None, memoryview(bytes(200))[::2]])
def test_a_response_that_is_not_a_buffer_is_refused(body: Any) -> None:
    cache = MetadataCache()
    with pytest.raises((TypeError, BufferError)):
        cache.apply(body, 12)
    with pytest.raises((TypeError, BufferError)):
        decode_metadata_response(body, 12)
    assert cache.version == 0


NAMES = ["orders", "nothing", "orders", "orders"]
LEADERS = [1, _core.NOT_CACHED, 2, _core.NO_PARTITION]


@pytest.mark.parametrize(
    "partitions",
    [
        [0, 0, 1, 9],
        (0, 0, 1, 9),
        iter([0, 0, 1, 9]),
        array("i", [0, 0, 1, 9]),
        array("q", [0, 0, 1, 9]),
        np.array([0, 0, 1, 9], dtype=np.int32),
        np.array([0, 0, 1, 9], dtype=np.int64),
        memoryview(array("i", [0, 0, 1, 9])),
    ],
)
def test_leaders_takes_partitions_from_lists_and_buffers(partitions: Any) -> None:
    cache = filled(T("orders", [P(0, 1), P(1, 2)]))
    found = cache.leaders(NAMES, partitions)
    assert memoryview(found).format == "i"
    assert list(found) == LEADERS


@pytest.mark.parametrize("out", [array("i", bytes(16)), np.zeros(4, np.int32)])
def test_leaders_writes_into_the_callers_buffer(out: Any) -> None:
    cache = filled(T("orders", [P(0, 1), P(1, 2)]))
    assert cache.leaders(NAMES, [0, 0, 1, 9], out) is out
    assert list(out) == LEADERS


def test_leaders_of_no_topics_is_empty() -> None:
    assert list(MetadataCache().leaders([], [])) == []


@pytest.mark.parametrize(
    "out",
    [
        array("i", bytes(12)),
        array("q", bytes(32)),
        array("f", bytes(16)),
        bytes(16),
        np.zeros(8, np.int32)[::2],
        [0, 0, 0, 0],
    ],
)
def test_leaders_refuses_an_unsuitable_buffer(out: Any) -> None:
    cache = filled(T("orders"))
    with pytest.raises((TypeError, ValueError, BufferError)):
        cache.leaders(NAMES, [0, 0, 1, 9], out)


@pytest.mark.parametrize(
    ("topics", "partitions", "error"),
    [
        (["orders"], [0, 1], ValueError),
        (["orders"], [], ValueError),
        (["orders"], array("i", [0, 1]), ValueError),
        (["orders"], array("f", [0]), TypeError),
        (["orders"], array("Q", [0]), TypeError),
        (["orders"], "0", TypeError),
        (["orders"], b"0", TypeError),
        ("orders", [0], TypeError),
        (["orders", b"x"], [0, 0], TypeError),
        (["orders"], np.array([1 << 40]), ValueError),
        (["orders"], [1 << 40], ValueError),
        (["orders"], 0, TypeError),
    ],
)
def test_leaders_refuses_topics_and_partitions_that_do_not_match(
    topics: Any, partitions: Any, error: type[Exception]
) -> None:
    with pytest.raises(error):
        filled(T("orders")).leaders(topics, partitions)


# ---- the constructor ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["max_age", "negative_ttl", "denied_ttl", "hint_ttl", "absent_grace", "ring_bytes"]
)
@pytest.mark.parametrize(
    ("value", "error"), [(-1, ValueError), ("1", TypeError), (None, None), (float("nan"), None)]
)
def test_an_impossible_setting_is_refused(
    name: str, value: Any, error: type[Exception] | None
) -> None:
    if value is None:
        assert MetadataCache(**{name: value}).version == 0
    else:
        with pytest.raises(error or (ValueError, TypeError), match=name):
            MetadataCache(**{name: value})


def test_settings_need_known_names() -> None:
    with pytest.raises(TypeError):
        MetadataCache(900.0)  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        MetadataCache(maximum_age=900.0)  # type: ignore[call-arg]


def test_a_time_to_live_may_be_infinite() -> None:
    cache = MetadataCache(max_age=float("inf"))
    cache.apply(frames.response(12, [T("orders")]), 12, ALL)
    assert cache.leader("orders", 0) == 1


@pytest.mark.parametrize("name", ["max_age", "hint_ttl"])
def test_a_time_to_live_of_zero_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} must be more than 0"):
        MetadataCache(**{name: 0.0})  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", [-1, 1 << 64])
def test_a_seed_beyond_64_bits_is_a_value_error(seed: int) -> None:
    with pytest.raises(ValueError, match="seed"):
        MetadataCache(seed=seed)


@pytest.mark.parametrize("clock", [7, "now"])
def test_a_clock_must_be_callable_or_have_times(clock: Any) -> None:
    with pytest.raises(TypeError, match="clock"):
        MetadataCache(clock=clock)


def test_a_clock_that_fails_fails_the_lookup() -> None:
    def broken() -> float:
        raise OSError("no time")

    cache = MetadataCache(clock=broken)
    with pytest.raises(OSError, match="no time"):
        cache.leader("orders", 0, None)
    with pytest.raises(OSError, match="no time"):
        cache.apply(frames.response(12, [T("orders")]), 12)
    assert cache.version == 0


# ---- requests of an applied answer --------------------------------------------------------------


@pytest.mark.parametrize(
    "asked", [None, ALL, ["orders"], ("orders",), [ORDERS_ID], (), Request(), Request(["orders"])]
)
def test_asked_may_have_many_forms(asked: Any) -> None:
    cache = MetadataCache()
    assert cache.apply(frames.response(12, [ORDERS]), 12, asked, 2).changed == 1
    assert cache.source("orders") == 2


@pytest.mark.parametrize("asked", ["orders", b"orders", 7, ["orders", ORDERS_ID]])
def test_an_impossible_request_is_refused(asked: Any) -> None:
    cache = MetadataCache()
    with pytest.raises((TypeError, ValueError)):
        cache.apply(frames.response(12, [ORDERS]), 12, asked)
    assert cache.version == 0


@pytest.mark.parametrize(
    ("node", "rack"),
    [
        (Broker(9, "h9", 9092, "r"), "r"),
        (("h9", 9092), None),
        (("h9", 9092, None), None),
        (("h9", 9092, "r"), "r"),
    ],
)
def test_a_leader_hints_node_may_have_each_form(node: Any, rack: str | None) -> None:
    cache = filled(T("orders", [P(0, 1, 3)], id=ORDERS_ID))
    assert cache.apply_leader_hint("orders", 0, 9, 4, node, topic_id=ORDERS_ID).changed == 1
    assert cache.leader("orders", 0) == 9
    assert cache.broker(9) == Broker(9, "h9", 9092, rack)


@pytest.mark.parametrize("node", [("h9", 9092), ("h9", 9092, None), Broker(9, "h9", 9092)])
def test_a_leader_hint_without_a_rack_keeps_the_known_one(node: Any) -> None:
    cache = filled(T("orders", [P(0, 1, 3)], id=ORDERS_ID))
    cache.apply_leader_hint("orders", 0, 9, 4, ("h9", 9092, "r"))
    cache.apply_leader_hint("orders", 0, 1, 5)
    before = cache.version
    assert cache.apply_leader_hint("orders", 0, 9, 6, node).changed == 1
    assert cache.broker(9).rack == "r"
    assert [change.kind for change in cache.changes(before)] == ["leader_changed"]


@pytest.mark.parametrize("topic", [ORDERS_ID, uuid.UUID(bytes=ORDERS_ID)])
def test_a_leader_hint_may_contain_the_topics_id(topic: Any) -> None:
    cache = filled(T("orders", [P(0, 1, 3)], id=ORDERS_ID))
    assert cache.apply_leader_hint(topic, 0, 2, 4).changed == 1
    assert cache.leader("orders", 0) == 2


def test_methods_have_signatures_and_docstrings() -> None:
    parameters = inspect.signature(MetadataCache.partition).parameters
    assert list(parameters) == ["self", "topic", "partition", "default", "allow_stale"]
    public = [name for name in dir(MetadataCache) if not name.startswith("_")]
    assert all(getattr(MetadataCache, name).__doc__ for name in public)

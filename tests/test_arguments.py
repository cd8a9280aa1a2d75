"""What becomes of arguments that are odd or wrong, and what is said of them."""

from __future__ import annotations

from enum import Enum
from typing import Any

import frames
import pytest
from frames import P, T

from rdmeta import ALL, Broker, MetadataCache

ORDERS_ID, OTHER_ID = frames.topic_id("orders"), frames.topic_id("other")


@pytest.fixture
def cache() -> MetadataCache:
    cache = MetadataCache()
    topics = [T("orders", [P(0, 1, 3), P(1, 2, 3)], id=ORDERS_ID), T("other", id=OTHER_ID)]
    cache.apply(frames.response(12, topics), 12, ALL, 1)
    return cache


# ---- names --------------------------------------------------------------------------------------


class Topics(str, Enum):
    """Names as an application may keep them; str() of one is "Topics.ORDERS"."""

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
        (("h", 1, None), TypeError, "node"),
        (5, TypeError, "node"),
    ],
)
def test_a_leader_hint_whose_node_cannot_be_changes_nothing_and_says_why(
    node: Any, error: type[Exception], what: str, cache: MetadataCache
) -> None:
    version = cache.version
    with pytest.raises(error, match=what):
        cache.apply_leader_hint("orders", 0, 8, 14, node)
    assert (cache.version, cache.broker(8, None), cache.leader("orders", 0)) == (version, None, 1)

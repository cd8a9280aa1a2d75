"""What becomes of arguments that are odd or wrong, and what is said of them."""

from __future__ import annotations

from enum import Enum
from typing import Any

import frames
import pytest
from frames import P, T

from rdmeta import ALL, MetadataCache

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

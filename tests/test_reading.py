"""The lookups, whatever it is that is read."""

from __future__ import annotations

import gc
import uuid

import frames
import pytest
from clocks import Clock
from frames import P, T

from rdmeta import ALL, DENIED, UNKNOWN_TOPIC, NotCachedError, Request
from rdmeta._core import MetadataCache, Reading


def test_lookups_are_the_cache_s_own_methods_which_cpython_calls_at_full_speed() -> None:
    names = [name for name, made in vars(Reading).items() if type(made) is type(str.join)]
    assert "leader" in names
    owners = {name: vars(MetadataCache)[name].__objclass__ for name in names}
    assert owners == dict.fromkeys(names, MetadataCache)


def test_names_are_those_of_the_topics_that_topics_would_give() -> None:
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


def test_why_a_topic_was_asked_for_is_told() -> None:
    cache = MetadataCache()
    raw = frames.topic_id("b")
    body = frames.response(12, topics=[T("a"), T("b", id=raw), T("c")])
    cache.apply(body, 12, ALL)
    assert cache.reason("a") is None
    cache.apply(body, 12, ALL, reason="start")
    assert [cache.reason(name) for name in "abc"] == ["start"] * 3
    cache.apply(body, 12, Request(["a"], reason="not the leader"))
    cache.apply(body, 12, [uuid.UUID(bytes=raw)], reason="unknown id")
    cache.apply(body, 12, None, reason="who knows")
    assert [cache.reason(name) for name in "abc"] == ["not the leader", "unknown id", "start"]
    cache.apply(body, 12, (name for name in "a"), reason="again")
    assert cache.reason("a") == "again"
    cache.apply(body, 12, ["a"])
    assert cache.reason("a") is None
    cache.apply(body, 12, ALL, reason="age")
    assert [cache.reason(name) for name in "abc"] == ["age"] * 3
    with pytest.raises(NotCachedError):
        cache.reason("nope")


def test_a_purge_forgets_why_topics_were_asked_for() -> None:
    cache = MetadataCache()
    body = frames.response(12, topics=[T("a"), T("b")])
    cache.apply(body, 12, ALL, reason="start")
    cache.apply(body, 12, ["a", "b"], reason="again")
    cache.purge()
    cache.apply(body, 12, None)
    assert [cache.reason(name) for name in "ab"] == [None, None]
    cache.apply(body, 12, ALL, reason="start")
    cache.purge()
    cache.apply(body, 12, ["a"], reason="next")
    cache.apply(body, 12, None)
    assert [cache.reason(name) for name in "ab"] == ["next", None]


def test_reasons_of_topics_that_are_gone_are_not_kept_for_ever() -> None:
    cache = MetadataCache()
    cache.apply(frames.response(12, topics=[T("here")]), 12, ["here"], reason="first")
    for turn in range(40):
        names = [f"gone-{turn}-{i}" for i in range(100)]
        missing = [T(name, [], error=3) for name in names]
        cache.apply(frames.response(12, topics=missing), 12, names, reason=str(turn))
    assert cache.reason("here") == "first"
    kept = [each for each in gc.get_referents(cache) if isinstance(each, dict) and "here" in each]
    assert [len(each) < 2000 for each in kept] == [True]

"""The lookups, whatever it is that is read."""

from __future__ import annotations

import frames
from clocks import Clock
from frames import P, T

from rdmeta import DENIED, UNKNOWN_TOPIC
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

"""attach(): following the state that another process publishes."""

from __future__ import annotations

import pickle
import random
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import frames
import pytest
from answers import apply_topics
from clocks import Clock
from frames import B, P, T

from rdmeta import ALL, Attached, MetadataCache, StaleError, attach


def test_an_attached_state_follows_the_file_and_the_clock(tmp_path: Path) -> None:
    clock, path = Clock(), tmp_path / "image"
    cache = MetadataCache(clock=clock, max_age=60)
    apply_topics(cache, 1, 1)
    cache.image().save(path)
    attached = Attached(path, 0.02, clock=clock)
    assert attached.leader("orders", 0) == 1
    apply_topics(cache, 2, 2)
    cache.image().save(path)
    clock.advance(0.03)
    assert attached.leader("orders", 0) == 2
    assert attached.version == cache.version
    clock.advance(100)
    assert attached.leader("orders", 0, None) is None
    with pytest.raises(StaleError):
        attached.leader("orders", 0)
    assert attached.last_leader("orders", 0) == 2
    assert attached.topic("orders", allow_stale=True).partitions[0].leader == 2
    assert 100 <= attached.age("orders") <= 101
    assert attached.image().leader("orders", 0) == 2  # the image is of an earlier time
    with pytest.raises(TypeError, match="clock"):
        pickle.dumps(attached)


def test_an_age_is_of_one_state(tmp_path: Path) -> None:
    """Also if the publisher restarts with another max age and no lookup has looked since."""
    clock, path = Clock(), tmp_path / "image"
    short, long = (MetadataCache(clock=clock, max_age=age) for age in (60, 900))
    apply_topics(short)
    short.image().save(path)
    attached = Attached(path, 1000, clock=clock)
    assert attached.age("orders") == 0
    clock.advance(5)
    apply_topics(long)
    long.image().save(path)
    assert attached.age("orders") == 5
    assert attached.session == long.session  # this reads the file
    assert attached.age("orders") == 0


def test_no_lookup_returns_an_older_state_than_another(tmp_path: Path) -> None:
    """Each kind of lookup has its own reader; once one has seen a state, all see it."""
    path, clock = tmp_path / "image", Clock()
    cache = MetadataCache(clock=clock)

    def publish(generation: int) -> None:
        topics = [T("orders", [P(0, generation, generation)])]
        brokers = [B(1, port=generation)]
        cache.apply(frames.response(12, topics=topics, brokers=brokers), 12, ALL)
        cache.image().save(path)

    publish(1)
    attached = Attached(path, 10, clock=clock)
    lookups: list[Callable[[], object]] = [
        lambda: attached.version,
        lambda: attached.leader("orders", 0),
        lambda: attached.last_leader("orders", 0),
        lambda: attached.topic("orders").partitions[0].leader_epoch,
        lambda: attached.topics(allow_stale=True)[0].partitions[0].leader_epoch,
        lambda: attached.brokers[0].port,
        lambda: attached.broker(1).port,
    ]
    for lookup in lookups:
        lookup()
    seed = random.randrange(1 << 32)
    print(f"seed={seed}")
    chance = random.Random(seed)
    for generation in range(2, 40):
        publish(generation)
        assert attached.version == generation  # this reads the file at once
        chance.shuffle(lookups)
        assert {lookup() for lookup in lookups} == {generation}


def test_brokers_alone_are_followed_too(tmp_path: Path) -> None:
    path, clock = tmp_path / "image", Clock()
    cache = MetadataCache(clock=clock)
    cache.apply(frames.response(12, brokers=[B(1)]), 12, ())
    cache.image().save(path)
    attached = Attached(path, 0.02, clock=clock)
    assert [b.id for b in attached.brokers] == [1]
    cache.apply(frames.response(12, brokers=[B(1), B(2)], controller=2), 12, ())
    cache.image().save(path)
    clock.advance(1)
    assert [b.id for b in attached.brokers] == [1, 2]
    assert attached.controller == 2


def test_an_attached_state_stays_while_the_file_is_missing_or_damaged(tmp_path: Path) -> None:
    path = tmp_path / "image"
    cache = MetadataCache()
    apply_topics(cache)
    cache.image().save(path)
    attached = attach(path, look=0.001)
    for spoil in (path.unlink, lambda: path.write_bytes(b"no image")):
        spoil()
        assert attached.version == cache.version
        assert attached.leader("orders", 0) == 1
    apply_topics(cache, 2, 2)
    cache.image().save(path)
    assert (attached.version, attached.session) == (cache.version, cache.session)


def test_attach_waits_for_the_first_file(tmp_path: Path) -> None:
    cache, path = MetadataCache(), tmp_path / "image"
    apply_topics(cache)
    threading.Timer(0.1, cache.image().save, (path,)).start()
    assert attach(path, timeout=30).leader("orders", 0) == 1
    with pytest.raises(FileNotFoundError):
        attach(tmp_path / "other", timeout=0.05)


@pytest.mark.parametrize(
    ("arguments", "error", "what"),
    [
        ({"timeout": -1}, ValueError, "timeout must be seconds >= 0, not -1"),
        ({"timeout": float("nan")}, ValueError, "timeout"),
        ({"timeout": "1"}, TypeError, "timeout must be a number of seconds, not str"),
        ({"look": None}, TypeError, "look must be a number of seconds, not NoneType"),
        ({"look": 0}, ValueError, "look must be more than 0 seconds"),
        ({"look": float("nan")}, ValueError, "look"),
    ],
)
def test_the_error_of_an_invalid_argument_names_it(
    arguments: dict[str, Any], error: type[Exception], what: str, tmp_path: Path
) -> None:
    with pytest.raises(error, match=what):
        attach(tmp_path / "none", **arguments)


def test_a_path_of_another_type_is_refused() -> None:
    with pytest.raises(TypeError, match="int"):
        attach(7)  # type: ignore[arg-type]


def test_attach_without_a_timeout_sees_the_first_file_however_seldom_lookups_look(
    tmp_path: Path,
) -> None:
    cache, path = MetadataCache(), tmp_path / "image"
    apply_topics(cache)
    threading.Timer(0.1, cache.image().save, (path,)).start()
    assert attach(path, look=1000, timeout=None).leader("orders", 0) == 1


def test_an_attached_state_can_be_pickled_and_follows_from_any_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = MetadataCache()
    apply_topics(cache)
    cache.image().save(tmp_path / "image")
    monkeypatch.chdir(tmp_path)
    attached = attach("image", look=0.5, copy=True)
    monkeypatch.chdir("/")
    again = pickle.loads(pickle.dumps(attached))
    assert again.path == str(tmp_path / "image")
    assert again.leader("orders", 0) == 1
    assert repr(again) == repr(attached)

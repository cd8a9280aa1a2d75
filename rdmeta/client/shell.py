"""The parts that both clients share: their making, arguments, lookups and listeners."""

from __future__ import annotations

import copy
import math
import os
import threading
import time
import weakref
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias
from uuid import UUID

from rdmeta import config
from rdmeta._core import MetadataCache
from rdmeta.client.actions import Finish, OtherRequest
from rdmeta.client.driver import Begin, Driver, Topics, closed
from rdmeta.client.listeners import ChangeInbox, EventInbox, Inbox, Listener
from rdmeta.core.waits import seconds_of
from rdmeta.errors import (
    Error,
    ForkedError,
    InvalidTopicError,
    MalformedError,
    UnsupportedVersionError,
)
from rdmeta.model import All, Changes, Partition, Topic, topic_fault
from rdmeta.net import describe_cluster, describe_configs, describe_quorum

if TYPE_CHECKING:
    from rdmeta.client.actions import Problem, Updated
    from rdmeta.client.listeners import Delivery
    from rdmeta.net.describe_cluster import ClusterDescription
    from rdmeta.net.describe_configs import TopicConfig
    from rdmeta.net.describe_quorum import Quorum

__all__ = [
    "QUORUM",
    "Refreshed",
    "Shell",
    "asking",
    "checked_complaint",
    "checked_partition",
    "cluster_call",
    "config_calls",
    "names_of",
    "nothing",
    "only",
    "outcome",
    "parsed_cluster",
    "parsed_configs",
    "parsed_quorum",
    "refreshed",
    "without_quorum",
]

Refreshed: TypeAlias = "None | str | All | Collection[str] | Collection[UUID]"
"""The topics of a refresh: needed ones (None), ALL, () for brokers only, names, or ids."""

QUORUM = OtherRequest(
    describe_quorum.DESCRIBE_QUORUM,
    describe_quorum.LOWEST,
    describe_quorum.HIGHEST,
    describe_quorum.encode_request,
)

# The topics of one DescribeConfigs request. An answer with all keys has some 4 KiB per topic.
_CONFIGS = 1000

Hint: TypeAlias = "tuple[str, UUID | bytes | None]"


class Shell:
    """A client without its way of waiting."""

    def __init__(
        self,
        conf: Mapping[str, Any],
        *,
        cache: MetadataCache | None = None,
        topics: Topics = None,
        sticky: bool = False,
    ) -> None:
        self._config = config.parse(conf)
        if cache is None:
            max_age = self._config.max_age
            cache = MetadataCache(max_age=math.inf if max_age is None else max_age)
        elif not isinstance(cache, MetadataCache):
            raise TypeError(f"cache must be a MetadataCache, not {type(cache).__name__}")
        else:
            _check_writable(cache)
        self._pid = os.getpid()
        self._cache = cache
        self._driver = Driver(cache, self._config, topics, sticky)
        self._lookup: Callable[..., int | None] = nothing
        self._touched = self._driver.touched
        self._needed: set[str] = set()
        self._listeners: dict[Listener, Delivery] = {}
        self._registering = threading.RLock()
        _shells.add(self)

    def __reduce__(self) -> Any:
        raise TypeError(f"a {type(self).__name__} cannot be pickled or copied: it is connected")

    def __repr__(self) -> str:
        """Returns the servers, the cluster and the state; no other setting, as some are secrets."""
        if not hasattr(self, "_driver"):  # its configuration was refused
            return f"<rdmeta.{type(self).__name__} not made>"
        servers = ",".join(map(str, self._driver.servers))
        name, state = type(self).__name__, self._driver.state
        return f"<rdmeta.{name} {servers} cluster_id={self._cache.cluster_id!r} {state}>"

    @property
    def cache(self) -> MetadataCache:
        """The cache that the client keeps true."""
        return self._cache

    def on_change(self, function: Callable[[Changes], object]) -> Callable[[], None]:
        """Has `function` called with the Changes since its last call, or since now.

        Returns a function that ends the calls. Listeners run beside the client, so a slow one gets
        fewer and larger calls. An exception in one is logged and stops nothing.
        """
        return self._listen(function, ChangeInbox(self._cache), self._driver.on_change)

    def on_update(self, function: Callable[[tuple[Updated, ...]], object]) -> Callable[[], None]:
        """Has `function` called with a tuple of Updated, one for each answer since its last call.

        An Updated has the Request, the Applied, the cluster id and the Node that answered: a full
        answer is one whose `request.topics` is ALL. The rest is as for on_change(); a function that
        hangs misses all but the newest 10 000 answers.
        """
        return self._listen(function, EventInbox(), self._driver.on_update)

    def on_error(self, function: Callable[[tuple[Problem, ...]], object]) -> Callable[[], None]:
        """Has `function` called with a tuple of Problem, one for each failure since its last call.

        A Problem has the error, the Node or None, and a text. The rest is as for on_update().
        """
        return self._listen(function, EventInbox(), self._driver.on_error)

    def _listen(
        self,
        function: Callable[[Any], object],
        inbox: Inbox,
        calls: list[Callable[..., None]],
    ) -> Callable[[], None]:
        """Registers a listener; returns the function that removes it."""
        self._check()
        self._check_caller()
        if self._driver.is_closed:
            raise closed()
        listener = Listener(function, inbox)
        delivery = self._delivery(listener)
        call: Callable[..., None] = delivery.wake
        if isinstance(inbox, EventInbox):
            call = inbox.filling(delivery.wake)

        def remove() -> None:
            if os.getpid() != self._pid:  # another thread may have had the lock at the fork
                return
            with self._registering:
                if self._listeners.pop(listener, None) is not None:
                    calls.remove(call)
                    delivery.close()

        with self._registering:
            self._listeners[listener] = delivery
            calls.append(call)
            if self._is_running():
                delivery.start()
        return remove

    def _start_listeners(self) -> None:
        with self._registering:
            for delivery in self._listeners.values():
                delivery.start()

    def _taken_listeners(self) -> dict[Listener, Delivery]:
        """Returns all listeners, which the caller ends: a delivery does not keep its listener."""
        with self._registering:
            listeners, self._listeners = self._listeners, {}
        return listeners

    def _delivery(self, listener: Listener) -> Delivery:
        raise NotImplementedError

    def _is_running(self) -> bool:
        raise NotImplementedError

    def _check_caller(self) -> None:
        """Raises Error if listeners cannot be added from here."""

    def _stats_anywhere(self) -> dict[str, Any]:
        """Returns what stats() does, from any thread; raises Error if it cannot be read."""
        raise NotImplementedError

    # ---- checks and lookups ---------------------------------------------------------------------

    def _check(self) -> None:
        if os.getpid() != self._pid:
            raise ForkedError(
                "the child of a fork cannot use its parent's client: make a new one there, or"
                " attach() to what the parent publishes; the cache can be read"
            )

    def _deadline(self, timeout: float | None) -> float:
        """Returns the deadline on time.monotonic()'s clock; None is max.block.ms."""
        seconds = self._config.max_block if timeout is None else seconds_of(timeout, "timeout")
        return time.monotonic() + seconds

    def _is_kept(self, names: tuple[str, ...]) -> bool:
        """Returns whether need() has nothing to do: the names are needed already, and valid."""
        if self._config.max_idle or not self._needed.issuperset(names):
            return False
        return not any(map(self._cache.state, names))

    def _note(self, names: tuple[str, ...]) -> None:
        """Notes needed topics, unless the policy forgets them by time."""
        if not self._config.max_idle:
            self._needed.update(names)

    def _must_not_wait(self, partition: int, timeout: float | None) -> bool:
        """Returns whether a missed lookup raises its error at once."""
        return timeout == 0 or partition < 0

    def _hint(self, topic: str | UUID | bytes, topic_id: UUID | bytes | None) -> Hint | None:
        """Returns the name and id of a leader hint's topic, None for an id that is not known."""
        if isinstance(topic, str):
            return topic, topic_id
        known = self._cache.topic_by_id(topic, None)
        return None if known is None else (known.name, topic)

    def _look_up(self) -> None:
        """Has calls read the cache themselves, once the policy holds no outcome of the first."""
        if self._lookup is nothing and not self._driver.policy.is_holding:
            self._lookup = self._cache.leader

    def _known(self, topic: str, partition: int | None) -> Topic | Partition | None:
        """Returns what wait_for_topic() need not wait for, None if the policy has a say in it."""
        return None if self._lookup is nothing else self._found(topic, partition)

    def _found(self, topic: str, partition: int | None) -> Topic | Partition | None:
        """Returns what wait_for_topic() waits for, None if it is not there yet."""
        if partition is None:
            return self._cache.topic(topic, None)
        found = self._cache.partition(topic, partition, None)
        return found if found is not None and found.leader is not None else None


def names_of(topics: str | Iterable[str]) -> tuple[str, ...]:
    """Returns one name, or some, as a tuple; raises TypeError. The policy checks the names."""
    return (topics,) if isinstance(topics, str) else tuple(topics)


def nothing(topic: str, partition: int, default: None) -> None:
    """Finds no leader: a client that does not run looks nothing up, so its calls say why."""


def _check_writable(cache: MetadataCache) -> None:
    """Raises ForkedError for a cache that the child of a fork has from its parent."""
    try:
        cache.request(())
    except ForkedError:
        raise ForkedError(
            "the child of a fork cannot write to its parent's cache; make a new MetadataCache"
        ) from None


def checked_complaint(topic: str, partition: int, number: int) -> None:
    """Raises TypeError for what is no complaint, ValueError for a negative partition."""
    checked_partition(partition)
    if not (isinstance(topic, str) and isinstance(partition, int) and isinstance(number, int)):
        raise TypeError("a complaint has a topic's name, a partition and a number, both int")


def checked_partition(partition: int | None) -> int | None:
    """Returns the partition; raises TypeError, ValueError if it is negative."""
    if partition is not None:
        if not isinstance(partition, int):
            raise TypeError(f"a partition is an int, not {type(partition).__name__}")
        if partition < 0:
            raise ValueError(f"partition must be >= 0, not {partition}")
    return partition


def refreshed(topics: Refreshed) -> Any:
    """Returns the topics of a refresh as the policy takes and checks them; raises TypeError."""
    if topics is None or isinstance(topics, All):
        return topics
    return (topics,) if isinstance(topics, str) else tuple(topics)


def only(names: frozenset[str] | None, changes: Changes) -> Changes:
    """Returns the changes of those topics, or all of them."""
    if names is None or changes.resync:
        return changes
    found = tuple(change for change in changes if change.topic in names)
    return Changes(found, changes.until, False)


def asking(call: OtherRequest, deadline: float) -> Begin:
    """Returns the function that begins a call."""
    return lambda policy, now: policy.call(now, call, deadline)


def cluster_call(fenced: bool) -> OtherRequest:
    """Returns the request for the cluster's brokers, with `fenced` ones (v2 only) if wanted."""
    lowest = 2 if fenced else describe_cluster.LOWEST
    encode = partial(describe_cluster.encode_request, fenced=fenced)
    return OtherRequest(describe_cluster.DESCRIBE_CLUSTER, lowest, describe_cluster.HIGHEST, encode)


def config_calls(
    topics: str | Iterable[str], keys: str | Iterable[str] | None
) -> tuple[dict[str, TopicConfig], list[tuple[tuple[str, ...], OtherRequest]]]:
    """Returns the requests for configurations of topics, each with its names.

    Before them it returns the results of names that no topic can have: no broker is asked for
    these. Raises TypeError, and ValueError for an empty `keys`.
    """
    names = list(dict.fromkeys(_checked_texts(topics, "a topic's name")))
    wanted = None if keys is None else _checked_texts(keys, "a configuration key")
    if wanted == ():
        raise ValueError("keys is empty: leave it out for all keys")
    faults = {name: fault for name in names if (fault := topic_fault(name))}
    results = {name: _no_config(InvalidTopicError(fault)) for name, fault in faults.items()}
    names = [name for name in names if name not in faults]
    parts = [tuple(names[i : i + _CONFIGS]) for i in range(0, len(names), _CONFIGS)]
    return results, [(part, _config_call(part, wanted)) for part in parts]


def _config_call(names: tuple[str, ...], keys: tuple[str, ...] | None) -> OtherRequest:
    encode = partial(describe_configs.encode_request, topics=names, keys=keys)
    return OtherRequest(
        describe_configs.DESCRIBE_CONFIGS, describe_configs.LOWEST, describe_configs.HIGHEST, encode
    )


def _checked_texts(texts: str | Iterable[str], what: str) -> tuple[str, ...]:
    found = names_of(texts)
    for each in found:
        if not isinstance(each, str):
            raise TypeError(f"{what} is a str, not {type(each).__name__}")
    return found


def _no_config(error: Error) -> TopicConfig:
    return describe_configs.TopicConfig(error, {})


def parsed_configs(finish: Finish, names: Iterable[str]) -> dict[str, TopicConfig]:
    """Returns the answer to a call of config_calls() for those names; raises its error."""
    version, body = answer_of(finish)
    found = describe_configs.parse_response(body, version)
    missing = MalformedError("the broker's answer does not have the topic")
    return {name: found.get(name) or _no_config(missing) for name in names}


def parsed_quorum(finish: Finish) -> Quorum:
    """Returns the answer to QUORUM; raises its error."""
    version, body = answer_of(finish)
    return describe_quorum.parse_response(body, version)


@contextmanager
def without_quorum() -> Iterator[None]:
    """Says in the error of a broker without DescribeQuorum what the cluster seems to be."""
    try:
        yield
    except UnsupportedVersionError as error:
        if error.api_key != describe_quorum.DESCRIBE_QUORUM:  # the servers may be no brokers
            raise
        text = "the cluster has no quorum: it seems to run with ZooKeeper, or on Kafka before 3.3"
        raise UnsupportedVersionError(f"{text} ({error})") from error


def parsed_cluster(finish: Finish) -> ClusterDescription:
    """Returns the answer to cluster_call(); raises its error."""
    version, body = answer_of(finish)
    return describe_cluster.parse_response(body, version)


def answer_of(finish: Finish) -> tuple[int, bytes]:
    """Returns the version and body of a call's answer; raises its error."""
    value = outcome(finish).value
    if value is None:
        raise Error("the call has no answer")
    return value


def outcome(finish: Finish) -> Finish:
    """Returns the Finish; raises its error, of which every waiter gets a copy."""
    if finish.error is not None:
        error = copy.copy(finish.error)
        error.__cause__ = finish.error.__cause__
        raise error
    return finish


_shells: weakref.WeakSet[Shell] = weakref.WeakSet()


def _in_child() -> None:
    for shell in list(_shells):
        shell._lookup = nothing


os.register_at_fork(after_in_child=_in_child)

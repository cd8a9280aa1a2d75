"""All of both clients but their ways of waiting.

Client and AsyncClient say how the policy is asked and how an outcome is waited for. The calls that
do not wait are here. For one that waits there is a pair: what begins it, and what reads its result
from the Finish.
"""

from __future__ import annotations

import copy
import math
import os
import threading
import time
import weakref
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar
from uuid import UUID

from rdmeta import config
from rdmeta._core import MetadataCache
from rdmeta.client.actions import Finish, OtherRequest
from rdmeta.client.driver import Act, Begin, Driver, SubscribedTopics, closed
from rdmeta.client.listeners import ChangeInbox, EventInbox, Inbox, Listener
from rdmeta.core.waits import seconds_of
from rdmeta.errors import (
    Error,
    ForkedError,
    InvalidTopicError,
    MalformedError,
    UnsupportedVersionError,
)
from rdmeta.model import All, Applied, Broker, Changes, Partition, Topic, topic_fault
from rdmeta.net import describe_cluster, describe_configs, describe_quorum

if TYPE_CHECKING:
    from rdmeta.client.actions import Node, Problem, Updated
    from rdmeta.client.listeners import Delivery
    from rdmeta.net.describe_cluster import ClusterDescription
    from rdmeta.net.describe_configs import TopicConfig
    from rdmeta.net.describe_quorum import Quorum

R = TypeVar("R")

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

WaitingCall: TypeAlias = tuple[Begin, Callable[[Finish], R]]
"""A call that waits: what begins it, and what returns its result, or raises its error."""

Hint: TypeAlias = "tuple[str, UUID | bytes | None]"


class Shell:
    """A client without its way of waiting."""

    def __init__(
        self,
        conf: Mapping[str, Any],
        *,
        cache: MetadataCache | None = None,
        topics: SubscribedTopics = None,
        sticky: bool = False,
    ) -> None:
        """Checks the configuration and touches no network; the arguments are those of Client."""
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
        self._check_not_forked()
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

    def stats(self) -> dict[str, Any]:
        """See `Client.stats`."""
        self._check_not_forked()
        return self._driver.stats()

    def _stats_anywhere(self) -> dict[str, Any]:
        """Returns what stats() does, from any thread; raises Error if it cannot be read."""
        return self.stats()

    # ---- the way of waiting ---------------------------------------------------------------------

    def _running(self) -> object:
        """Starts the client if it is new; raises Error, ForkedError."""
        raise NotImplementedError

    def _ask(self, act: Act[R]) -> R:
        """Returns what `act` returns for the policy of the started client."""
        raise NotImplementedError

    def _tell(self, act: Act[object]) -> None:
        """Gives the policy something to do, soon."""
        self._ask(act)

    # ---- topics ---------------------------------------------------------------------------------

    def need(self, topics: str | Iterable[str]) -> None:
        """Has a topic, or several, kept true from now on; it returns at once.

        New names are asked for at once. Raises InvalidTopicError for a name that no topic can have,
        ArgumentError beyond `metadata.max.topics`, TypeError.
        """
        names = names_of(topics)
        self._running()
        if self._is_kept(names):
            return
        is_new = not self._needed.issuperset(names)
        (self._ask if is_new else self._tell)(lambda policy, now: policy.need(names, now))
        self._note(names)

    def forget(self, topics: str | Iterable[str]) -> None:
        """Ends what need() began: the topics are not asked for, and leave the cache."""
        names = names_of(topics)
        self._running()
        self._needed.difference_update(names)
        self._ask(lambda policy, now: policy.forget(names, now))

    def subscribe(self, topics: SubscribedTopics) -> None:
        """Replaces what `topics=` gave: names, "^patterns", ALL, or None for what is needed.

        Raises TypeError and ValueError for what is no name and no pattern.
        """
        self._ask(lambda policy, now: policy.subscribe(topics, now))

    # ---- what the application has seen ----------------------------------------------------------

    def leader_unavailable(self, topic: str, partition: int, code: int) -> None:
        """Tells that a broker answered a request for that partition with Kafka's error `code`.

        NOT_LEADER_OR_FOLLOWER and Kafka's other InvalidMetadata codes have the topic asked for
        soon, and again until its epoch moves or 30 s are over. It returns at once.
        """
        checked_complaint(topic, partition, code)
        self._tell(lambda policy, now: policy.leader_unavailable(topic, partition, code, now))

    def epoch_seen(self, topic: str, partition: int, epoch: int) -> None:
        """Tells which leader epoch an answer of a broker had (KIP-320).

        If it is newer than the known one, the topic is asked for soon. It returns at once.
        """
        checked_complaint(topic, partition, epoch)
        self._tell(lambda policy, now: policy.epoch_seen(topic, partition, epoch, now))

    def leader_hint(
        self,
        topic: str | UUID | bytes,
        partition: int,
        leader: int,
        leader_epoch: int,
        node: Broker | tuple[str, int] | tuple[str, int, str | None] | None = None,
        *,
        topic_id: UUID | bytes | None = None,
    ) -> Applied:
        """Gives the cache a leader from a Produce or Fetch answer (KIP-951); returns its Applied.

        The arguments and errors are those of `MetadataCache.apply_leader_hint`. If the cache took
        it, the topic is asked for with backoff.
        """
        self._running()
        hint = self._hint(topic, topic_id)
        if hint is None:  # the cache ignores it
            return self._cache.apply_leader_hint(topic, partition, leader, leader_epoch, node)
        name, id = hint
        return self._ask(
            lambda policy, now: policy.leader_hint(
                name, partition, leader, leader_epoch, node, now, id
            )
        )

    def least_loaded(self) -> Node | None:
        """Returns the node that the client would ask next, None if none can be used."""
        return self._ask(lambda policy, now: policy.least_loaded(now))

    # ---- calls that wait: what begins each, and what its Finish says ----------------------------

    def _refreshing(
        self, topics: Refreshed, force: bool, timeout: float | None
    ) -> WaitingCall[int]:
        wanted, deadline = refreshed(topics), self._deadline(timeout)
        return (
            lambda policy, now: policy.refresh(now, wanted, force, deadline),
            lambda finish: outcome(finish).version,
        )

    def _begin_only(self, call: WaitingCall[object]) -> None:
        """Begins a call whose outcome nobody waits for."""
        self._ask(lambda policy, now: policy.cancel(call[0](policy, now), now))

    def _finding(
        self, topic: str, partition: int | None, timeout: float | None
    ) -> tuple[Topic | Partition | None, WaitingCall[Topic | Partition | None]]:
        """Returns what wait_for_topic() need not wait for, and the call for what is not there."""
        checked_partition(partition)
        deadline = self._deadline(timeout)

        def parse(finish: Finish) -> Topic | Partition | None:
            outcome(finish)
            return self._looked_up(topic, partition)

        self._running()
        # Until the first outcome the policy has a say in it.
        found = None if self._lookup is nothing else self._looked_up(topic, partition)
        if found is not None:
            self.need(topic)
        return found, (
            lambda policy, now: policy.wait_for_topic(now, topic, partition, deadline),
            parse,
        )

    def _missed(self, topic: str, partition: int, timeout: float | None) -> int | None:
        """Returns the leader that a lookup missed, None if leader() waits for it.

        Raises the error of the lookup if leader() must not wait.
        """
        if timeout != 0 and partition >= 0:
            return None
        self.need(topic)
        return self._cache.leader(topic, partition)

    def _quorum_call(self, timeout: float | None) -> WaitingCall[Quorum]:
        begin, parse = waiting_call(QUORUM, self._deadline(timeout), describe_quorum.parse_response)

        def explained(finish: Finish) -> Quorum:
            try:
                return parse(finish)
            except UnsupportedVersionError as error:
                if error.api_key != QUORUM.api_key:  # the servers may be no brokers
                    raise
                text = "the cluster has no quorum: it seems to run with ZooKeeper, or on Kafka"
                raise UnsupportedVersionError(f"{text} before 3.3 ({error})") from error

        return begin, explained

    def _cluster_call(self, fenced: bool, timeout: float | None) -> WaitingCall[ClusterDescription]:
        """Returns the call for the brokers; only v2 can list `fenced` ones."""
        encode = partial(describe_cluster.encode_request, fenced=fenced)
        lowest = 2 if fenced else describe_cluster.LOWEST
        highest = describe_cluster.HIGHEST
        call = OtherRequest(describe_cluster.DESCRIBE_CLUSTER, lowest, highest, encode)
        return waiting_call(call, self._deadline(timeout), describe_cluster.parse_response)

    def _configs_call(
        self, topics: str | Iterable[str], keys: str | Iterable[str] | None, timeout: float | None
    ) -> tuple[dict[str, TopicConfig], list[WaitingCall[dict[str, TopicConfig]]]]:
        """Returns the calls for configurations of topics.

        Before them it returns the results of names that no topic can have: no broker is asked for
        these. Raises TypeError, and ValueError for an empty `keys`.
        """
        deadline = self._deadline(timeout)
        names = list(dict.fromkeys(_checked_texts(topics, "a topic's name")))
        wanted = None if keys is None else _checked_texts(keys, "a configuration key")
        if wanted == ():
            raise ValueError("keys is empty: leave it out for all keys")
        self._running()
        faults = {name: fault for name in names if (fault := topic_fault(name))}
        results = {name: _no_config(InvalidTopicError(fault)) for name, fault in faults.items()}
        names = [name for name in names if name not in faults]
        parts = [tuple(names[i : i + _CONFIGS]) for i in range(0, len(names), _CONFIGS)]
        return results, [_config_call(part, wanted, deadline) for part in parts]

    # ---- checks and lookups ---------------------------------------------------------------------

    def _check_not_forked(self) -> None:
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

    def _looked_up(self, topic: str, partition: int | None) -> Topic | Partition | None:
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


def checked_partition(partition: int | None) -> None:
    """Raises TypeError for what is no partition, ValueError if it is negative."""
    if partition is not None:
        if not isinstance(partition, int):
            raise TypeError(f"a partition is an int, not {type(partition).__name__}")
        if partition < 0:
            raise ValueError(f"partition must be >= 0, not {partition}")


def refreshed(topics: Refreshed) -> Any:
    """Returns the topics of a refresh as the policy takes and checks them; raises TypeError."""
    if topics is None or isinstance(topics, All):
        return topics
    return (topics,) if isinstance(topics, str) else tuple(topics)


def _checked_texts(texts: str | Iterable[str], what: str) -> tuple[str, ...]:
    found = names_of(texts)
    for each in found:
        if not isinstance(each, str):
            raise TypeError(f"{what} is a str, not {type(each).__name__}")
    return found


def _config_call(
    names: tuple[str, ...], keys: tuple[str, ...] | None, deadline: float
) -> WaitingCall[dict[str, TopicConfig]]:
    api = describe_configs
    encode = partial(api.encode_request, topics=names, keys=keys)

    def parse(body: bytes, version: int) -> dict[str, TopicConfig]:
        found = api.parse_response(body, version)
        missing = MalformedError("the broker's answer does not have the topic")
        return {name: found.get(name) or _no_config(missing) for name in names}

    return waiting_call(
        OtherRequest(api.DESCRIBE_CONFIGS, api.LOWEST, api.HIGHEST, encode), deadline, parse
    )


def _no_config(error: Error) -> TopicConfig:
    return describe_configs.TopicConfig(error, {})


def waiting_call(
    call: OtherRequest, deadline: float, parse: Callable[[bytes, int], R]
) -> WaitingCall[R]:
    """Returns a request as a call that waits; `parse` takes the answer's body and version."""

    def parsed(finish: Finish) -> R:
        value = outcome(finish).value
        if value is None:
            raise Error("the call has no answer")
        version, body = value
        return parse(body, version)

    return lambda policy, now: policy.call(now, call, deadline), parsed


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

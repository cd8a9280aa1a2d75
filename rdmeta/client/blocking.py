"""Client: a client for threads, which runs in an event loop of its own."""

from __future__ import annotations

import os
import sys
import time
import weakref
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

from rdmeta.client.driver import Act, SubscribedTopics
from rdmeta.client.listeners import LISTENERS_S, Delivery, Listener, ThreadDelivery
from rdmeta.client.shell import Refreshed, Shell, WaitingCall, nothing
from rdmeta.client.thread import DriverThread
from rdmeta.errors import Error
from rdmeta.model import Partition, Topic

if TYPE_CHECKING:
    from rdmeta._core import MetadataCache
    from rdmeta.net.describe_cluster import ClusterDescription
    from rdmeta.net.describe_configs import TopicConfig
    from rdmeta.net.describe_quorum import Quorum

R = TypeVar("R")

_GEVENT = ("threading", "_thread", "socket", "select")
_EVENTLET = ("thread", "socket", "select")
_REFUSED = (
    "rdmeta.Client needs a thread of the system, and {0} has patched threads, sockets or select:"
    " its loop would stop every greenlet. Refresh in a process without {0}, and attach() to what"
    " it publishes"
)


class Client(Shell):
    """Keeps a cache of a cluster's metadata true, in one daemon thread; threads may share it.

        with rdmeta.Client({"bootstrap.servers": "localhost:9092"}) as client:
            client.leader("orders", 3)                      # a broker id
            client.cache.topic("orders")                    # all lookups of the cache

    `with`, start() or the first call starts it. A call blocks only its own thread, at most
    `timeout` seconds (by default `max.block.ms`); Ctrl-C ends it. A client that nothing refers to
    any more closes itself. The child of a fork can read `cache`, and every other call raises
    ForkedError there. Make a client after the fork, or attach() to what the parent publishes.

    The first call that waits raises WrongClusterError if the servers are of two clusters.
    """

    def __init__(
        self,
        conf: Mapping[str, Any],
        *,
        cache: MetadataCache | None = None,
        topics: SubscribedTopics = None,
        sticky: bool = False,
    ) -> None:
        """Checks the configuration and touches no network.

        - conf: librdkafka's options; docs/reference/options.md lists them, docs/security.md has
          examples for TLS and SASL.
        - cache: the cache to keep true, which may be a loaded one; by default a new one, whose
          max_age is `metadata.max.age.ms`.
        - topics: names, "^patterns" or ALL, which are kept true from the start. By default the
          client asks for the topics that are needed.
        - sticky: stays with one broker while that is usable, so that a recorder sees one view.

        Raises ConfigError, TypeError, ValueError; Error under gevent's or eventlet's patches.
        """
        _refuse_patches()
        super().__init__(conf, cache=cache, topics=topics, sticky=sticky)
        self._thread = DriverThread(self._driver)
        weakref.finalize(self, self._thread.end).atexit = False

    def __enter__(self) -> Client:
        self.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def start(self) -> None:
        """Starts the client's thread; a second call does nothing. It waits for no connection.

        Raises Error if the client is closed, ForkedError in the child of a fork.
        """
        self._running()

    def close(self) -> None:
        """Ends every wait with an error, closes all connections and ends the threads.

        Any thread may call it, also a listener; a second call does nothing. First it has listeners
        called with what they have not seen, but not the one that calls it. That takes a second at
        most; then it waits for the client's thread. In the child of a fork it does nothing.
        """
        if os.getpid() != self._pid:  # another thread may have had a lock at the fork
            return
        listeners = self._taken_listeners()
        deliveries = [each for each in listeners.values() if isinstance(each, ThreadDelivery)]
        until = time.monotonic() + LISTENERS_S
        try:
            for each in deliveries:
                each.drain()
            for each in deliveries:
                each.join(max(0.0, until - time.monotonic()))
        finally:
            self._lookup = nothing
            self._thread.close()
            for late in (*deliveries, *self._taken_listeners().values()):
                late.close()

    # ---- topics ---------------------------------------------------------------------------------

    @overload
    def refresh(
        self,
        topics: Refreshed = None,
        *,
        force: bool = False,
        timeout: float | None = None,
        wait: Literal[True] = True,
    ) -> int: ...
    @overload
    def refresh(
        self,
        topics: Refreshed = None,
        *,
        force: bool = False,
        timeout: float | None = None,
        wait: bool,
    ) -> int | None: ...
    def refresh(
        self,
        topics: Refreshed = None,
        *,
        force: bool = False,
        timeout: float | None = None,
        wait: bool = True,
    ) -> int | None:
        """Asks a broker now; returns the cache's version after the answer to that request.

            client.refresh()                                # the topics that are kept true
            client.refresh(["orders"], timeout=5.0)         # these alone

        - topics: None for the topics that are kept true, ALL, () for brokers only, names, or ids.
        - force: asks also for what is valid, denied a moment ago, or in flight.
        - wait: False only starts a refresh, and returns None.

        Refreshes that follow one another closely wait for the backoff. RequestTimedOutError after
        `timeout` seconds names the last failure of each server. Fatal errors are raised at once:
        UnsupportedVersionError if there is no common version.
        """
        call = self._refreshing(topics, force, timeout)
        if wait:
            return self._wait(call)
        self._begin_only(call)
        return None

    def leader(self, topic: str, partition: int, timeout: float | None = None) -> int:
        """Returns the id of a partition's leader; a hit is a lookup in the cache.

        On a miss the topic is needed, and the call waits for it as wait_for_topic() does. With
        `timeout=0` it does not wait, and raises the error of the lookup in the cache.
        """
        found = self._lookup(topic, partition, None)
        if found is None:
            found = self._missed(topic, partition, timeout)
            while found is None:
                self.wait_for_topic(topic, partition, timeout)
                found = self._cache.leader(topic, partition, None)
        elif self._touched is not None:
            self._touched.add(topic)
        return found

    def topic(self, name: str, timeout: float | None = None) -> Topic:
        """Returns a topic, which is needed from now on; waits for it as wait_for_topic() does."""
        return self.wait_for_topic(name, None, timeout)

    @overload
    def wait_for_topic(
        self, topic: str, partition: None = None, timeout: float | None = None
    ) -> Topic: ...
    @overload
    def wait_for_topic(
        self, topic: str, partition: int, timeout: float | None = None
    ) -> Partition: ...
    def wait_for_topic(
        self, topic: str, partition: int | None = None, timeout: float | None = None
    ) -> Topic | Partition:
        """Needs a topic and waits until it is valid, or its partition has a leader; returns it.

        An unknown topic is asked for again, as a broker may be creating it. RequestTimedOutError
        after `timeout` seconds, TopicAuthorizationError, InvalidTopicError, and the fatal errors of
        refresh(). TypeError, ValueError.
        """
        found, call = self._finding(topic, partition, timeout)
        while found is None:
            found = self._wait(call)
        self._note((topic,))
        return found

    # ---- the cluster ----------------------------------------------------------------------------

    def quorum(self, timeout: float | None = None) -> Quorum:
        """Asks for the controllers of a KRaft cluster: their leader, its epoch, each one's lag.

        Raises UnsupportedVersionError for a cluster with ZooKeeper, RequestTimedOutError, and the
        error that the broker answers with.
        """
        return self._wait(self._quorum_call(timeout))

    def describe_cluster(
        self, *, fenced: bool = False, timeout: float | None = None
    ) -> ClusterDescription:
        """Asks for the brokers of the cluster; `fenced` lists those as well that are fenced.

        The errors are those of quorum(); brokers before Kafka 4.0 cannot list fenced ones.
        """
        return self._wait(self._cluster_call(fenced, timeout))

    def describe_configs(
        self,
        topics: str | Iterable[str],
        keys: str | Iterable[str] | None = None,
        timeout: float | None = None,
    ) -> dict[str, TopicConfig]:
        """Asks for configurations of topics; returns a TopicConfig (error, values) for each name.

            found = client.describe_configs(["orders"], ["min.insync.replicas"])
            found["orders"].values["min.insync.replicas"]       # "1"

        Without `keys` it asks for all. A topic's error is in its result and is not raised:
        TopicAuthorizationError without the right to read the configuration, UnknownTopicError,
        InvalidTopicError. More than 1 000 topics take several requests, one after the other, within
        `timeout`.

        Raises UnsupportedVersionError for a broker without DescribeConfigs, RequestTimedOutError,
        TypeError, and ValueError for an empty `keys`.
        """
        found, calls = self._configs_call(topics, keys, timeout)
        for call in calls:
            found |= self._wait(call)
        return found

    def stats(self) -> dict[str, Any]:
        """Returns the client's state and counters as a dict.

        - `state`: new, running or closed. `waiters`: the calls that wait.
        - `last_try`, `last_success`: when a request was last sent, and last answered, on
          time.monotonic()'s clock; None before the first.
        - `refreshes`: by reason a dict of the requests that were `sent`, `hedged`, `answered` and
          `failed`. `late_answers` came after another node's. `rebootstraps` counts those,
          `reconnects` the connections to an address after its first one.
        - `wrong_clusters`: the cluster ids of servers of another cluster, by "host:port". Their
          answers are refused.
        - `refreshes_due`: the refreshes that wait to be sent. `due`: the topics that are asked for
          again and again. `needed`: the needed topics. `unknown`: those of them without an answer.
          `suspects`: the ids of brokers that may be dead.
        - `changes`: the changes of the cache since the client was made, by kind; `resync` counts
          the times that some could not be counted.
        - `nodes`: by the broker's id, or -1, -2 and so on for bootstrap servers, a dict of `host`,
          `port`, `state` (ready, connecting or disconnected), `in_flight`, `attempts` to connect,
          `failures` in a row, `reconnects`, `throttled` (s in all), and `last_error` (text, None
          after it connected or answered). These belong to its address: `requests` and `answers`
          after the handshake; `bytes_sent` and `bytes_received` on connections that became ready;
          `last_round_trip` and `longest_round_trip` in seconds, None before an answer;
          `reauthentications`, the logins after the first of a connection (KIP-368). With TLS, bytes
          are those on the wire.
        """
        self._check_not_forked()
        if self._is_running():
            with suppress(Error):  # it was closed a moment ago
                return self._thread.call(self._driver.stats)
        return self._driver.stats()

    # ---- the thread -----------------------------------------------------------------------------

    def _running(self) -> DriverThread:
        """Returns the driver's thread, started; raises Error, ForkedError."""
        self._check_not_forked()
        if self._thread.start():
            self._start_listeners()
        self._look_up()
        return self._thread

    def _ask(self, act: Act[R]) -> R:
        return self._running().ask(act)

    def _tell(self, act: Act[object]) -> None:
        self._running().tell(act)

    def _wait(self, call: WaitingCall[R]) -> R:
        """Begins a call and returns its result; raises its error. Ctrl-C ends the wait."""
        begin, parse = call
        return parse(self._running().wait(begin))

    def _is_running(self) -> bool:
        return self._thread.is_running

    def _delivery(self, listener: Listener) -> Delivery:
        return ThreadDelivery(listener)


def _refuse_patches() -> None:
    """Raises Error if gevent or eventlet has replaced the modules that the client's thread uses."""
    gevent = sys.modules.get("gevent.monkey")
    if gevent is not None and any(map(gevent.is_module_patched, _GEVENT)):
        raise Error(_REFUSED.format("gevent"))
    eventlet = sys.modules.get("eventlet.patcher")
    if eventlet is not None and any(map(eventlet.is_monkey_patched, _EVENTLET)):
        raise Error(_REFUSED.format("eventlet"))

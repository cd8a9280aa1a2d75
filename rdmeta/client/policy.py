"""Decides when to ask which node for what, and which failures end waits at once: a state machine
without sockets, clock or thread.

The driver reports what happens, and calls poll() after it, and at the time that the last poll gave:

    driver                     policy                                     cache
    on_connected  ---------->  nodes            links, backoff
    on_response   ---------->  flights          requests in flight    --> apply()
    need, refresh ---------->  subscriptions    needed topics
                               waiting_calls    calls that wait
    poll          ---------->  cache_scan       what is due?          <-- due(), changes
                               retry_schedule, suspects, complaints
                               requests         requests              --> hint(), request()
                  <----------  connecting       links to make and close
    Connect, Send, Close, Finish

The way of a complaint: leader_unavailable() or epoch_seen() notes it in `complaints`, with a mark
of what is known, puts its topic on `retry_schedule`, and opens a window in `Elections`.
poll() lets `requests` ask for the topic by name. on_response() applies the answer; `cache_scan`
sees that the mark has moved, ends the complaint, and takes the topic off the schedule.

Each part is a file of its own, with its rules on top. This one connects them: it has the inputs,
and the order of a poll. A poll costs what is due; nothing in it walks the needed topics.

Every time is a float in seconds, of any clock that does not go backwards. One thread at a time may
use a policy.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from random import Random
from typing import Any, TypeAlias
from uuid import UUID

from rdmeta._core import (
    DENIED,
    NO_LEADER,
    NOT_CACHED,
    UNKNOWN_TOPIC,
    WAITING,
    MetadataCache,
)
from rdmeta.client.actions import (
    Close,
    Event,
    MetadataHead,
    Node,
    OtherRequest,
    Poll,
    Problem,
    RequestKind,
    Send,
    Updated,
)
from rdmeta.client.backoff import Backoff, Gate
from rdmeta.client.cache_scan import CacheScan
from rdmeta.client.complaints import Complaints
from rdmeta.client.connecting import Connecting
from rdmeta.client.flights import Attempt, Flight, Flights
from rdmeta.client.identity import Identity
from rdmeta.client.nodes import Link, Nodes, Server, Wish
from rdmeta.client.poll_output import PollOutput
from rdmeta.client.requests import AskedTopics, Requests
from rdmeta.client.retry_schedule import Elections, RetrySchedule, Rules, Why
from rdmeta.client.subscriptions import Subscription, Subscriptions
from rdmeta.client.suspects import Suspects
from rdmeta.client.waiting_calls import Scope, Waiter, Waiters, Want, Wants
from rdmeta.config import Config
from rdmeta.config.address import Address
from rdmeta.errors import (
    AuthenticationError,
    ConfigError,
    Error,
    InvalidTopicError,
    MalformedError,
    MissingExtraError,
    RequestTimedOutError,
    TransportError,
    UnknownTopicError,
    UnsupportedVersionError,
    WrongClusterError,
    error_name,
)
from rdmeta.model import Advice, All, Applied, Broker, Request
from rdmeta.net.sasl import REFUSED_LOGIN

Hosted: TypeAlias = "Broker | tuple[str, int] | tuple[str, int, str | None] | None"

# The results of requests that stats() counts.
_RESULTS = ("sent", "hedged", "answered", "failed")


class Policy:
    """Decides what a client asks for, when, and of which node.

        policy = Policy(cache, config, [Address("kafka", 9092)], random.Random())
        actions, at = policy.poll(now)          # the driver does these, and polls again by `at`
        policy.on_connected(link, now, (0, 13))
        policy.on_response(number, now, 13, body, head)

    `topics` are needed from the start: names and patterns ("^orders-.*") in any mixture, or ALL.
    With `sticky` it stays with one node for as long as it can. After close() no input does
    anything.
    """

    def __init__(
        self,
        cache: MetadataCache,
        config: Config,
        bootstrap: Sequence[Address],
        random: Random,
        *,
        topics: Subscription = None,
        sticky: bool = False,
    ) -> None:
        """Takes the settings; raises the errors of subscribe()."""
        self._cache, self._config = cache, config
        self._output = PollOutput()
        longest = config.retry_backoff_max
        reconnect = Backoff(config.reconnect_backoff, config.reconnect_backoff_max, random)
        self._nodes = Nodes(bootstrap, random, reconnect, config.setup_timeout, sticky)
        self._subscriptions = Subscriptions(config.max_topics, config.max_idle, config.blacklist)
        rules = Rules(config.fast_interval, longest, random, config.propagation_max)
        self._schedule = RetrySchedule(rules)
        self._waiters = Waiters(
            self._output.do,
            lambda: cache.version,
            lambda name: self._schedule.drop(Why.WAITED, name),
        )
        self._wants = Wants(self._waiters)
        self._elections = Elections(cache)
        is_needed = self._subscriptions.__contains__
        self._suspects = Suspects(cache, rules, is_needed, self._elections)
        self._complaints = Complaints(cache)
        self._gate = Gate(Backoff(config.retry_backoff, longest, random))
        self._flights = Flights()
        self._scan = CacheScan(
            cache,
            config,
            self._output,
            nodes=self._nodes,
            subscriptions=self._subscriptions,
            schedule=self._schedule,
            elections=self._elections,
            waiters=self._waiters,
            suspects=self._suspects,
            complaints=self._complaints,
        )
        self._connecting = Connecting(config, self._nodes, self._suspects, self._output)
        self._requests = Requests(
            cache,
            config,
            random,
            self._output,
            nodes=self._nodes,
            subscriptions=self._subscriptions,
            schedule=self._schedule,
            waiters=self._waiters,
            wants=self._wants,
            suspects=self._suspects,
            gate=self._gate,
            flights=self._flights,
            connecting=self._connecting,
            scan=self._scan,
        )
        self._identity = Identity(
            bootstrap,
            cache,
            config,
            self._output,
            nodes=self._nodes,
            waiters=self._waiters,
            connecting=self._connecting,
        )
        self._is_closed = False
        self._is_down = False
        self._last_success: float | None = None
        self._late_answers = 0  # those that another answer has overtaken
        self._subscriptions.subscribe(topics)
        self._scan.match_patterns()
        self._requests.want_full("start", urgent=True)

    # ---- from the driver: links ----

    def on_connected(
        self, link: int, now: float, versions: tuple[int, int] | None, mock: bool = False
    ) -> None:
        """Takes a link that is ready for requests.

        `versions` are the lowest and the highest Metadata version that both sides speak, None if
        there is none. `mock` says that the broker is librdkafka's mock.
        """
        found = self._nodes.links.get(link)
        if found is None:
            return
        if versions is None:
            error = UnsupportedVersionError(
                "the broker speaks no version of Metadata that rdmeta does"
            )
            self._output.do(Close(link, str(error)))
            self._lose(found, now, error)
            return
        self._nodes.ready(found, now, versions, mock)
        self._waiters.forget_failure()
        for broker in found.server.ids:
            self._suspects.clear(broker, now)
        if self._is_down:
            self._is_down = False
            self._requests.want_full("reconnected", urgent=True)

    def on_disconnected(self, link: int, now: float, error: Error) -> None:
        """Takes the end of a link: an attempt that failed, a refused handshake, a broken link."""
        found = self._nodes.links.get(link)
        if found is not None:
            self._lose(found, now, error)

    def on_bytes(self, link: int, now: float) -> None:
        """Takes the news that some bytes arrived: the link is not silent."""
        found = self._nodes.links.get(link)
        if found is not None:
            found.heard_at, found.is_silent = now, False

    def _lose(self, link: Link, now: float, error: Error) -> None:
        """Removes a link that failed, fails its requests, and suspects its brokers."""
        was_ready = link.is_ready
        # A broker that wants SASL accepts each connection, and ends it at the first request.
        is_unserved = was_ready and not error.retriable and isinstance(error, TransportError)
        ids = {link.node.id, *link.server.ids}
        longest = self._config.reconnect_backoff_max if _is_refused(error) or is_unserved else None
        is_news = self._nodes.lost(link, now, error, longest)
        self._end_requests(link, now, error)
        self._output.report(Problem(error, link.node, _failed_how(link)))
        if is_news:
            for broker in ids:
                if broker >= 0:
                    self._suspects.add(broker, now)
            self._requests.want_full("connection")
        if not self._nodes.is_any_ready:
            self._is_down = self._is_down or was_ready
            if self._ends_waits(error):
                self._waiters.fail_all(self._nodes.refused(error))
            else:
                self._waiters.forget_failure()

    def _ends_waits(self, error: Error) -> bool:
        """Returns whether an error ends the waits at once, as it is in vain to wait.

        A refused login or version does, and so does a setting that seems wrong, such as that of a
        certificate. An error of a server says that before the first answer, once no server is left
        to try.
        """
        if _refuses_login(error) or _is_refused(error):
            return True
        if isinstance(error, (ConfigError, MissingExtraError)):
            return True
        if error.retriable or self._connecting.has_succeeded:
            return False
        return all(server.failures for server in self._nodes.current)

    def _end_requests(self, link: Link, now: float, error: Error) -> None:
        """Fails the requests of a link that is gone."""
        for number in list(link.in_flight):
            self._identity.failed(number)
            failed = self._flights.failed(number)
            if failed is not None and failed[1]:
                self._fail(failed[0], now, _at(link, error))

    def _fail(self, flight: Flight, now: float, error: Error) -> None:
        """Takes back what a flight without attempts was to cover."""
        if flight.waiter is not None:
            self._waiters.finish(flight.waiter, error)
        else:
            self._requests.failed(flight, now)

    # ---- from the driver: answers ----

    def on_response(
        self,
        number: int,
        now: float,
        version: int,
        body: bytes | memoryview,
        head: MetadataHead | None,
    ) -> Applied | None:
        """Takes an answer; one of Metadata, which has a head, is applied to the cache.

        Returns what it changed. Returns None for an answer that another one has overtaken, and for
        one to another request. Returns None for one that the cache refused: that counts as a
        failure.
        """
        link = self._nodes.answered(number)
        if link is None:
            return None
        link.heard_at, link.is_silent = now, False
        cluster = None if head is None else head.cluster_id
        if self._identity.answered(number, now, version, cluster):
            return None
        found = self._flights.answered(number, now)
        if found is None:
            self._late_answers += 1
            if head is not None and head.throttle_ms > 0:
                self._nodes.throttle(link.server, now, head.throttle_ms / 1000)
            return None
        flight, attempt = found
        if flight.waiter is not None:
            self._waiters.finish(flight.waiter, None, (version, bytes(body)))
            return None
        if head is None:
            raise TypeError("an answer to Metadata comes with its head")
        before = self._cache.cluster_id
        try:
            applied, node = self._apply(attempt, version, body, head)
        except WrongClusterError as error:
            server = attempt.link.server.address
            wrong = self._identity.explained(error, server, head.cluster_id)
            self._refused(flight, attempt, now, wrong)
            return None
        except Error as error:
            self._refused(flight, attempt, now, error)
            return None
        self._connecting.succeeded(version)
        self._identity.took(attempt.link.server.address, version)
        self._applied(flight, attempt, now, applied, node)
        if before not in (None, self._cache.cluster_id) and flight.kind is not RequestKind.FULL:
            self._requests.want_full("rebootstrap", urgent=True)  # the rest of the cache is gone
        return applied

    def _apply(
        self, attempt: Attempt, version: int, body: bytes | memoryview, head: MetadataHead
    ) -> tuple[Applied, Node]:
        server, is_rebootstrapped = attempt.link.server, self._connecting.is_rebootstrapped
        if is_rebootstrapped:
            is_rebootstrapped = self._identity.has_moved(server.address, head.cluster_id)
        broker = self._nodes.broker_at(server, head.brokers)
        applied = self._cache.apply(
            body,
            version,
            _metadata(attempt),
            broker,
            tolerate_trailing=attempt.link.is_mock,
            rebootstrapped=is_rebootstrapped,
        )
        return applied, server.node._replace(id=server.node.id if broker is None else broker)

    def _applied(
        self, flight: Flight, attempt: Attempt, now: float, applied: Applied, node: Node
    ) -> None:
        """Draws every conclusion from an answer that the cache took."""
        link = attempt.link
        self._last_success = now
        link.server.last_error, link.server.refused_at = None, -math.inf
        if flight.forgotten:
            self._cache.forget(
                [name for name in flight.forgotten if name not in self._subscriptions]
            )
        self._scan.forget_excluded(flight)
        self._nodes.use_brokers(self._cache.brokers, now)
        if link.node.id < 0 and link.server.is_current:
            link.node = link.server.node
        self._take_advice(link, now, applied)
        self._requests.succeeded(flight, applied, now)
        self._scan.answered(flight, applied, now)
        self._suspects.learn(flight.asked, now)
        progress = self._scan.look(now, flight.kind is RequestKind.FULL) > 0
        self._confirm(now, link)
        if flight.kind is RequestKind.NEW:
            self._gate.succeeded()
        else:
            self._gate.answered(now, progress)
        self._output.report(Updated(_metadata(attempt), applied, self._cache.cluster_id, node))
        self._scan.report(applied, now)

    def _take_advice(self, link: Link, now: float, applied: Applied) -> None:
        if applied.throttle_ms > 0:
            self._nodes.throttle(link.server, now, applied.throttle_ms / 1000)
        if Advice.ASK_OTHER in applied.advice:
            self._nodes.behind(link.server, now)
        if Advice.REBOOTSTRAP in applied.advice:
            self._connecting.want_rebootstrap("the broker asks for it (error 129)")

    def _confirm(self, now: float, link: Link | None) -> None:
        """Asks another node about each topic that was created again, or is absent."""
        names = self._scan.take_recreated()
        for name in names:
            self._schedule.add(Why.ONCE, name, now, self._gate.after_one(now))
        if link is not None and (names or self._scan.is_any_absent):
            self._requests.confirm_elsewhere(link.server.address)

    def _refused(self, flight: Flight, attempt: Attempt, now: float, error: Error) -> None:
        """Takes an answer that the cache refused; a malformed one ends the link."""
        link = attempt.link
        link.server.last_error = error
        if error.applied is not None:
            self._take_advice(link, now, error.applied)
        self._requests.failed(flight, now)
        if isinstance(error, MalformedError):
            self._output.do(Close(link.number, str(error)))
            self._lose(link, now, error)
        else:
            self._output.report(Problem(error, link.node, "the answer was refused"))
            self._nodes.behind(link.server, now, refused=True)

    def on_failure(self, number: int, now: float, error: Error) -> None:
        """Takes the news that a request could not be sent; its link stays.

        A call that the broker does not speak is the caller's error, and says nothing of metadata.
        """
        link = self._nodes.answered(number)
        if link is None:
            return
        self._identity.failed(number)
        failed = self._flights.failed(number)
        if failed is None:
            return
        is_unspoken = isinstance(error, UnsupportedVersionError)
        if not is_unspoken or failed[0].kind is not RequestKind.CALL:
            self._output.report(Problem(error, link.node, "the request could not be sent"))
            if is_unspoken:
                self._nodes.behind(link.server, now, refused=True)
        if failed[1]:
            self._fail(failed[0], now, error)

    # ---- from the application: topics ----

    def need(self, names: Iterable[str], now: float) -> None:
        """Makes topics needed: they are asked for now, and kept true from now on.

        Raises InvalidTopicError for a name that Kafka refuses, ArgumentError beyond
        metadata.max.topics, TypeError for a name that is no str. Then none of them is needed.
        """
        if self._is_closed:
            return
        if self._subscriptions.need(names, now):
            self._gate.begin_anew()
            self._scan.look_again()

    def forget(self, names: Iterable[str], now: float) -> None:
        """Makes topics not needed, and removes them from the cache; waits for them go on."""
        if self._is_closed:
            return
        gone = [name for name in dict.fromkeys(names) if not self._waiters.waits_for(name)]
        self._subscriptions.forget(gone)
        self._forgotten(gone, now)

    def _forgotten(self, names: list[str], now: float) -> None:
        self._flights.forget(names)
        self._cache.forget(names)
        self._complaints.forget(lambda topic: topic in names)
        self._schedule.forget(names)
        self._suspects.forget(now)
        self._wants.forget(self._subscriptions.__contains__)
        self._scan.forget(names)

    def subscribe(self, topics: Subscription, now: float) -> None:
        """Replaces the subscribed topics: names and patterns, or ALL.

        Topics that are needed by name stay so. Nothing leaves the cache. Raises the errors of
        need(), ArgumentError for a wrong pattern; then nothing has changed.
        """
        if self._is_closed:
            return
        if not self._subscriptions.subscribe(topics):
            return
        self._scan.match_patterns()
        self._suspects.forget(now)
        self._gate.begin_anew()
        self._scan.look_again()
        self._requests.want_full("subscribe", urgent=True)

    def touch(self, topic: str, now: float) -> None:
        """Notes that the application read a topic, for metadata.max.idle.ms."""
        self._subscriptions.touch(topic, now)

    # ---- from the application: waits ----

    def refresh(
        self,
        now: float,
        topics: AskedTopics | None = None,
        force: bool = False,
        deadline: float | None = None,
    ) -> int:
        """Asks for topics, with backoff; returns a waiter.

        It ends after the answers to requests that were sent after this call. `topics` are None (the
        needed ones), ALL, () (the brokers alone), names, or ids (UUID or 16 bytes). Names that are
        valid, or were denied a moment ago, are not asked for; if none remains, it ends at once.
        With `force` they are, and names in flight are asked for again.

        TypeError, and InvalidTopicError for a name that Kafka refuses.
        """
        number = self._output.number()
        want = self._want(topics, force)
        self._waiters.add(Waiter(number, math.inf if deadline is None else deadline))
        if self._is_closed:
            self._waiters.finish(number, _closed())
        else:
            self._wants.add(want, number)
        return number

    def _want(self, topics: AskedTopics | None, force: bool) -> Want:
        again: frozenset[str] = frozenset()
        if force:
            again = again.union(*(flight.asked for flight in self._flights.metadata()))
        if topics is None:
            return Want(Scope.NEEDED, again, whole=True)
        if isinstance(topics, All):
            return Want(Scope.ALL, whole=True)
        if isinstance(topics, str):
            raise TypeError("topics must be a list of names, not one str")
        each = tuple(topics)
        if not each:
            return Want(Scope.BROKERS, whole=True)
        ids = tuple(name for name in each if not isinstance(name, str))
        if len(ids) == len(each):
            known = (force or self._cache.topic_by_id(one, None) is None for one in ids)
            kept = tuple(one for one, ask in zip(ids, known, strict=True) if ask)
            return Want(Scope.IDS, whole=bool(kept), ids=kept)
        names = self._subscriptions.check(name for name in each if isinstance(name, str))
        if ids:
            raise TypeError("topics are names or ids, not both")
        kept_names = {name: None for name in names if force or self._is_asked(name)}
        return Want(Scope.NAMES, again, names=kept_names)

    def _is_asked(self, name: str) -> bool:
        """Returns whether a refresh that is not forced asks for a name."""
        return self._cache.state(name) not in (0, DENIED) or name in self._schedule

    def wait_for_topic(
        self,
        now: float,
        topic: str,
        partition: int | None = None,
        deadline: float | None = None,
    ) -> int:
        """Needs a topic, and waits until it is there, or until its partition has a leader.

        Returns a waiter. It ends with InvalidTopicError, or with TopicAuthorizationError if a
        broker answers so after this call. Raises the errors of need(), but InvalidTopicError.
        """
        number = self._output.number()
        limit = math.inf if deadline is None else deadline
        waiter = Waiter(
            number, limit, topic, partition, self._cache._answer(topic) if topic else None
        )
        error: Error | None = _closed() if self._is_closed else None
        try:
            if not self._is_closed and self._subscriptions.need([topic], now, is_lent=True):
                self._gate.begin_anew()
                self._scan.look_again()
        except InvalidTopicError as invalid:
            error = invalid
        if error is None and self._subscriptions.is_excluded(topic):
            error = UnknownTopicError(f"topic.blacklist excludes the topic {topic!r}")
        self._waiters.add(waiter)
        if error is not None:
            self._waiters.finish(number, error)
        else:
            self._scan.look_at_waits_for(topic, now)
        if number in self._waiters:
            self._ask_for_waited(topic, now)
        return number

    def _ask_for_waited(self, topic: str, now: float) -> None:
        """Puts a topic on the fast schedule; a new name gets the time of its first request."""
        at = (
            self._subscriptions.new_at + self._config.fast_interval
            if topic in self._subscriptions.new
            else None
        )
        self._schedule.add(Why.WAITED, topic, now, at)

    def call(self, now: float, call: OtherRequest, deadline: float | None = None) -> int:
        """Sends another request to the least loaded node; returns a waiter.

        It ends with the version and the body of the answer, or with the error of its link.
        """
        number = self._output.number()
        limit = math.inf if deadline is None else deadline
        self._waiters.add(Waiter(number, limit, call=call))
        if self._is_closed:
            self._waiters.finish(number, _closed())
        return number

    def cancel(self, waiter: int, now: float) -> None:
        """Ends a waiter without a Finish; a refresh is still asked for, a need is taken back."""
        topic = self._waiters.topic_of(waiter)
        if self._waiters.remove(waiter) and topic is not None:
            self._gave_up(topic, now)

    def _gave_up(self, topic: str, now: float) -> None:
        """Takes back the need of waits that were in vain; the cache keeps what it knows."""
        if self._waiters.waits_for(topic) or not self._subscriptions.take_back(topic, now):
            return
        self._complaints.forget(lambda name: name == topic)
        self._schedule.forget([topic])
        self._suspects.forget(now)
        self._scan.forget([topic])

    # ---- from the application: complaints ----

    def leader_unavailable(self, topic: str, partition: int, code: int, now: float) -> None:
        """Takes a code of Kafka's with which a leader refused, or 13 if it was not there.

        Codes other than those of Kafka's InvalidMetadataException do nothing, nor does a topic of
        topic.blacklist. Raises InvalidTopicError for a name that Kafka refuses.
        """
        if self._is_closed or not self._subscriptions.check([topic]):
            return
        if self._complaints.unavailable(topic, partition, code, now):
            self._complained(topic, partition, now)

    def epoch_seen(self, topic: str, partition: int, epoch: int, now: float) -> None:
        """Takes a leader epoch that the application saw; does nothing unless it is newer."""
        if not self._is_closed and self._complaints.epoch_seen(topic, partition, epoch, now):
            self._complained(topic, partition, now)

    def _complained(self, topic: str, partition: int, now: float) -> None:
        self._schedule.add(Why.COMPLAINT, topic, now)
        until = self._elections.open(topic, now, lambda each: each.partition == partition)
        self._schedule.hurry(topic, now, until)

    def leader_hint(
        self,
        topic: str | bytes | UUID,
        partition: int,
        leader: int,
        leader_epoch: int,
        node: Hosted,
        now: float,
        topic_id: str | bytes | UUID | None = None,
    ) -> Applied:
        """Applies a leader of a Produce or Fetch answer (KIP-951), and asks about that topic.

        The arguments, the result and the errors are those of MetadataCache.apply_leader_hint().
        """
        applied = self._cache.apply_leader_hint(
            topic, partition, leader, leader_epoch, node, topic_id=topic_id
        )
        if applied.changed and not self._is_closed:
            name = topic
            if not isinstance(name, str):
                found = self._cache.topic_by_id(name, None, allow_stale=True)
                name = found.name if found is not None else ""
            if name:
                self._schedule.add(Why.ONCE, name, now, self._gate.after_one(now))
        return applied

    # ---- from the application: the rest ----

    def least_loaded(self, now: float) -> Node | None:
        """Returns the node that a request would go to now; None if no link is ready for one."""
        link = self._nodes.pick(now, Wish())
        return None if link is None else link.server.node

    def close(self, now: float) -> None:
        """Ends every wait with an error, and every link at the next poll; a second call does not.

        Later inputs do nothing, and a late answer is not applied.
        """
        if self._is_closed:
            return
        self._is_closed = True
        self._waiters.fail_all(_closed())
        for flight in self._flights.metadata():
            if flight.request is not None:
                self._cache.apply_failure(flight.request)
            self._flights.end(flight)
        for link in list(self._nodes.links.values()):
            self._output.do(Close(link.number, "the client is closed"))
            self._nodes.close(link)

    def take_events(self) -> list[Event]:
        """Returns what happened since the last call, in order."""
        return self._output.take_events()

    @property
    def is_holding(self) -> bool:
        """Whether outcomes of calls are held: they may end with an error of Identity instead."""
        return self._waiters.is_holding

    # ---- poll ----

    def poll(self, now: float) -> Poll:
        """Returns the actions to take now, and the time of the next poll if nothing happens.

        That time is later than `now`.
        """
        self._output.begin()
        if not self._is_closed:
            self._end_what_is_over(now)
            self._rebootstrap(now)
            if self._scan.is_needed_now(now):
                self._scan.look(now)
                self._confirm(now, None)
            self._requests.periodic(now)
            self._send_calls(now)
            self._requests.run(now)
            self._identity.run(now)
            self._rebootstrap(now)
            self._connecting.run(now)
            if not self._nodes.links:  # nothing can end a wait before the next attempt
                self._waiters.fail_late()
            self._output.later(self._waiters.deadline)
        return self._output.take(now)

    def _not_there(self, waiter: Waiter) -> str:
        """Returns what did not happen in time, for the error of a waiter."""
        if waiter.topic is None:
            return "there was no answer"
        what = f"topic {waiter.topic!r}"
        if waiter.partition is not None:
            what = f"partition {waiter.partition} of {what}"
        known = self._cache.state(waiter.topic, waiter.partition)
        if known in (NOT_CACHED, WAITING):
            known = self._scan.last_error(waiter.topic) or known
        return f"{what} was not available ({error_name(5 if known == NO_LEADER else known)})"

    def _is_unknown(self, topic: str) -> bool:
        """Returns whether the newest answer about a topic is that there is none."""
        known = self._cache.state(topic)
        if known in (NOT_CACHED, WAITING):
            known = self._scan.last_error(topic) or known
        return known in (UNKNOWN_TOPIC, 3)

    def _end_what_is_over(self, now: float) -> None:
        """Ends what has waited for too long: calls, links, complaints, idle topics."""
        for waiter in self._waiters.expired(now):
            late = self._nodes.timed_out(self._not_there(waiter), self._connecting.has_succeeded)
            if waiter.topic is not None and self._is_unknown(waiter.topic):
                late.__cause__ = UnknownTopicError(f"no broker knows the topic {waiter.topic!r}")
            self._waiters.finish(waiter.number, late)
            if waiter.topic is not None:
                self._subscriptions.touch(waiter.topic, now)
                self._gave_up(waiter.topic, now)
        for link in list(self._nodes.links.values()):
            deadline = link.deadline(self._config.socket_timeout)
            if now < deadline:
                self._output.later(deadline)
                continue
            what = "answer" if link.is_ready else "connection"
            error = RequestTimedOutError(f"there was no {what} in time")
            self._output.do(Close(link.number, str(error)))
            self._lose(link, now, error)
        for name in self._complaints.expire(now):
            self._schedule.drop(Why.COMPLAINT, name)
        self._output.later(self._complaints.ends_at)
        self._end_idle(now)

    def _end_idle(self, now: float) -> None:
        if self._subscriptions.idle_at <= now:
            held = set(self._cache.resolved())
            idle = self._subscriptions.take_idle(
                now, lambda n: n in held or self._waiters.waits_for(n)
            )
            if idle:
                self._forgotten(idle, now)
        self._output.later(self._subscriptions.idle_at)

    def _send_calls(self, now: float) -> None:
        for waiter in self._waiters.unsent_calls():
            link = self._nodes.pick(now, Wish())
            if link is None or waiter.call is None:
                self._connecting.wish(Wish())
                return
            waiter.is_sent = True
            flight = Flight(RequestKind.CALL, "call", 0, math.inf, waiter=waiter.number)
            number = self._output.number()
            self._flights.add(flight, Attempt(number, link, waiter.call, now))
            self._nodes.sent(number, link, now)
            self._output.do(Send(link.number, number, waiter.call, RequestKind.CALL, "call", False))
            self._output.later(now + self._config.socket_timeout)

    def _rebootstrap(self, now: float) -> None:
        """Goes back to the bootstrap servers if it is time."""
        cause = self._connecting.rebootstrap_cause(now, self._requests.is_asking)
        if cause is None:
            return
        error = RequestTimedOutError(f"the client goes back to the bootstrap servers: {cause}")
        for link in self._connecting.rebootstrap(now, cause):
            self._output.do(Close(link.number, f"rebootstrap: {cause}"))
            self._nodes.close(link)
            self._end_requests(link, now, error)
        self._is_down = False
        self._requests.want_full("rebootstrap", urgent=True)

    # ---- statistics ----

    def stats(self) -> dict[str, Any]:
        """Returns what the policy counts, as a dict.

        - `nodes`: by the node's id a dict of `host`, `port`, `state` (ready, connecting or
          disconnected), `in_flight`, `attempts` (to connect), `reconnects`, `throttled` (s in all),
          `failures` (in a row), and `last_error` (text, None after it connected or answered).
        - `refreshes`: per reason a dict of `sent`, `hedged`, `answered` and `failed` requests.
        - `last_try`, `last_success`: times of poll's clock, None before the first.
        - `due`: the topics on the fast schedule. `needed`: the needed topics. `unknown`: those of
          them that no answer brought.
        - `waiters`, `refreshes_due`, `suspects` (broker ids), `rebootstraps`, `late_answers`.
        - `reconnects`: the connections to an address after its first one, of all nodes.
        - `wrong_clusters`: the cluster ids of servers that are of another cluster, by "host:port".
        """
        refreshes: dict[str, dict[str, int]] = {}
        for (reason, result), count in self._requests.counts.items():
            refreshes.setdefault(reason, dict.fromkeys(_RESULTS, 0))[result] = count
        return {
            "nodes": {each.node.id: _node_stats(each) for each in self._nodes.known()},
            "refreshes": refreshes,
            "last_try": self._requests.last_try,
            "last_success": self._last_success,
            "due": len(self._schedule),
            "needed": len(self._subscriptions),
            "unknown": self._scan.unknown,
            "waiters": len(self._waiters),
            "refreshes_due": self._requests.due,
            "suspects": self._suspects.ids(),
            "rebootstraps": self._connecting.rebootstraps,
            "reconnects": self._nodes.reconnects,
            "late_answers": self._late_answers,
            "wrong_clusters": self._identity.others(),
        }


def _refuses_login(error: Error) -> bool:
    return error.code in REFUSED_LOGIN or isinstance(error, AuthenticationError)


def _is_refused(error: Error) -> bool:
    """Returns whether a server refuses the client, which it will do again."""
    return not error.retriable and (
        _refuses_login(error) or isinstance(error, UnsupportedVersionError)
    )


def _closed() -> Error:
    """Returns the error of a wait that close() ends."""
    return Error("the client is closed")


def _metadata(attempt: Attempt) -> Request:
    """Returns the request of an attempt that is one of Metadata."""
    if not isinstance(attempt.request, Request):
        raise TypeError("the request is not one of Metadata")
    return attempt.request


def _at(link: Link, error: Error) -> Error:
    """Returns the error of a call that a link's end has failed; it names the server."""
    found = type(error)(f"{link.server.address}: {error}", error.code, error.retriable)
    found.__cause__ = error
    return found


def _failed_how(link: Link) -> str:
    return "the connection broke" if link.is_ready else "the connection could not be made"


def _node_stats(server: Server) -> dict[str, Any]:
    """Returns a server's part of stats()."""
    return {
        "host": server.address.host,
        "port": server.address.port,
        "state": server.state,
        "in_flight": sum(len(link.in_flight) for link in server.links),
        "attempts": server.attempts,
        "reconnects": max(server.connections - 1, 0),
        "throttled": server.throttled,
        "failures": server.failures,
        "last_error": None if server.last_error is None else str(server.last_error),
    }

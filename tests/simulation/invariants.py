"""Eight invariants of every run, each a method of `Invariants` with its bound.

All are checked from outside the policy: from its actions, from what reached it, and from what the
cache says. `stepped` runs those about a moment; the others run at the action that they are about.
"""

from __future__ import annotations

import gc
import math
from collections import deque
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from app import Waiter, covers
from cluster import Server
from faults import Faults
from frames import ZERO_ID, P, T
from network import Answer, Link
from scene import INVALID
from violation import EPSILON, JITTER, Violation

from rdmeta.cache import DENIED, NOT_CACHED, UNKNOWN_TOPIC, WAITING
from rdmeta.cache import INVALID as INVALID_STATE
from rdmeta.client.actions import Close, Connect, Node, Poll, RequestKind, Send
from rdmeta.config.address import Address
from rdmeta.model import ALL, Applied, Partition, Request, Topic

if TYPE_CHECKING:
    from world import World

    from rdmeta.client.policy import Policy

# The budget: Metadata requests that may come at once, and the factor of the time for one more.
BURST, SHARE = 8, 0.8
# For so long an election may be under way, in seconds; and how far apart its requests are.
ELECTION, ELECTION_SHARE = 15.0, 2 / 3
# The kinds of changes after which a topic is not known.
LEAVES = ("topic_removed", "topic_absent", "topic_error")
# The rules for a rewind, as docs/internals/policies.md has them.
REWIND_ANSWERS, REWIND_SECONDS = 5, 5.0
# For so long the failures of a node count that is gone, in seconds, after its backoff.
REMEMBERED = 60.0
# The time for 5 such answers of two brokers, at the slow pace if need be.
REWIND = 25.0


class Told(NamedTuple):
    """A topic as one answer described it."""

    at: float
    broker: int
    version: int
    topic: T


@dataclass
class Sent:
    """A Metadata request in flight, with what was needed when it left (None: all topics).

    `order` counts all that were sent; `others` are the requests that were out then.
    """

    send: Send
    order: int
    link: int
    at: float
    names: frozenset[str] | None
    needed: frozenset[str] | None
    others: tuple[Sent, ...]

    def covers(self, waiter: Waiter) -> bool:
        """Returns whether its answer is the whole answer to a refresh."""
        request = self.send.request
        return isinstance(request, Request) and covers(request, waiter, self.needed)


@dataclass
class Known:
    """The state of a node's address: its failures in a row, and its throttling."""

    failures: int = 0
    failed_at: float = -math.inf
    throttled_until: float = -math.inf


@dataclass
class Settling:
    """The time since the faults ended, and the time within which the cache must be true."""

    since: float
    bound: float


class Invariants:
    """The state of all checks of one run."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.config = world.scene.config
        self.seen_version = -1
        self.highest: dict[tuple[str | None, str, str | None, int], int] = {}
        self.negative_since: dict[str, float] = {}
        self.heard: dict[str, deque[Told]] = {}
        # Since when the outcomes of the first calls may be held.
        self.held_since = math.inf
        self.sent = 0
        self.level, self.level_at = 0.0, 0.0
        # When each window for an election began, by topic; and the last request for one.
        self.elections: dict[str, dict[tuple[object, ...], float]] = {}
        self.election_at = -math.inf
        self.full_at = -math.inf
        self.in_flight: dict[int, Sent] = {}
        # Names that may be asked again: their hints have ended, or a refresh forces them.
        self.forced: set[str] = set()
        self.forces: list[tuple[int, frozenset[str] | None]] = []
        self.servers: dict[Address, Known] = {}
        self.idle_polls: deque[float] = deque(maxlen=20)
        # The times that the last answers of each kind took.
        self.round_trips: dict[RequestKind, deque[float]] = {
            kind: deque(maxlen=16) for kind in RequestKind
        }
        self.settling = Settling(0.0, 0.0)

    # ---- hooks ----------------------------------------------------------------------------------

    def connecting(self, action: Connect) -> None:
        self.no_node_is_connected_to_within_its_backoff(action)

    def connected(self, link: Link) -> None:
        self._known(link.node).failures = 0

    def disconnected(self, link: Link) -> None:
        self._link_ended(link)
        self._failed(link.node)

    def closing(self, action: Close, link: Link | None) -> None:
        if link is None:
            return
        asked = [each.at for each in self.in_flight.values() if each.link == link.number]
        silent = min(asked, default=math.inf) + self.config.socket_timeout
        deadline = silent if link.ready else link.since + link.timeout
        is_refused = link.ready and link.versions is None
        is_refused |= action.cause.startswith("MALFORMED")
        if is_refused or self.world.now >= deadline - EPSILON:
            self._failed(link.node)
        self._link_ended(link)

    def _failed(self, node: Node) -> None:
        known = self._known(node)
        known.failures, known.failed_at = known.failures + 1, self.world.now

    def failed_within(self, node: Node, seconds: float) -> bool:
        """Returns whether a link to the node failed a short time ago."""
        return self.world.now < self._known(node).failed_at + seconds

    def _known(self, node: Node) -> Known:
        return self.servers.setdefault(Address(node.host, node.port), Known())

    def _link_ended(self, link: Link) -> None:
        for number in [n for n, each in self.in_flight.items() if each.link == link.number]:
            del self.in_flight[number]

    def sending(self, send: Send, link: Link) -> None:
        self.nothing_is_sent_to_a_throttled_node(link)
        if not isinstance(send.request, Request):
            return
        names = (
            None
            if send.request.topics is ALL
            else frozenset(name for name in send.request.topics if isinstance(name, str))
        )
        self.requests_fit_the_budget(send, names)
        self.no_name_in_flight_is_asked_again(send, names)
        if not send.hedge:
            self.forced -= names or frozenset()
        self.sent += 1
        app = self.world.app
        needed = None if app.all or app.prefixes else frozenset(app.needed)
        others = tuple(self.in_flight.values())
        self.in_flight[send.number] = Sent(
            send, self.sent, send.link, self.world.now, names, needed, others
        )

    def failed(self, number: int) -> None:
        self.in_flight.pop(number, None)

    def answering(self, send: Send) -> None:
        sent = self.in_flight.get(send.number)
        if sent is not None:
            self.round_trips[send.kind].append(self.world.now - sent.at)

    def answered(self, link: Link, send: Send, answer: Answer, applied: Applied | None) -> None:
        sent = self.in_flight.pop(send.number, None)
        if sent is not None:  # later answers to its hedges do not count
            for number in [n for n, s in self.in_flight.items() if s.send.kind is send.kind]:
                del self.in_flight[number]
        if answer.throttle_ms and not answer.damaged:  # a late or refused answer throttles as well
            known, until = self._known(link.node), self.world.now + answer.throttle_ms / 1000
            known.throttled_until = max(known.throttled_until, until)
        if applied is None or sent is None:
            return
        whole = send.kind is RequestKind.FULL or sent.names is None
        self.forces = [
            (order, names)
            for order, names in self.forces
            if order >= sent.order
            or send.hedge
            or not (whole or (names is not None and names <= (sent.names or names)))
        ]
        self.names_were_answered(sent.names, sent.order)
        self.told(link.node.id, answer.version, answer.topics)
        for topic in answer.topics:
            self.election(str(topic.name), "no leader", lambda each: each.leaderless)
        denied = {str(topic.name) for topic in answer.topics if topic.error in (17, 29)}
        for waiter in self.world.app.waiters.values():
            waiter.unseen = False
            self._owe(waiter, sent, denied)

    def _owe(self, waiter: Waiter, sent: Sent, denied: set[str]) -> None:
        """Notes that an answer to a request of after the call has what the wait is for."""
        if sent.order <= waiter.sent or sent.send.hedge:
            return
        if waiter.topic is not None:
            if waiter.topic in denied:
                waiter.owed = f"{waiter.topic} was denied or invalid"
        elif waiter.refresh and sent.covers(waiter):
            if any(o.order > waiter.sent and o.covers(waiter) for o in sent.others):
                return  # its own request was out
            waiter.owed = f"request {sent.send.number} was answered"

    def told(self, broker: int, version: int, topics: list[T]) -> None:
        """Notes what an answer said that the cache took in."""
        for topic in topics:
            kept = self.heard.setdefault(str(topic.name), deque(maxlen=200))
            kept.append(Told(self.world.now, broker, version, topic))

    def force(self, names: frozenset[str] | None) -> None:
        """Notes a forced refresh: its names may be asked again until a request of it is answered.

        None are all needed topics.
        """
        self.forces.append((self.sent, names))

    def names_were_answered(
        self, names: frozenset[str] | None = None, order: float = math.inf
    ) -> None:
        """Notes an answer to names, or to all: it ends the hints of before its request."""
        for sent in self.in_flight.values():
            if sent.order < order and sent.names is not None:
                self.forced |= sent.names if names is None else sent.names & names

    def stepped(self, at: float) -> None:
        """Runs the checks of one moment; `at` is the time of the next poll."""
        self.epochs_never_go_back()
        self.no_waiter_sleeps_past_its_change(at)

    # ---- (1) ------------------------------------------------------------------------------------

    def epochs_never_go_back(self) -> None:
        """(1) No reader sees an older epoch after a newer one of one topic id.

        The exceptions are in policies.md. A rewind is believed after 5 lower answers over 5 s.
        An id that becomes known makes another key here. An answer may lack the epoch. A topic
        begins anew if it was forgotten, or was negative for longer than max age.
        """
        cache = self.world.cache
        if cache.version == self.seen_version:
            return
        for change in cache.changes(max(self.seen_version, 0)):
            if change.topic is not None and change.kind in LEAVES:
                self._left(change.topic, change.source == "purge")
        self.seen_version = cache.version
        cluster = cache.cluster_id
        for topic in cache.topics(allow_stale=True):
            gone = self.world.now - self.negative_since.pop(topic.name, self.world.now)
            if gone > (self.config.max_age or math.inf):
                self.begin_anew(topic.name)
            for p in topic.partitions:
                key = cluster, topic.name, topic.topic_id, p.partition
                self._see(key, p.leader_epoch)

    def _left(self, name: str, forgotten: bool) -> None:
        if forgotten:
            self.begin_anew(name)
        else:
            self.negative_since.setdefault(name, self.world.now)

    def begin_anew(self, name: str) -> None:
        """Forgets the epochs of a topic, as the cache does when it is forgotten."""
        for key in [key for key in self.highest if key[1] == name]:
            del self.highest[key]

    def _see(self, key: tuple[str | None, str, str | None, int], epoch: int | None) -> None:
        high = self.highest.get(key, -1)
        if epoch is None or epoch == high:
            return
        if epoch < high and not self._rewound(key[1], key[3], high):
            raise Violation(
                "epochs_never_go_back",
                f"{key[1]} [{key[3]}] of id {key[2]} goes from epoch {high} back to {epoch}",
            )
        self.highest[key] = epoch

    def _rewound(self, name: str, partition: int, high: int) -> bool:
        """Returns whether enough answers said an older epoch, since the last one that did not.

        An answer without the partition counts as older. Epochs before Metadata v9 do not count.
        """
        first = last = None
        count = 0
        for told in self.heard.get(name, ()):
            epochs = [p.epoch for p in told.topic.partitions if p.id == partition]
            if told.topic.error or (epochs and told.version < 9):
                continue
            if epochs and epochs[0] >= high:
                count, first = 0, None
                continue
            first, last, count = first or told.at, told.at, count + 1
        return (
            count >= REWIND_ANSWERS
            and first is not None
            and last is not None
            and last >= first + REWIND_SECONDS - EPSILON
        )

    # ---- (2) ------------------------------------------------------------------------------------

    def no_waiter_sleeps_past_its_change(self, at: float) -> None:
        """(2) A wait ends in the moment in which it is answered, at its deadline, or by close().

        A wait for a topic is answered when a lookup would succeed, or when an answer to a request
        sent after the call denies it. A refresh is answered by an answer to a covering request
        that was sent after the call. A hedge does not count, since it repeats an earlier request.
        Nor does a request that left while a covering one was out. The next poll is not later than
        the first deadline. A stale topic that comes back by another door, without a change, wakes
        no poll: the next answer of the policy's own does. The outcomes of the first calls are held
        until each bootstrap server has said of which cluster it is, for 1 s after the first of
        them, or after the first answer.
        """
        now, late = self.world.now, self.world.scene.late
        is_held = self.world.policy.is_holding
        if self.heard:
            self.held_since = min(self.held_since, now)
        if is_held and self.world.app.waiters and now > self.held_since + 1 + late + EPSILON:
            self._sleeps("the first calls are held for more than 1 s")
        for waiter in self.world.app.waiters.values():
            text = f"wait {waiter.number} of {waiter.topic or waiter.topics!r} sleeps: "
            if self.world.closing:
                self._sleeps(text + "the client is closed")
            if waiter.owed and not is_held:
                self._sleeps(text + waiter.owed)
            if waiter.deadline is not None:
                if now >= waiter.deadline + late + EPSILON:
                    self._sleeps(text + f"its deadline was {now - waiter.deadline:.3f} s ago")
                if at > waiter.deadline + EPSILON:
                    self._sleeps(text + "the next poll is later than its deadline")
            is_there = waiter.topic and self._ready(waiter.topic, waiter.partition)
            if is_there and not waiter.unseen and not is_held:
                self._sleeps(text + "the topic is there")

    def _ready(self, name: str, partition: int | None) -> bool:
        return self.world.cache.state(name, partition) >= 0

    def _sleeps(self, text: str) -> None:
        raise Violation("no_waiter_sleeps_past_its_change", text)

    def closed(self) -> None:
        """(2) Nothing outlives close(): no wait, and no link."""
        if self.world.app.waiters:
            self._sleeps(f"{len(self.world.app.waiters)} waits outlive close()")
        self.world.demand(not self.world.network.links, "links outlive close()")

    # ---- (3) ------------------------------------------------------------------------------------

    def requests_fit_the_budget(self, send: Send, names: frozenset[str] | None) -> None:
        """(3) In any window of W s are at most 8 + W / (0.8 retry.backoff.max) Metadata requests.

        Requests for new names and periodic ones are apart, but not their hedges. So are those for
        elections, which are 2/3 fast intervals apart, for 15 s per partition and epoch. The level
        of a bucket that leaks one request per 0.8 retry.backoff.max is the largest excess of all
        windows that end now. A name is new once each time that it becomes needed. A request is
        periodic if 0.8 intervals have passed since the full refresh before.
        """
        is_new = send.kind is RequestKind.NEW and not send.hedge and self.world.app.takes_new(names)
        is_election = self._is_election(send, names or frozenset())
        if self._is_periodic(send) or is_new or is_election:
            return
        now = self.world.now
        leaked = (now - self.level_at) / (SHARE * self.config.retry_backoff_max)
        self.level, self.level_at = max(0.0, self.level - leaked) + 1, now
        if self.level > BURST + 1e-3:
            raise Violation(
                "requests_fit_the_budget", f"{self.level:.2f} requests above the rate, 8 allowed"
            )

    def election(self, name: str, cause: str, concerns: Callable[[Partition], bool]) -> None:
        """Notes that an election may be under way; a cause counts once for each leader epoch.

        Without epochs a leader may come back, so it counts once for each change of the topic.
        """
        topic = self.world.cache.topic(name, None, allow_stale=True)
        if topic is None:
            return
        for each in topic.partitions:
            if concerns(each):
                without = (each.leader, topic.version)
                mark = without if each.leader_epoch is None else each.leader_epoch
                windows = self.elections.setdefault(name, {})
                windows.setdefault((each.topic_id, each.partition, mark, cause), self.world.now)

    def _is_election(self, send: Send, names: frozenset[str]) -> bool:
        """Returns whether a request may be one for an election; notes it."""
        suspects = self.world.policy.stats()["suspects"]
        app = self.world.app
        for name in names:
            self.election(name, "no leader", lambda each: each.leaderless)
            is_needed = app.all or name in app.needed or name.startswith(tuple(app.prefixes))
            if is_needed:  # a suspect's other topics are asked for by accident
                self.election(name, "suspect", lambda each: each.leader in suspects)
        begun = (at for name in names for at in self.elections.get(name, {}).values())
        last = max(begun, default=-math.inf)
        gap = ELECTION_SHARE * self.config.fast_interval
        now = self.world.now
        if send.kind is not RequestKind.NAMES or send.hedge or now > last + ELECTION + EPSILON:
            return False
        if now < self.election_at + gap - EPSILON:
            return False
        self.election_at = now
        return True

    def _is_periodic(self, send: Send) -> bool:
        """Returns whether a request is the periodic refresh; notes a full one.

        A refresh of the brokers alone that the application asks for does not put it off.
        """
        is_full = send.kind is RequestKind.FULL or (
            send.kind is RequestKind.BROKERS and send.reason != "refresh"
        )
        if send.hedge or not is_full:
            return False
        before, now, interval = self.full_at, self.world.now, self.config.refresh_interval
        self.full_at = now
        if send.reason != "interval" or interval is None:
            return False
        return now >= before + (1 - JITTER) * interval - EPSILON

    # ---- (4) ------------------------------------------------------------------------------------

    def no_node_is_connected_to_within_its_backoff(self, action: Connect) -> None:
        """(4) After n failures a node rests for 0.8 min(backoff 2^(n - 1), backoff.max) at least.

        A success ends the count, and so does a rest of 60 s. The two are
        reconnect.backoff.ms and reconnect.backoff.max.ms.
        """
        known, config = self._known(action.node), self.config
        rested = known.failed_at + REMEMBERED
        if not known.failures or self.world.now >= rested:
            known.failures = 0
            return
        wait = config.reconnect_backoff * 2.0 ** min(known.failures - 1, 60)
        rest = (1 - JITTER) * min(wait, config.reconnect_backoff_max)
        self.world.rules.reconnecting(known.failures, self.world.now - known.failed_at)
        if self.world.now < known.failed_at + rest - EPSILON:
            raise Violation(
                "no_node_is_connected_to_within_its_backoff",
                f"{action.node} failed {known.failures} times, the last"
                f" {self.world.now - known.failed_at:.3f} s ago; it rests for {rest:.3f} s",
            )

    def nothing_is_sent_to_a_throttled_node(self, link: Link) -> None:
        """(4) Nothing is sent to a node for the throttle time of its last answer (KIP-219).

        Brokers before Metadata v6 throttle before they answer, so their time is over by then.
        """
        left = self._known(link.node).throttled_until - self.world.now
        if left > EPSILON:
            raise Violation(
                "nothing_is_sent_to_a_throttled_node",
                f"{link.node} is throttled for another {left:.3f} s",
            )

    # ---- (5) ------------------------------------------------------------------------------------

    def poll_never_spins(self, poll: Poll, told: bool) -> None:
        """(5) A poll has actions or a later time; at most 20 polls a second have neither cause.

        `told` says that something reached the policy since the poll before, or that it acted.
        """
        now = self.world.now
        if poll.actions:
            self.idle_polls.clear()
            return
        if not poll.at > now:
            raise Violation("poll_never_spins", f"no action, and the next poll is at {poll.at}")
        if not told:
            self.idle_polls.append(now)
            if len(self.idle_polls) == 20 and now - self.idle_polls[0] < 1.0:
                raise Violation("poll_never_spins", "20 idle polls within a second")

    # ---- (6) ------------------------------------------------------------------------------------

    def no_name_in_flight_is_asked_again(self, send: Send, names: frozenset[str] | None) -> None:
        """(6) A name in flight is asked again by name only by force or by a hedge.

        One request of each kind is in flight, with its hedges. A request for all topics names none.
        A name is no longer in flight once a later request for it was answered, also one of another
        feeder. policies.md: "The hint ends with the answer to its name or to all topics".
        A topic that was forgotten is not in flight either, as the answer no longer counts for it.
        """
        if send.hedge:
            return
        forced = self.forced.union(*(names or () for _, names in self.forces))
        if any(names is None for _, names in self.forces):
            forced |= names or frozenset()
        for other in self.in_flight.values():
            if other.send.kind is send.kind:
                raise Violation(
                    "no_name_in_flight_is_asked_again",
                    f"two requests of kind {send.kind.value} are in flight:"
                    f" {other.send.number} and {send.number}",
                )
            again = (names or frozenset()) & (other.names or frozenset())
            if again - forced:
                raise Violation(
                    "no_name_in_flight_is_asked_again",
                    f"{sorted(again - forced)} of {send.number} are in flight"
                    f" in {other.send.number}",
                )

    # ---- (7) ------------------------------------------------------------------------------------

    def nothing_is_kept_of_what_is_gone(self, name: str, server: Server) -> None:
        """(7) Past max age nothing is kept of a topic and a broker that are gone.

        Neither the topic's name nor the broker's host is anywhere in the policy, and the cache has
        no entry of the topic. It retains nothing but needed topics that do not exist, and topics
        that are denied: a client of all topics asks for these again.
        """
        cache = self.world.cache
        asked_for = {*self.world.app.needed, *self.world.cluster.truth.denied}
        missing = [name for name in asked_for if cache.state(name) < 0]
        texts = _texts_in(self.world.policy)
        kept = [text for text in (name, server.address.host) if text in texts]
        too_many = cache.stats()["retained"] > len(missing)
        if name in cache.names(allow_stale=True) or too_many:
            kept.append("an entry in the cache")
        if any(broker.id == server.id for broker in cache.brokers):
            kept.append(f"broker {server.id}")
        if kept:
            raise Violation("nothing_is_kept_of_what_is_gone", f"past max age there is {kept}")

    # ---- (8) ------------------------------------------------------------------------------------

    def settle(self, faults: Faults, extra: float) -> Settling:
        """(8) Returns the time within which needed topics equal the truth once the faults end.

        That is 2 retry.backoff.max + reconnect.backoff.max + 4 hedges + 4 round trips, and 10 s
        more after long faults. The rest of a swallowed connect's time-out, of a denial, or of a
        rewind comes on top. If another cluster or a black hole is at the old addresses, no answer
        counts until the rebootstrap, which comes after its trigger. A topic that was created again
        may need a rewind after the faults as well. Brokers without ids tell lower epochs. A late
        answer may bring a former id that the cache has not known.
        """
        world, config = self.world, self.config
        slowest = max(max(each, default=0.1) for each in self.round_trips.values())
        hedge = min(max(10 * slowest, 1.0), 10.0)
        bound = 2 * config.retry_backoff_max + config.reconnect_backoff_max
        bound += 4 * hedge + 4 * world.scene.round_trip + 10 * world.scene.late
        bound += 10.0 if world.scene.length > 20 else 0.0
        connecting = [
            link.since + link.timeout - world.now
            for link in world.network.open_links()
            if not link.ready
        ]
        bound += max(connecting, default=0.0)
        if faults.usurped or (faults.moved and world.network.nobody == "swallowed"):
            bound += config.rebootstrap_trigger + config.reconnect_backoff_max
        if "deny" in world.scene.faults:
            bound += 10.0
        if world.cluster.recreated:
            bound += REWIND
        self.settling = Settling(world.now, bound + extra)
        return self.settling

    def truth_is_reached(self, settling: Settling) -> bool:
        """(8) Returns whether needed topics equal the truth; raises once the bound is over."""
        difference = self.difference()
        if difference and self.world.now > settling.since + settling.bound + EPSILON:
            raise Violation(
                "truth_is_reached", f"{settling.bound:.3f} s after the faults ended: {difference}"
            )
        return not difference

    def truth_stays(self, settling: Settling) -> bool:
        """(8) Returns whether needed topics still equal the truth; raises once the bound is over.

        Before that a topic may become stale, or an answer of before the end of the faults arrive.
        """
        return self.truth_is_reached(settling)

    def difference(self) -> str:
        """Returns how the cache differs from the truth in a needed topic; empty if it does not."""
        world = self.world
        if world.alone:
            return self.missing()
        for name in world.app.wanted():
            state = world.cache.state(name)
            truth = world.cluster.truth.topics.get(name)
            if name == INVALID:
                if state != INVALID_STATE:
                    return f"{name} is in state {state}, not invalid"
            elif name in world.cluster.truth.denied:
                if state not in (DENIED, NOT_CACHED, WAITING):  # the last two past its TTL
                    return f"{name} is in state {state}, not denied"
            elif truth is None:
                if state not in (UNKNOWN_TOPIC, NOT_CACHED, WAITING):
                    return f"{name} is in state {state}, but does not exist"
            else:
                found = world.cache.topic(name, None)
                if found is None:
                    return f"{name} is in state {state}, but exists"
                fault = self._unlike(found, truth)
                if fault:
                    return f"{name}: {fault}"
        if world.only is not None:
            return ""
        lowest = min(s.versions[1] for c in world.network.clusters for s in c.servers.values())
        told = 4 if lowest >= 1 else 3  # Metadata v0 has no racks
        ours = [tuple(each[:told]) for each in world.cache.brokers]
        theirs = [
            (b.id, b.host, b.port, b.rack)[:told] for b in world.cluster.truth.brokers.values()
        ]
        return "" if ours == theirs else f"the brokers are {ours}, not {theirs}"

    def missing(self) -> str:
        """Returns what the client knows to be missing of a needed topic; empty if it has all.

        That is the topic itself, or the leader of a partition: it asks for these by itself. It
        asks for an unknown topic for topic.metadata.propagation.max.ms, which may end too early.
        """
        truth, cache = self.world.cluster.truth, self.world.cache
        brokers = {broker.id for broker in cache.brokers}
        end = self.settling.since + self.settling.bound
        for name in self.world.app.wanted():
            is_denied = name in truth.denied
            if name not in self.world.app.needed or name not in truth.topics or is_denied:
                continue
            found = cache.topic(name, None)
            if found is None and self.world.app.is_given_up(name, end):
                continue
            if found is None:
                return f"{name} is in state {cache.state(name)}, but exists"
            leaders = {p.id: p.leader for p in truth.topics[name].partitions}
            for p in found.partitions:
                if leaders.get(p.partition, -1) >= 0 and p.leader not in brokers:
                    return f"partition {p.partition} of {name} has the leader {p.leader}"
        return ""

    def _unlike(self, found: Topic, truth: T) -> str:
        told = self.heard[found.name][-1].version
        brokers = self.world.cluster.truth.brokers
        if told >= 10 and found.topic_id != _spelled(truth.id):
            return f"the id is {found.topic_id}, not {_spelled(truth.id)}"
        if told >= 1 and found.internal != truth.internal:
            return f"internal is {found.internal}"
        if len(found.partitions) != len(truth.partitions):
            return f"{len(found.partitions)} partitions, not {len(truth.partitions)}"
        for one, other in zip(found.partitions, truth.partitions, strict=True):
            fault = _partition_unlike(one, other, told, brokers)
            if fault:
                return f"partition {one.partition}: {fault}"
        return ""


def _texts_in(policy: Policy) -> set[str]:
    """Returns every text that the policy's own objects hold."""
    texts: set[str] = set()
    seen: set[int] = set()
    waiting: list[object] = [policy]
    while waiting:
        each = waiting.pop()
        if isinstance(each, str):
            texts.add(each)
        elif id(each) not in seen:
            seen.add(id(each))
            own = type(each).__module__.startswith(("rdmeta.client", "rdmeta.config.address"))
            if own or isinstance(each, _CONTAINERS):
                waiting += gc.get_referents(each)
    return texts


_CONTAINERS = (dict, list, tuple, set, frozenset, deque)


def _partition_unlike(found: Partition, truth: P, version: int, brokers: Collection[int]) -> str:
    """Returns in which field a partition differs from the truth, as far as the version tells it."""
    pairs: list[tuple[str, object, object]] = [
        ("leader", found.leader, None if truth.leader < 0 else truth.leader),
        ("replicas", found.replicas, tuple(truth.replicas)),
        ("isr", set(found.isr), set(truth.isr or ())),
        ("error", found.error, truth.error),
        ("leaderless", found.leaderless, truth.leader < 0),
        ("unreachable", found.unreachable, truth.leader >= 0 and truth.leader not in brokers),
    ]
    if version >= 5:
        pairs.append(("offline", set(found.offline_replicas), set(truth.offline)))
    if version >= 9 or found.leader_epoch is not None:
        pairs.append(("epoch", found.leader_epoch, truth.epoch))
    return "; ".join(f"{name} {one}, not {other}" for name, one, other in pairs if one != other)


def _spelled(id: bytes) -> str | None:
    """Returns a topic id as Kafka spells it."""
    from base64 import urlsafe_b64encode

    return None if id == ZERO_ID else urlsafe_b64encode(id).decode().rstrip("=")

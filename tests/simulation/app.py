"""The simulated application: it needs, waits, forgets, complains, and uses what the cache says.

A call is a method of `App`; `KINDS` lists their names. `App` also keeps the duties of the
policy: the needed topics, and the waits that have not ended.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from scene import BLACK, INVALID, NAMES

from rdmeta.client.actions import Finish, OtherRequest
from rdmeta.errors import InvalidTopicError, RequestTimedOutError, UnsupportedVersionError
from rdmeta.model import ALL, All, Request

if TYPE_CHECKING:
    from world import World

KINDS = (
    "need", "forget", "wait", "refresh", "produce", "cry_wolf", "see_epoch", "hint", "call",
    "cancel", "touch", "subscribe", "other_door", "look",
)  # fmt: skip


@dataclass
class Waiter:
    """A wait that has not ended; `owed`: it must end now, as its event has happened.

    `topics` is what a refresh asked for; `topic` is set for a wait for a topic. `sent` counts the
    requests before the call. `unseen` says that the last answer came by another door and changed
    nothing.
    """

    number: int
    since: float
    sent: int
    deadline: float | None
    topics: All | tuple[str, ...] | None = None
    topic: str | None = None
    partition: int | None = None
    refresh: bool = False
    call: bool = False
    unseen: bool = False
    owed: str = ""


class App:
    """The application of one seed."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.random = world.random
        self.waiters: dict[int, Waiter] = {}
        # A wait may end in the moment in which the application cancels it.
        self.cancelled: dict[int, Waiter] = {}
        topics = world.scene.topics
        names = (topics,) if isinstance(topics, str) else () if topics in (None, ALL) else topics
        assert isinstance(names, tuple)
        self.prefixes = [name[1:] for name in names if name.startswith("^")]
        self.all: bool = topics is ALL
        self.subscribed = {name for name in names if not name.startswith("^")}
        self.used: dict[str, None] = {}
        # Those of them that only waits need, none of which has ended well.
        self.lent: set[str] = set()
        # Names that have become needed, and that no request for new names has had.
        self.new: set[str] = set(self.subscribed)
        self.needed_at = dict.fromkeys(self.subscribed, world.now)
        self.active = False
        self.ended = 0

    # ---- what it is owed ------------------------------------------------------------------------

    @property
    def needed(self) -> list[str]:
        """The topics that are needed by name, in a fixed order."""
        return sorted(self.subscribed.union(self.used))

    def wanted(self) -> list[str]:
        """Returns the topics that the policy must keep true now."""
        truth = self.world.cluster.truth
        names = dict.fromkeys(self.needed if self.world.can_be_asked() else ())
        for name in truth.topics:
            if (self.all or name.startswith(tuple(self.prefixes))) and name not in truth.denied:
                names[name] = None
        only = self.world.only
        return [n for n in names if not self.world.black(n) and (only is None or n in only)]

    def becomes_needed(self, names: Iterable[str]) -> None:
        """Notes the names of a call that are new; one may have been idle, and so be new again."""
        idle = self.world.scene.config.max_idle > 0
        new = [name for name in names if idle or name not in self.needed]
        self.new.update(new)
        self.needed_at.update(dict.fromkeys(new, self.world.now))

    def is_given_up(self, name: str, at: float) -> bool:
        """Returns whether a needed topic that is unknown is not asked for any more at a time."""
        return at > self.needed_at[name] + self.world.scene.config.propagation_max

    def takes_new(self, names: frozenset[str] | None) -> bool:
        """Returns whether every name is new; from now on none of them is."""
        are_new = names is not None and names <= self.new
        self.new -= names or frozenset()
        return are_new

    def finished(self, action: Finish) -> None:
        """Takes the outcome of a wait."""
        waiter = self.waiters.pop(action.waiter, None) or self.cancelled.pop(action.waiter, None)
        self.world.demand(waiter is not None, f"wait {action.waiter} ends, which is not open")
        assert waiter is not None
        self.ended += 1
        now, error = self.world.now, action.error
        if waiter.topic is not None:
            self.world.rules.begin_anew()
        if isinstance(error, RequestTimedOutError) and not self.world.closing and not waiter.call:
            on_time = waiter.deadline is not None and now >= waiter.deadline
            self.world.demand(on_time, f"wait {action.waiter} times out too early: {error}")
        if isinstance(error, UnsupportedVersionError) and waiter.refresh and not self.active:
            self.world.later(0.5, self.world.hand, self.refresh_again)  # other brokers may return
        if waiter.topic is not None and error is None:
            self.lent.discard(waiter.topic)
        elif isinstance(error, RequestTimedOutError):
            self._gave_up(waiter)
        if error is None and waiter.topic and action.version == self.world.cache.version:
            state = self.world.cache.state(waiter.topic, waiter.partition)
            self.world.demand(state >= 0, f"the wait for {waiter.topic} ends in state {state}")

    def _gave_up(self, waiter: Waiter) -> None:
        """Notes that a wait was in vain: it takes its own need with it."""
        name = waiter.topic
        if name in self.lent and all(each.topic != name for each in self.waiters.values()):
            self.lent.discard(name)
            self.used.pop(name, None)
            self.new.discard(name)

    def refresh_again(self) -> None:
        """Asks for a refresh once more, as an application does after its topic was created."""
        if not self.active and not self.world.closing and self.world.can_be_asked():
            self.refresh_of(None, False, None)

    # ---- when -----------------------------------------------------------------------------------

    def begin(self) -> None:
        """Starts to make calls at random."""
        self.active = True
        self._next()

    def quiet(self) -> None:
        """Makes no more calls by itself."""
        self.active = False

    def keep_in_use(self) -> None:
        """Uses every needed topic now and then, so that none is idle (metadata.max.idle.ms)."""
        longest = self.world.scene.config.max_idle
        if longest and not self.world.closing:
            self.world.hand(self._use_all)
            self.world.later(longest / 3, self.keep_in_use)

    def _use_all(self) -> None:
        if not self.world.closing:
            self.world.policy.need(list(self.used), self.world.now)
            self.becomes_needed(list(self.used))
            self.lent.clear()
            self.world.rules.begin_anew()

    def _next(self) -> None:
        self.world.later(self.random.expovariate(1 / self.world.scene.eager), self._one)

    def _one(self) -> None:
        if self.active:
            self.world.hand(self._call, self.random.choice(sorted(self.world.scene.calls)))
            self._next()

    def _call(self, kind: str) -> None:
        if self.active and not self.world.closing:
            getattr(self, kind)()

    # ---- calls ----------------------------------------------------------------------------------

    def need(self, *names: str) -> None:
        """Needs some topics; at times a name that Kafka refuses, or one that is blacklisted."""
        chosen = names or self._names()
        self.world.say("call", "need", chosen)
        try:
            self.world.policy.need(chosen, self.world.now)
        except InvalidTopicError:
            self.world.demand(INVALID in chosen, "a legal name is refused")
            return
        self.becomes_needed(chosen)
        self.used.update(dict.fromkeys(chosen))
        self.lent.difference_update(chosen)
        self.world.rules.begin_anew()

    def forget(self) -> None:
        self.forget_topics([n for n in self._names() if n in self.needed and not self.waited(n)])

    def forget_topics(self, names: list[str]) -> None:
        self.world.say("call", "forget", names)
        self.world.policy.forget(names, self.world.now)
        self.world.invariants.forced.update(names)
        for name in names:
            self.world.invariants.begin_anew(name)
            self.lent.discard(name)
            self.used.pop(name, None)
            self.subscribed.discard(name)

    def waited(self, name: str) -> bool:
        return any(waiter.topic == name for waiter in self.waiters.values())

    def wait(self) -> None:
        """Waits for a topic, at times for one of its partitions."""
        self.wait_for(
            self._names()[0],
            self.random.choice((None, None, 0, 2)),
            self.random.choice((0.0, 0.3, 5.0, 60.0)),
        )

    def wait_for(self, name: str, partition: int | None, timeout: float) -> None:
        deadline = self.world.now + timeout
        number = self.world.policy.wait_for_topic(self.world.now, name, partition, deadline)
        self.world.say("call", "wait_for_topic", name, partition, number)
        self.becomes_needed([name])
        self.world.rules.begin_anew()
        if name != INVALID and not self.world.black(name):
            self.lent |= {name}.difference(self.needed)
            self.used[name] = None
        waiter = self._new_waiter(number, deadline)
        waiter.topic, waiter.partition = name, partition

    def refresh(self) -> None:
        """Asks for a refresh of needed topics, names, all topics or brokers."""
        topics = self.random.choice((None, None, ALL, (), self._names()))
        self.refresh_of(topics, self.random.random() < 0.3, self.random.choice((None, 3.0, 60.0)))

    def refresh_of(
        self, topics: All | tuple[str, ...] | None, force: bool, timeout: float | None
    ) -> Waiter:
        deadline = None if timeout is None else self.world.now + timeout
        if isinstance(topics, tuple):
            topics = tuple(name for name in topics if name != INVALID)
        number = self.world.policy.refresh(self.world.now, topics, force, deadline)
        self.world.say("call", "refresh", topics, force, number)
        waiter = self._new_waiter(number, deadline)
        waiter.topics = ALL if topics is None and (self.all or self.prefixes) else topics
        waiter.refresh = True
        if force:
            names = frozenset(topics) if isinstance(topics, tuple) else None
            self.world.invariants.force(names)
        return waiter

    def call(self) -> None:
        """Sends another request than Metadata."""
        deadline = self.world.now + self.random.choice((0.3, 5.0, 60.0))
        call = OtherRequest(60, 0, 2, lambda version: b"")
        number = self.world.policy.call(self.world.now, call, deadline)
        self.world.say("call", "call", number)
        self._new_waiter(number, deadline).call = True

    def cancel(self) -> None:
        if self.waiters:
            number = self.random.choice(list(self.waiters))
            self.world.say("call", "cancel", number)
            self.world.policy.cancel(number, self.world.now)
            self.cancelled[number] = self.waiters.pop(number)
            self._gave_up(self.cancelled[number])

    def produce(self) -> None:
        """Uses the leaders of needed topics as a producer does, and complains of wrong ones."""
        world, truth = self.world, self.world.cluster.truth
        for name in self.needed:
            topic = truth.topics.get(name)
            for p in topic.partitions if topic else ():
                leader = world.cache.leader(name, p.id, -1)
                world.policy.touch(name, world.now)
                if leader < 0 or leader == p.leader:
                    continue
                server = world.cluster.servers.get(leader)
                if server is None or not server.usable:
                    self.complain(name, p.id, 13)
                elif server.seen().topics.get(name) == topic:
                    self.complain(name, p.id, 6)
                    if self.random.random() < 0.5 and p.leader >= 0:
                        self.hint_of(name, p.id, p.leader, p.epoch)

    def complain(self, name: str, partition: int, code: int) -> None:
        self.world.say("call", "leader_unavailable", name, partition, code)
        self._may_be_election(name, partition, "complaint")
        self.world.policy.leader_unavailable(name, partition, code, self.world.now)

    def _may_be_election(self, name: str, partition: int, cause: str) -> None:
        invariants = self.world.invariants
        invariants.election(name, cause, lambda each: each.partition == partition)

    def cry_wolf(self) -> None:
        """Complains of a partition without a reason."""
        self.complain(self._names()[0], self.random.randrange(4), self.random.choice((5, 6, 74)))

    def see_epoch(self) -> None:
        """Sees a leader epoch: an old one, the right one, or one that never was."""
        name, index = self._names()[0], self.random.randrange(3)
        topic = self.world.cluster.truth.topics.get(name)
        epoch = 0
        if topic is not None and index < len(topic.partitions):
            epoch = max(0, topic.partitions[index].epoch + self.random.choice((-1, 0, 0, 1)))
        self.epoch_of(name, index, epoch)

    def epoch_of(self, name: str, partition: int, epoch: int) -> None:
        self.world.say("call", "epoch_seen", name, partition, epoch)
        self._may_be_election(name, partition, f"epoch {epoch}")
        self.world.policy.epoch_seen(name, partition, epoch, self.world.now)

    def hint(self) -> None:
        """Hands in a leader hint of the present incarnation: the newest truth, or an older one."""
        name = self._names()[0]
        state = self.random.choice(self.world.cluster.log[-4:])
        topic, now = state.topics.get(name), self.world.cluster.truth.topics.get(name)
        if topic is not None and topic.partitions and now is not None and now.id == topic.id:
            p = self.random.choice(list(topic.partitions))
            if p.leader >= 0:
                self.hint_of(name, p.id, p.leader, p.epoch)

    def hint_of(self, name: str, partition: int, leader: int, epoch: int) -> bool:
        """Hands in a leader hint; returns whether the cache took it."""
        address = self.world.cluster.servers[leader].address
        node = (address.host, address.port, f"rack-{leader % 2}")
        self.world.say("call", "leader_hint", name, partition, leader, epoch)
        now = self.world.now
        return self.world.policy.leader_hint(name, partition, leader, epoch, node, now).changed > 0

    def touch(self) -> None:
        self.world.policy.touch(self._names()[0], self.world.now)

    def subscribe(self) -> None:
        """Replaces the subscription by all topics, a pattern, names, or nothing."""
        names = tuple(name for name in self._names() if name != INVALID)
        topics = self.random.choice((ALL, "^orders", ("payments", "^orders-"), names, ()))
        self.world.say("call", "subscribe", topics)
        self.world.policy.subscribe(topics, self.world.now)
        self.world.rules.begin_anew()
        names = (topics,) if isinstance(topics, str) else () if topics is ALL else topics
        assert isinstance(names, tuple)
        self.becomes_needed(names)
        self.all = topics is ALL
        self.prefixes = [name[1:] for name in names if name.startswith("^")]
        self.subscribed = {name for name in names if not name.startswith("^")}

    def other_door(self) -> None:
        """Writes to the cache without the policy, as another feeder of it does."""
        cache, server = (
            self.world.cache,
            self.random.choice(list(self.world.cluster.servers.values())),
        )
        self.world.say("call", "another feeder")
        if cache.cluster_id in (None, self.world.cluster.cluster_id):
            request = cache.request(ALL)
            body, topics = server.answer(request, 12)
            if server.seen().brokers and not server.quirk:
                self.world.invariants.told(server.id, 12, topics)
                self.world.invariants.names_were_answered()
                version = cache.version
                cache.apply(body, 12, request, server.id)
                for waiter in self.waiters.values():
                    waiter.unseen = cache.version == version

    def look(self) -> None:
        """Calls the methods that only read."""
        self.world.policy.stats()
        self.world.policy.least_loaded(self.world.now)

    # ---- choices --------------------------------------------------------------------------------

    def _new_waiter(self, number: int, deadline: float | None) -> Waiter:
        world = self.world
        world.demand(number not in self.waiters, "the number of a wait is used twice")
        waiter = Waiter(number, world.now, world.invariants.sent, deadline)
        self.waiters[number] = waiter
        return waiter

    def _names(self) -> tuple[str, ...]:
        names = self.random.sample(NAMES, self.random.choice((1, 1, 2)))
        if self.random.random() < 0.05:
            names.append(self.random.choice((INVALID, BLACK)))
        return tuple(names)


def covers(request: Request, waiter: Waiter, needed: frozenset[str] | None) -> bool:
    """Returns whether the answer to a request is the whole answer to a refresh.

    `needed` are the topics that were needed when the request left, None for all. Any answer has
    the brokers.
    """
    if request.topics is ALL:
        return True
    names = needed if waiter.topics is None else waiter.topics
    if names is None or isinstance(names, All):
        return False
    if waiter.topics is None and not names:
        return request.topics == ()  # nothing is needed: a refresh is one of the brokers alone
    return set(names) <= set(request.topics)

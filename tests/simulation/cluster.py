"""A model of a Kafka cluster: one truth, and servers that learn it late.

The truth is a list of immutable states, of which the last one is true. Each server answers from
the state that it has reached. A server moves along the list in order, as a broker replays the
metadata log, so all that a server says was true once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from random import Random

from frames import B, P, T, response, topic_id

from rdmeta.config.address import Address
from rdmeta.model import ALL, All, Request, topic_fault

LEADER_NOT_AVAILABLE, UNKNOWN_TOPIC, INVALID_TOPIC, DENIED = 5, 3, 17, 29
LISTENER_NOT_FOUND, UNKNOWN_ID, REBOOTSTRAP_REQUIRED = 72, 100, 129


@dataclass(frozen=True)
class State:
    """All that Metadata tells about a cluster at one moment.

    `brokers` holds the brokers that are not fenced; `denied` the topics that the client's principal
    may not describe.
    """

    brokers: Mapping[int, B]
    topics: Mapping[str, T]
    denied: frozenset[str] = frozenset()


@dataclass
class Server:
    """A broker as the client meets it: its process, its network, and the state it has reached.

    `network` is "up", "hole" (packets vanish) or "reset" (connections are refused). `incarnation`
    grows with each start of the process. `service` is the longest time that an answer takes.
    """

    id: int
    address: Address
    versions: tuple[int, int]
    cluster: Cluster
    state: int = 0
    incarnation: int = 0
    alive: bool = True
    frozen: bool = False
    network: str = "up"
    lag: float = 0.01
    service: float = 0.002
    drip: bool = False
    throttle_ms: int = 0
    quirk: str = ""
    listenerless: int = -1

    @property
    def usable(self) -> bool:
        """Returns whether the server can answer a client in time."""
        return self.alive and not self.frozen and self.network == "up"

    def seen(self) -> State:
        return self.cluster.log[self.state]

    def answer(self, request: Request, version: int) -> tuple[bytes, list[T]]:
        """Returns the body of its Metadata response, and the topics in it."""
        state = self.seen()
        brokers = () if self.quirk == "no brokers" else tuple(state.brokers.values())
        error = 0
        if version >= 13 and self.quirk in ("error", "rebootstrap"):
            error = REBOOTSTRAP_REQUIRED if self.quirk == "rebootstrap" else LEADER_NOT_AVAILABLE
        topics = [] if error else self._topics(state, request.topics, version)
        body = response(
            version,
            topics,
            brokers,
            cluster_id=self.cluster.cluster_id,
            controller=min(state.brokers, default=-1),
            throttle_ms=self.throttle_ms,
            error=error,
        )
        return body, topics

    def _topics(self, state: State, asked: All | Collection[object], version: int) -> list[T]:
        if asked is ALL or (version == 0 and not asked):
            return [self._seen(t) for name, t in state.topics.items() if name not in state.denied]
        assert not isinstance(asked, All)
        return [
            self._named(state, each) if isinstance(each, str) else self._by_id(state, each, version)
            for each in asked
        ]

    def _named(self, state: State, name: str) -> T:
        if topic_fault(name):
            return T(name, (), error=INVALID_TOPIC)
        if name in state.denied:
            return T(name, (), error=DENIED)
        known = state.topics.get(name)
        return T(name, (), error=UNKNOWN_TOPIC) if known is None else self._seen(known)

    def _by_id(self, state: State, asked: object, version: int) -> T:
        wanted = getattr(asked, "bytes", asked)
        for name, topic in state.topics.items():
            if topic.id == wanted and name not in state.denied:
                return self._seen(topic)
        assert isinstance(wanted, bytes)
        return T(None if version >= 12 else "", (), id=wanted, error=UNKNOWN_ID)

    def _seen(self, topic: T) -> T:
        """Returns the topic; partitions whose leader lacks the client's listener have no leader."""
        if self.listenerless < 0:
            return topic
        partitions = [
            replace(p, leader=-1, error=LISTENER_NOT_FOUND) if p.leader == self.listenerless else p
            for p in topic.partitions
        ]
        return replace(topic, partitions=partitions)


@dataclass
class Cluster:
    """The truth, its servers, and what can happen to them.

    `later(delay, function, *arguments)` schedules what follows. Each change of the truth reaches a
    server within its `lag`. `names` has every name that ever was a topic's; `recreated` says that
    one has been given again.
    """

    random: Random
    later: Callable[..., None]
    cluster_id: str = "cluster"
    log: list[State] = field(default_factory=list)
    servers: dict[int, Server] = field(default_factory=dict)
    created: int = 0
    creating: dict[str, T] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)
    recreated: bool = False

    @property
    def truth(self) -> State:
        return self.log[-1]

    def start(self, brokers: int, versions: tuple[int, int], names: Collection[str]) -> None:
        """Starts servers 1, 2, and so on, and creates the topics."""
        for id in range(1, brokers + 1):
            self.servers[id] = Server(id, Address(f"{self.cluster_id}-{id}", 9092), versions, self)
        self.log.append(State({id: self._registered(id) for id in self.servers}, {}))
        for name in names:
            self.create(name)
        for server in self.servers.values():
            server.state = len(self.log) - 1

    # ---- the truth ------------------------------------------------------------------------------

    def commit(
        self,
        brokers: Mapping[int, B] | None = None,
        topics: Mapping[str, T] | None = None,
        denied: frozenset[str] | None = None,
    ) -> None:
        """Makes a new state true; each server learns it within its lag."""
        now = self.truth
        self.log.append(
            State(
                now.brokers if brokers is None else brokers,
                now.topics if topics is None else topics,
                now.denied if denied is None else denied,
            )
        )
        for server in self.servers.values():
            if server.alive:
                self.later(self.random.random() * server.lag, self.learn, server, len(self.log) - 1)

    def unseen(self, topic: T) -> None:
        """Replaces one topic in the truth; no server hears of it by itself."""
        now = self.truth
        self.log.append(replace(now, topics={**now.topics, str(topic.name): topic}))

    def elect_unseen(self, name: str, index: int) -> bool:
        """Moves a leader; no server hears of it by itself. Returns whether it could."""
        servers, self.servers = self.servers, {}
        try:
            return self.elect(name, index)
        finally:
            self.servers = servers

    def learn(self, server: Server, state: int) -> None:
        """Moves a server on to a state, unless its process is frozen or dead."""
        if server.alive and not server.frozen:
            server.state = max(server.state, state)

    def catch_up(self) -> None:
        """Moves every server to the truth."""
        for server in self.servers.values():
            server.state = len(self.log) - 1

    def put(self, topic: T) -> None:
        """Replaces one topic."""
        self.commit(topics={**self.truth.topics, str(topic.name): topic})

    def create(self, name: str) -> None:
        """Creates a topic, at times with LEADER_NOT_AVAILABLE before its leaders are known."""
        if name in self.truth.topics or topic_fault(name):
            return
        self.created += 1
        self.recreated |= name in self.names
        self.names.add(name)
        id = topic_id((self.cluster_id, name, self.created))
        count = self.random.randint(1, 3)
        full = T(name, [self._partition(i) for i in range(count)], id, internal=name[:2] == "__")
        if self.random.random() < 0.2:
            self.put(T(name, (), id, error=LEADER_NOT_AVAILABLE))
            self.creating[name] = full
            self.later(self.random.random(), self.finish_creation, name)
        else:
            self.put(full)

    def finish_creation(self, name: str) -> None:
        topic = self.creating.pop(name, None)
        known = self.truth.topics.get(name)
        if topic is not None and known is not None and known.id == topic.id:
            self.put(topic)

    def delete(self, name: str) -> None:
        self.commit(topics={n: t for n, t in self.truth.topics.items() if n != name})

    def widen(self, name: str) -> None:
        """Adds a partition."""
        topic = self.truth.topics.get(name)
        if topic is not None and topic.partitions and len(topic.partitions) < 5:
            more = self._partition(len(topic.partitions))
            self.put(replace(topic, partitions=[*topic.partitions, more]))

    def deny(self, name: str, denied: bool) -> None:
        others = self.truth.denied - {name}
        self.commit(denied=others | {name} if denied else others)

    def elect(self, name: str, index: int) -> bool:
        """Moves the leader of a partition to another in-sync replica; returns whether it could."""
        topic = self.truth.topics.get(name)
        if topic is None or index >= len(topic.partitions):
            return False
        p = topic.partitions[index]
        others = [id for id in p.isr or () if id != p.leader and id in self.truth.brokers]
        if others:
            self._put_partition(topic, replace(p, leader=others[0], epoch=p.epoch + 1, error=0))
        return bool(others)

    def resize_isr(self, name: str, index: int) -> None:
        """Takes a follower out of an ISR, or puts all live replicas back."""
        topic = self.truth.topics.get(name)
        if topic is None or index >= len(topic.partitions):
            return
        p = topic.partitions[index]
        isr = tuple(id for id in p.replicas if id in self.truth.brokers)
        if p.isr == isr:
            isr = (p.leader,)
        if p.leader >= 0 and p.leader in isr:
            self._put_partition(topic, replace(p, isr=isr))

    def fence(self, id: int) -> None:
        """Ends a broker's session: it leaves the brokers, and its leaderships move."""
        if id not in self.truth.brokers:
            return
        brokers = {other: b for other, b in self.truth.brokers.items() if other != id}
        if self.random.random() < 0.3:
            self.commit(brokers=brokers)  # its partitions still name it
        topics = {name: self._without(t, id, brokers) for name, t in self.truth.topics.items()}
        self.commit(brokers, topics)

    def unfence(self, id: int) -> None:
        """Registers a live broker: it returns to the brokers, and leads what has no leader."""
        server = self.servers[id]
        if server.alive:
            brokers = {**self.truth.brokers, id: self._registered(id)}
            topics = {name: self._with(t, id, brokers) for name, t in self.truth.topics.items()}
            self.commit(dict(sorted(brokers.items())), topics)

    def _registered(self, id: int) -> B:
        host, port = self.servers[id].address
        return B(id, host, port, f"rack-{id % 2}")

    def _partition(self, index: int) -> P:
        live = sorted(self.truth.brokers) or [1]
        first = self.random.randrange(len(live))
        count = min(len(live), self.random.choice((1, 2, 3, 3)))
        replicas = tuple((live[first:] + live[:first])[:count])
        return P(index, replicas[0], 0, replicas, replicas)

    def _put_partition(self, topic: T, changed: P) -> None:
        partitions = [changed if p.id == changed.id else p for p in topic.partitions]
        self.put(replace(topic, partitions=partitions))

    def _without(self, topic: T, id: int, brokers: Mapping[int, B]) -> T:
        return replace(topic, partitions=[self._lost(p, id, brokers) for p in topic.partitions])

    def _lost(self, p: P, id: int, brokers: Mapping[int, B]) -> P:
        if id not in p.replicas:
            return p
        offline = tuple(each for each in p.replicas if each not in brokers)
        isr = tuple(each for each in p.isr or () if each != id)
        if p.leader != id:
            return replace(p, offline=offline, isr=isr or p.isr)
        live = [each for each in isr if each in brokers]
        if live:
            return replace(p, leader=live[0], epoch=p.epoch + 1, isr=isr, offline=offline)
        return replace(
            p, leader=-1, epoch=p.epoch + 1, isr=(), offline=offline, error=LEADER_NOT_AVAILABLE
        )

    def _with(self, topic: T, id: int, brokers: Mapping[int, B]) -> T:
        return replace(topic, partitions=[self._found(p, id, brokers) for p in topic.partitions])

    def _found(self, p: P, id: int, brokers: Mapping[int, B]) -> P:
        if id not in p.replicas:
            return p
        offline = tuple(each for each in p.replicas if each not in brokers)
        if p.leader < 0:
            return replace(p, leader=id, epoch=p.epoch + 1, isr=(id,), offline=offline, error=0)
        isr = tuple(each for each in p.replicas if each == id or each in (p.isr or ()))
        return replace(p, offline=offline, isr=isr)

    # ---- the servers ----------------------------------------------------------------------------

    def kill(self, id: int, session: float) -> None:
        """Kills a process; the others name it as leader until its session ends."""
        self.servers[id].alive = False
        self.later(session, self._session_ended, id, self.servers[id].incarnation)

    def _session_ended(self, id: int, incarnation: int) -> None:
        server = self.servers[id]
        if server.incarnation == incarnation and (not server.alive or server.frozen):
            self.fence(id)

    def freeze(self, id: int, session: float) -> None:
        """Stops a process as SIGSTOP does; its connections stay open."""
        self.servers[id].frozen = True
        self.later(session, self._session_ended, id, self.servers[id].incarnation)

    def revive(self, id: int) -> None:
        """Starts a dead process, or thaws a frozen one; a fenced broker registers again."""
        server = self.servers[id]
        server.incarnation += not server.alive
        server.alive, server.frozen = True, False
        self.later(self.random.random() * server.lag, self.learn, server, len(self.log) - 1)
        if id not in self.truth.brokers:
            self.unfence(id)

    def move(self, id: int, address: Address) -> None:
        """Restarts a process at another address."""
        server = self.servers[id]
        server.incarnation += 1
        server.alive, server.frozen, server.address = True, False, address
        self.unfence(id)

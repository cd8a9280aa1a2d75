"""The servers, the links to them, and which of them a request goes to.

A Server is an address: that of one of the brokers of the last answer, or of a bootstrap server
until there is an answer. Backoff, throttling and the last error belong to the address. So they
outlive a link, an answer and a rebootstrap, and a broker at another address begins afresh.

A Link is one connection, or the attempt to make one:

    (none) --connect--> connecting --ready--> ready --lost--> (none), its server backs off

The choice is that of Kafka's Java client (leastLoadedNode). It begins at a random place, but with
the first bootstrap server before any answer, so that all clients are of one cluster. It takes the
first of these that there is:

1. a link that is ready and idle
2. the ready link with the fewest requests in flight
3. a link that is being made
4. of the servers whose backoff is over, the one that was tried longest ago

It never takes a server that throttles or backs off, or a link with 5 requests in flight. It takes
no link that is *silent*: a request on it was hedged, and no byte has come since.

A ready link is an orphan if its server is not one of the present servers. That is a bootstrap
server after the first answer, or a broker that has moved. It serves while no other link does, and
is closed when it is idle and another link is ready.

A server is *behind* if its answer was older than what is known, and *refused* if the cache took
nothing of it. It is the second choice: it is asked again only if no other server can be asked. If
all are, the server is asked whose answer is the oldest.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from random import Random

from rdmeta.client.actions import Node
from rdmeta.client.backoff import Backoff, jittered
from rdmeta.config.address import Address
from rdmeta.errors import Error, RequestTimedOutError, TransportError
from rdmeta.model import Broker

MOST_IN_FLIGHT = 5
MOST_ATTEMPTS = 5
MOST_PROBES = 2
MOST_IDLE = 2
SILENT_AFTER = 1.0
# Seconds after the time-out of an attempt. The driver ends it in time, and says how far it came.
GRACE = 1.0
# How long the failures and the older answers of a server count that is not present.
REMEMBERED = 60.0


@dataclass(eq=False)
class Server:
    """An address, with what is known about it. `ids` are the brokers that are there."""

    address: Address
    node: Node
    ids: tuple[int, ...] = ()
    is_current: bool = False
    failures: int = 0
    retry_at: float = -math.inf
    tried_at: float = -math.inf
    throttled_until: float = -math.inf
    behind_at: float = -math.inf
    refused_at: float = -math.inf
    versions: tuple[int, int] | None = None
    last_error: Error | None = None
    links: list[Link] = field(default_factory=list)
    attempts: int = 0
    connections: int = 0
    throttled: float = 0.0

    @property
    def second_choice_at(self) -> float:
        """When the server became the second choice, -inf if it is not: others are asked before."""
        return max(self.behind_at, self.refused_at)

    def is_remembered(self, now: float) -> bool:
        """Returns whether anything is to be known of a server that is not present.

        It has links, backs off or throttles, or has lately failed or given an older answer.
        """
        lately = max(self.retry_at, self.second_choice_at) + REMEMBERED
        return bool(self.links) or now < max(lately, self.throttled_until)

    def speaks(self, version: int) -> bool:
        """Returns whether the server may speak this version of Metadata, or a later one."""
        return self.versions is None or self.versions[1] >= version

    @property
    def is_wrong(self) -> bool:
        """Whether the last error says that a setting is wrong: the user must change it."""
        return self.last_error is not None and not self.last_error.retriable

    @property
    def is_awaited(self) -> bool:
        """Whether one of its links is being made, or has not answered a request."""
        return any(link.in_flight or not link.is_ready for link in self.links)

    @property
    def state(self) -> str:
        """The best state of its links, for stats()."""
        if any(link.is_ready for link in self.links):
            return "ready"
        return "connecting" if self.links else "disconnected"


@dataclass(eq=False)
class Link:
    """A connection, or the attempt to make one. `in_flight` has the time of each request.

    A request stays in flight on its link until the link answers it, even if another node has
    answered the question before.
    """

    number: int
    server: Server
    node: Node
    heard_at: float
    closes_at: float
    is_probe: bool = False
    is_ready: bool = False
    is_mock: bool = False
    is_silent: bool = False
    used_at: float = -math.inf
    in_flight: dict[int, float] = field(default_factory=dict)

    @property
    def is_orphan(self) -> bool:
        """Whether the link's server is not one of the present servers."""
        return not self.server.is_current or (
            self.node.id >= 0 and self.node.id not in self.server.ids
        )

    def deadline(self, socket_timeout: float) -> float:
        """Returns when the link is given up: the attempt, or its oldest request, takes too long."""
        if not self.is_ready:
            return self.closes_at
        return min(self.in_flight.values(), default=math.inf) + socket_timeout


@dataclass(frozen=True)
class Wish:
    """The node that a request needs: it speaks a version of Metadata, and is rather another one.

    `not_links` are excluded. `not_servers` are the last choice.
    """

    min_version: int = 0
    not_links: frozenset[int] = frozenset()
    not_servers: frozenset[Address] = frozenset()


class Nodes:
    """The servers and the links."""

    def __init__(
        self,
        bootstrap: Sequence[Address],
        random: Random,
        reconnect: Backoff,
        setup_timeout: float,
        sticky: bool,
    ) -> None:
        self._random, self._reconnect = random, reconnect
        self._setup_timeout = setup_timeout
        self._sticky = sticky
        self._chosen: Server | None = None
        self._bootstrap = {
            address: Node(-1 - i, address.host, address.port) for i, address in enumerate(bootstrap)
        }
        self._servers: dict[Address, Server] = {}
        self._brokers: tuple[Broker, ...] = ()
        self._has_gone = False
        self.current: list[Server] = []
        self.links: dict[int, Link] = {}
        # The link of each request that its link has not answered, also after another one has.
        self.unanswered: dict[int, Link] = {}
        self.reconnects = 0  # connections to an address after its first one
        self.use_bootstrap(-math.inf)

    # ---- the servers ----

    def use_bootstrap(self, now: float) -> None:
        """Makes the bootstrap servers the present ones."""
        self._brokers = ()
        for address, node in self._bootstrap.items():
            server = self._servers.setdefault(address, Server(address, node))
            server.node, server.ids = node, ()
            server.versions = None  # the name may lead elsewhere now
        self._set_current([self._servers[address] for address in self._bootstrap], now)

    def use_brokers(self, brokers: tuple[Broker, ...], now: float) -> None:
        """Makes the brokers of an answer the present servers."""
        if not brokers or brokers == self._brokers:
            if self._has_gone:
                self._forget_gone(now)
            return
        self._brokers = brokers
        at: dict[Address, list[int]] = {}
        for broker in brokers:
            at.setdefault(Address(broker.host, broker.port), []).append(broker.id)
        for address, ids in at.items():
            server = self._servers.get(address)
            if server is None:
                server = self._servers[address] = Server(address, Node(-1, *address))
            server.ids = tuple(ids)
            server.node = Node(ids[0], *address)
        self._set_current([self._servers[address] for address in at], now)

    def bootstrap_server(self, address: Address) -> Server:
        """Returns a bootstrap server, present or not."""
        return self._servers[address]

    @property
    def knows_brokers(self) -> bool:
        """Whether the present servers are brokers, and no longer the bootstrap servers."""
        return bool(self._brokers)

    def _set_current(self, servers: list[Server], now: float) -> None:
        """Replaces the present servers, and forgets others about which there is nothing to know."""
        for server in self.current:
            server.is_current = False
        self.current = servers
        for server in servers:
            server.is_current = True
        self._forget_gone(now)

    def _forget_gone(self, now: float) -> None:
        """Forgets servers that are gone, once there is nothing to know about them."""
        self._servers = {
            address: server
            for address, server in self._servers.items()
            if server.is_current or address in self._bootstrap or server.is_remembered(now)
        }
        present = {server.address for server in self.current}
        self._has_gone = not self._servers.keys() <= present.union(self._bootstrap)

    def of_broker(self, broker: int) -> Server | None:
        """Returns the present server of a broker."""
        return next((each for each in self.current if broker in each.ids), None)

    def servers(self) -> list[Server]:
        """Returns the present servers, and the others that have links."""
        others = [each for each in self._servers.values() if each.links and not each.is_current]
        return [*self.current, *others]

    def known(self) -> list[Server]:
        """Returns every server that is remembered, the present ones last."""
        others = [each for each in self._servers.values() if not each.is_current]
        return [*others, *self.current]

    def broker_at(self, server: Server, brokers: Iterable[Broker]) -> int | None:
        """Returns the one broker at a server's address; None if there is none, or several."""
        found = [b.id for b in brokers if (b.host, b.port) == server.address]
        found = found or list(server.ids)
        return found[0] if len(found) == 1 else None

    # ---- the links ----

    def open(self, number: int, server: Server, now: float, probe: bool = False) -> Link:
        """Adds a link that is being made."""
        link = Link(number, server, server.node, now, now + self._setup_timeout + GRACE, probe)
        self.links[number] = link
        server.links.append(link)
        server.tried_at = now
        server.attempts += 1
        return link

    def ready(self, link: Link, now: float, versions: tuple[int, int], mock: bool) -> None:
        """Notes that a link is ready for requests: its server's backoff begins afresh.

        What was wrong with the server before is over: no error of a wait shows it any more.
        """
        link.is_ready, link.is_mock, link.is_probe = True, mock, False
        link.heard_at = link.used_at = now
        server = link.server
        server.last_error = None
        server.versions, server.failures, server.retry_at = versions, 0, -math.inf
        server.connections += 1
        self.reconnects += server.connections > 1

    def close(self, link: Link) -> None:
        """Removes a link that this side closes: its server does not back off."""
        del self.links[link.number]
        link.server.links.remove(link)
        for number in link.in_flight:
            self.unanswered.pop(number, None)

    def lost(self, link: Link, now: float, error: Error, longest: float | None = None) -> bool:
        """Removes a link that failed; its server backs off, at once by `longest` if given.

        Returns whether that is news: the server had not failed before, or this was the last of its
        links that were ready.
        """
        server = link.server
        self.close(link)
        was_good = link.is_ready or server.failures == 0
        is_news = was_good and not any(each.is_ready for each in server.links)
        server.failures += 1
        server.last_error = error
        if not any(each.is_ready for each in server.links):
            server.versions = None
            server.behind_at = server.refused_at = -math.inf
        wait = self._reconnect.after(server.failures)
        if longest is not None:
            wait = max(wait, jittered(longest, self._random))
        server.retry_at = max(server.retry_at, now + wait)
        return is_news

    def throttle(self, server: Server, now: float, seconds: float) -> None:
        """Notes that nothing may be sent to a server for some time."""
        until = max(server.throttled_until, now + seconds)
        server.throttled += until - max(server.throttled_until, now)
        server.throttled_until = until

    @property
    def is_any_ready(self) -> bool:
        """Whether a link is ready for requests."""
        return any(link.is_ready for link in self.links.values())

    def connecting(self) -> list[Link]:
        """Returns the links that are being made, the newest last."""
        return [link for link in self.links.values() if not link.is_ready]

    # ---- the choice ----

    def _from_random_place(self, servers: list[Server]) -> list[Server]:
        start = self._random.randrange(len(servers)) if len(servers) > 1 else 0
        return servers[start:] + servers[:start]

    def pick(self, now: float, wish: Wish) -> Link | None:
        """Returns the link to send on; None if there is none now, or a better one is to come."""
        usable = [link for link in self.links.values() if _is_usable(link, now, wish)]
        if not usable:
            return None
        order = {id(each): i for i, each in enumerate(self._from_random_place(self.servers()))}
        best = min(usable, key=lambda link: (*self._rank(link, wish), order[id(link.server)]))
        return None if self._is_better_to_come(best.server, now, wish) else best

    def _rank(self, link: Link, wish: Wish) -> tuple[float, bool, bool, bool, int]:
        server = link.server
        return (
            *_choice(server, wish),
            link.is_orphan,
            self._sticky and server is not self._chosen,
            len(link.in_flight),
        )

    def _is_better_to_come(self, best: Server, now: float, wish: Wish) -> bool:
        """Returns whether a better choice can be connected to, or is about to be."""
        for server in self.current:
            if _choice(server, wish) >= _choice(best, wish):
                continue
            if self.can_connect(server, now, wish):
                return True
            if any(not each.is_ready and now < silent_at(each) for each in server.links):
                return True
        return False

    def can_connect(self, server: Server, now: float, wish: Wish) -> bool:
        """Returns whether a connection to a server may be made now, and would help."""
        if now < max(server.retry_at, server.throttled_until) or not server.speaks(
            wish.min_version
        ):
            return False
        return not any(_is_in_the_way(link, wish) for link in server.links)

    def to_connect(self, now: float, wish: Wish) -> Server | None:
        """Returns the server to connect to: of the best ones the one tried longest ago."""
        found = [each for each in self.current if self.can_connect(each, now, wish)]
        if not found:
            return None
        # All clients ask the first bootstrap server first, so that its cluster is that of all.
        return min(
            self._from_random_place(found) if self._brokers else found,
            key=lambda each: (
                *_choice(each, wish),
                any(link.is_silent for link in each.links),
                self._sticky and each is not self._chosen,
                each.tried_at,
            ),
        )

    def speaks_none(self, min_version: int) -> bool:
        """Returns whether every present server is known to speak only older versions."""
        return not any(each.speaks(min_version) for each in self.current)

    def answered(self, number: int) -> Link | None:
        """Ends the wait for an answer; returns its link, None if it is gone."""
        link = self.unanswered.pop(number, None)
        if link is not None:
            link.in_flight.pop(number, None)
        return link

    def sent(self, number: int, link: Link, now: float) -> None:
        """Notes that a request left on a link; a sticky client stays with its server."""
        self.unanswered[number] = link
        link.used_at = now
        if self._sticky and not link.is_orphan:
            self._chosen = link.server

    # ---- errors of waits ----

    def timed_out(self, what: str, has_answered: bool) -> RequestTimedOutError:
        """Returns the error of a wait whose time is over; it names each server's last cause.

        `has_answered` says that there was an answer: the settings are right.
        """
        servers = [each for each in self.servers() if each.last_error or each.is_awaited]
        causes = [f"{each.address}: {each.last_error or 'no answer yet'}" for each in servers]
        why = f" ({'; '.join(causes)})" if causes else ""
        if servers and not has_answered and all(map(_may_be_elsewhere, servers)):
            why += "; check bootstrap.servers"
        return RequestTimedOutError(f"{what} in time{why}")

    def refused(self, error: Error) -> Error:
        """Returns the error of a wait that `error` ends; it names each server that refuses.

        Its type is that of `error`, which is the last cause.
        """
        causes = [
            f"{server.address}: {server.last_error}"
            for server in self.servers()
            if server.last_error is error or server.is_wrong
        ]
        found = type(error)("; ".join(causes) or str(error), error.code, error.retriable)
        found.__cause__ = error
        return found

    def behind(self, server: Server, now: float, refused: bool = False) -> None:
        """Notes that a server gave an older answer, or one that the cache refused."""
        if refused:
            server.refused_at = now
        else:
            server.behind_at = now

    def clear_behind(self) -> None:
        """Notes that no topic is known to be older anywhere."""
        for server in self._servers.values():
            server.behind_at = -math.inf

    def superfluous(self, now: float) -> list[Link]:
        """Returns the idle links to close: all but two, and orphans once another link is ready."""
        ready = [link for link in self.links.values() if link.is_ready]
        idle = [link for link in ready if not link.in_flight]
        idle.sort(key=lambda link: (link.is_orphan, link.server is not self._chosen, -link.used_at))
        has_own = any(not link.is_orphan for link in ready)
        return [
            link for i, link in enumerate(idle) if i >= MOST_IDLE or (link.is_orphan and has_own)
        ]

    def is_lost(self, now: float, wish: Wish) -> bool:
        """Returns whether no node can be used, and none is connected or being connected.

        A node that speaks too old a version for the wish cannot be used, connected or not.
        """
        version, links = wish.min_version, self.links.values()
        if any(not link.is_ready or link.server.speaks(version) for link in links):
            return False
        return all(now < s.retry_at or not s.speaks(version) for s in self.current)

    def next_change(self, now: float) -> float:
        """Returns when a backoff or a throttling ends next."""
        times = [t for s in self.servers() for t in (s.retry_at, s.throttled_until) if t > now]
        return min(times, default=math.inf)


def _may_be_elsewhere(server: Server) -> bool:
    """Returns whether a server's address may be wrong: each attempt to connect failed."""
    may_be = type(server.last_error) in (TransportError, RequestTimedOutError)
    return may_be and server.connections == 0


def _choice(server: Server, wish: Wish) -> tuple[float, bool]:
    """Returns a key that is smaller for a better choice: first, second, third."""
    return server.second_choice_at, server.address in wish.not_servers


def silent_at(link: Link) -> float:
    """Returns when a link that is being made counts as silent, if it hears nothing more."""
    return link.heard_at + SILENT_AFTER


def _is_usable(link: Link, now: float, wish: Wish) -> bool:
    return (
        link.is_ready
        and not link.is_silent
        and link.number not in wish.not_links
        and len(link.in_flight) < MOST_IN_FLIGHT
        and link.server.throttled_until <= now
        and link.server.speaks(wish.min_version)
    )


def _is_in_the_way(link: Link, wish: Wish) -> bool:
    """Returns whether a link makes a second one to its server needless."""
    return not link.is_silent and link.number not in wish.not_links


def addresses(links: Collection[Link]) -> frozenset[Address]:
    """Returns the addresses of the links' servers."""
    return frozenset(link.server.address for link in links)

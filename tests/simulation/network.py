"""The simulated network, and the sockets of a driver: links, delays, breaks and black holes.

A link carries bytes in order, as TCP does; different links overtake each other. The network tells
the client only through `World.hand`, as a driver does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from cluster import Cluster, Server
from frames import T

from rdmeta import encode_metadata_request
from rdmeta.client.actions import Close, Connect, Node, Send
from rdmeta.config.address import Address
from rdmeta.errors import Error, MalformedError, RequestTimedOutError, TransportError
from rdmeta.model import Request

if TYPE_CHECKING:
    from world import World

# The Metadata versions that the client speaks.
OURS = (0, 13)
HANDSHAKE = "handshake"


class Answer(NamedTuple):
    """A response, the topics that it describes, and the time for which it throttles the client.

    `asks_rebootstrap` says that it has error 129, `damaged` that its bytes are.
    """

    version: int
    body: bytes
    topics: list[T]
    throttle_ms: int = 0
    asks_rebootstrap: bool = False
    damaged: bool = False


@dataclass
class Link:
    """A connection, or an attempt to make it, as its driver and its server see it.

    `closed` says how it ended, and is empty before. `stalled` holds what waits on a frozen server,
    or in a network that loses packets.
    """

    number: int
    node: Node
    since: float
    timeout: float
    server: Server | None = None
    incarnation: int = 0
    versions: tuple[int, int] | None = None
    ready: bool = False
    closed: str = ""
    sent: dict[int, Send] = field(default_factory=dict)
    last_sent: float = 0.0
    server_free: float = 0.0
    client_free: float = 0.0
    stalled: list[tuple[Callable[..., None], tuple[Any, ...]]] = field(default_factory=list)


class Network:
    """All links of one client.

    `bootstrap` has the addresses that each bootstrap name stands for. `nobody` says what happens at
    an address without a server. `strange` holds the kinds of damage that are switched on:
    "duplicates", "garbage", "unasked", "cut", "resolver".
    """

    def __init__(self, world: World, clusters: list[Cluster], round_trip: float) -> None:
        self.world = world
        self.random = world.random
        self.clusters = clusters
        self.round_trip = round_trip
        self.links: dict[int, Link] = {}
        self.numbers = 0
        self.nobody = self.random.choice(("refused", "swallowed"))
        self.bootstrap: dict[str, list[Address]] = {}
        self.strange: set[str] = set()

    # ---- the driver's side ----------------------------------------------------------------------

    def connect(self, action: Connect) -> None:
        """Starts an attempt to connect."""
        world = self.world
        link = Link(action.link, action.node, world.now, action.timeout)
        world.demand(action.link > self.numbers, "a number of a link is used twice")
        world.demand(action.timeout > 0, "an attempt to connect has no time")
        self.numbers = action.link
        self.links[link.number] = link
        world.later(action.timeout, self.fail, link, RequestTimedOutError("no connection in time"))
        if "resolver" in self.strange and self.random.random() < 0.5:
            world.later(0.01, self.fail, link, TransportError("no such host"))
            return
        server = self.server_at(action.node)
        silent = self.nobody == "swallowed" if server is None else server.network == "hole"
        if silent:
            return
        if server is None or not server.alive or server.network == "reset":
            world.later(self._latency() * 2, self.fail, link, TransportError("refused"))
            return
        link.server, link.incarnation = server, server.incarnation
        world.later(self._latency() * 3, self._arrive, link, HANDSHAKE)

    def send(self, action: Send) -> None:
        """Sends a request; one that the link's version cannot express fails."""
        world, link = self.world, self.links.get(action.link)
        assert link is not None
        assert link.versions is not None
        version, request = link.versions[1], action.request
        if isinstance(request, Request):
            try:
                encode_metadata_request(
                    version, request.topics, allow_auto_create=request.allow_auto_create
                )
            except Error as error:
                world.later(0.0, self._unsent, action.number, error)
                return
            named = isinstance(request.topics, tuple | list) and len(request.topics) > 0
            world.demand(
                not named or version >= 4 or request.allow_auto_create,
                "names are asked of a broker that would create the topics",
            )
        link.sent[action.number] = action
        link.last_sent = max(link.last_sent, world.now + self._latency())
        world.later(link.last_sent - world.now, self._arrive, link, action)

    def close(self, action: Close) -> None:
        """Closes a link: nothing more is told of it. It may have ended since the policy decided."""
        link = self.links.pop(action.link, None)
        self.world.demand(action.link <= self.numbers, "a link is closed that never was open")
        if link is not None:
            link.closed = action.cause.partition(":")[0]

    def open_links(self) -> list[Link]:
        return list(self.links.values())

    def server_at(self, node: Node) -> Server | None:
        """Returns the server that listens at the node's address now."""
        address = Address(node.host, node.port)
        if node.host in self.bootstrap:
            address = self.random.choice(self.bootstrap[node.host])
        for cluster in self.clusters:
            for server in cluster.servers.values():
                if server.address == address:
                    return server
        return None

    # ---- what happens to links ------------------------------------------------------------------

    def fail(self, link: Link, error: Error) -> None:
        """Ends an attempt to connect that has not succeeded."""
        if not link.ready:
            self.world.hand(self._ended, link, error)

    def break_link(self, link: Link, text: str = "reset by peer") -> None:
        """Ends a link, whatever it waits for."""
        self.world.hand(self._ended, link, TransportError(text))

    def stop(self, server: Server, silent: bool) -> None:
        """Ends the links of a server whose process died; `silent` without a packet."""
        for link in self.open_links():
            if link.server is server and not silent:
                self.world.later(self._latency(), self.break_link, link)

    def go_on(self, server: Server) -> None:
        """Delivers, or breaks, what stalled while the server was frozen or out of reach."""
        for link in self.open_links():
            if link.server is not server:
                continue
            stalled, link.stalled = link.stalled, []
            if stalled and self.random.random() < 0.3:
                self.world.later(self._latency(), self.break_link, link)
                continue
            for function, arguments in stalled:
                self.world.later(0.0, function, link, *arguments)

    # ---- the way of a request -------------------------------------------------------------------

    def _latency(self) -> float:
        return self.round_trip / 2 * (0.4 + 0.6 * self.random.random())

    def _stalls(self, link: Link, function: Callable[..., None], *arguments: Any) -> bool:
        """Returns whether the link's server cannot go on now; keeps what it should do then."""
        server = link.server
        assert server is not None
        if server.incarnation != link.incarnation or not server.alive:
            if server.network == "up":
                self.break_link(link)
            return True
        if server.network == "reset":
            self.break_link(link)
            return True
        if server.frozen or server.network == "hole":
            link.stalled.append((function, arguments))
            return True
        return False

    def _arrive(self, link: Link, item: Send | str) -> None:
        if link.closed or self._stalls(link, self._arrive, item):
            return
        assert link.server is not None
        start = max(link.server_free, self.world.now)
        link.server_free = start + link.server.service * self.random.random()
        self.world.later(link.server_free - self.world.now, self._serve, link, item)

    def _serve(self, link: Link, item: Send | str) -> None:
        if link.closed or self._stalls(link, self._serve, item):
            return
        server = link.server
        assert server is not None
        answer: Answer | tuple[int, int] | None
        if isinstance(item, str):
            both = max(OURS[0], server.versions[0]), min(OURS[1], server.versions[1])
            answer = both if both[0] <= both[1] else None
        elif isinstance(item.request, Request):
            assert link.versions is not None
            version = link.versions[1]
            self._create(server, item.request, version)
            body, topics = server.answer(item.request, version)
            damaged = "garbage" in self.strange and self.random.random() < 0.3
            if damaged:
                body, topics = body[: self.random.randrange(len(body))], []
            throttle = server.throttle_ms if version >= 6 else 0
            asks = version >= 13 and server.quirk == "rebootstrap" and not damaged
            answer = Answer(version, body, topics, throttle, asks, damaged)
        else:
            answer = Answer(item.request.highest, b"answer", [])
        arrival = max(link.client_free, self.world.now + self._latency())
        if server.drip:
            for _ in range(3):
                self.world.later(arrival - self.world.now, self._drop, link)
                arrival += self.random.random() * server.service
        link.client_free = arrival
        self.world.later(arrival - self.world.now, self._leave, link, item, answer)

    def _create(self, server: Server, request: Request, version: int) -> None:
        """Creates the topics that a request names, as brokers do that may."""
        if request.allow_auto_create and not isinstance(request.topics, type(None)):
            names = request.topics if isinstance(request.topics, tuple | list) else ()
            for name in names:
                if isinstance(name, str) and name not in server.cluster.truth.topics:
                    server.cluster.create(name)
                    self.world.later(1.0, self.world.hand, self.world.app.refresh_again)

    def _leave(self, link: Link, item: Send | str, answer: Any) -> None:
        server = link.server
        assert server is not None
        if link.closed:
            return
        if server.network == "hole":
            link.stalled.append((self._leave, (item, answer)))
            return
        if isinstance(item, Send) and "cut" in self.strange and self.random.random() < 0.3:
            self._drop(link)
            self.break_link(link, "cut inside a frame")
            return
        self.world.hand(self._received, link, item, answer)

    def _drop(self, link: Link) -> None:
        self.world.hand(self._some_bytes, link)

    # ---- what the driver tells ------------------------------------------------------------------

    def _some_bytes(self, link: Link) -> None:
        if not link.closed:
            self.world.policy.on_bytes(link.number, self.world.now)

    def _ended(self, link: Link, error: Error) -> None:
        if link.closed:
            return
        link.closed = "broken"
        del self.links[link.number]
        self.world.disconnected(link, error)

    def _unsent(self, number: int, error: Error) -> None:
        self.world.hand(self.world.failed, number, error)

    def _received(self, link: Link, item: Send | str, answer: Any) -> None:
        if link.closed:
            return
        if isinstance(item, str):
            link.ready, link.versions = True, answer
            self.world.connected(link)
            return
        if "unasked" in self.strange and self.random.random() < 0.3:
            self._ended(link, MalformedError("an answer that nobody asked for"))
            return
        self._some_bytes(link)
        if link.closed:
            return
        link.sent.pop(item.number, None)
        self.world.answered(link, item, answer)
        if "duplicates" in self.strange and not link.closed and self.random.random() < 0.5:
            self.world.answered_again(item, answer)

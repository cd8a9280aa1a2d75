"""The faults of a simulated cluster: most kinds begin, last for a time, and end by themselves.

A fault is a method of `Faults`; `KINDS` lists their names. `heal` ends all of them at once:
after that the parts that faults have scheduled do not happen.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from cluster import Cluster, Server
from scene import NAMES

from rdmeta.config.address import Address

if TYPE_CHECKING:
    from world import World

KINDS = (
    "kill", "stop", "freeze", "slow", "lag", "unreachable", "outage", "break_link", "damage",
    "throttle", "quirk", "deny", "delete", "create", "recreate", "widen", "elect", "flip", "isr",
    "listener", "move", "usurp", "upgrade", "behind", "leap", "wall",
)  # fmt: skip


class Faults:
    """The faults of one seed."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.random = world.random
        self.generation = 0
        self.active = False
        self.moved = 0
        self.usurped = False

    # ---- when -----------------------------------------------------------------------------------

    def begin(self) -> None:
        """Starts the scene's faults, one after the other."""
        self.active = True
        if self.world.scene.faults:
            self._next()

    def later(self, delay: float, function: Callable[..., None], *arguments: Any) -> None:
        """Schedules a part of a fault; it does not happen if the faults end before."""
        self.world.later(delay, self._unless_healed, self.generation, function, arguments)

    def _unless_healed(
        self, generation: int, function: Callable[..., None], arguments: tuple[Any, ...]
    ) -> None:
        if generation == self.generation:
            function(*arguments)

    def _next(self) -> None:
        self.later(self.random.expovariate(1 / self.world.scene.pace), self._one)

    def _one(self) -> None:
        kind = self.random.choice(sorted(self.world.scene.faults))
        self.world.say("fault", kind)
        getattr(self, kind)()
        self._next()

    def heal(self, dead: Server | None = None) -> None:
        """Ends all faults now: every server is up, and has reached the truth."""
        self.generation += 1
        self.active = False
        world, cluster = self.world, self.world.cluster
        world.network.strange.clear()
        for name in list(cluster.creating):
            cluster.finish_creation(name)
        for server in cluster.servers.values():
            server.lag = server.service = 0.001
            server.drip, server.throttle_ms, server.quirk = False, 0, ""
            server.listenerless, server.network = -1, "up"
            if server.versions[0] > 13:
                server.versions = 0, 13
                cluster.kill(server.id, 0.0)
                world.network.stop(server, silent=False)
            cluster.revive(server.id)
        world.point_bootstrap()
        cluster.catch_up()
        for server in cluster.servers.values():
            world.network.go_on(server)
        if world.network.clusters[1:] and world.cache.cluster_id != cluster.cluster_id:
            self._expel()

    def _expel(self) -> None:
        """Ends the other cluster: the client has never known which one is its own."""
        usurper = self.world.network.clusters.pop()
        for server in usurper.servers.values():
            server.alive = False
            self.world.network.stop(server, silent=False)

    # ---- processes ------------------------------------------------------------------------------

    def kill(self) -> None:
        """A process dies; its host, which refuses connections, may be gone as well."""
        server = self._server()
        if server.alive:
            self.kill_server(server, silent=self.random.random() < 0.3)
            self.later(self._while(20.0), self._revive, server)

    def kill_server(self, server: Server, silent: bool) -> None:
        server.network = "hole" if silent else "up"
        server.cluster.kill(server.id, self.world.scene.session)
        self.world.network.stop(server, silent)

    def _revive(self, server: Server) -> None:
        server.network = "up"
        server.cluster.revive(server.id)
        self.world.network.go_on(server)

    def stop(self) -> None:
        """A process stops in good order: its leaders move before it closes its connections."""
        server = self._server()
        if server.alive and not server.frozen:
            server.cluster.fence(server.id)
            self.later(0.7, self._stopped, server)
            self.later(self._while(10.0) + 0.7, self._revive, server)

    def _stopped(self, server: Server) -> None:
        server.alive = False
        self.world.network.stop(server, silent=False)

    def freeze(self) -> None:
        """A process is stopped as by SIGSTOP, and goes on later with its old state."""
        server = self._server()
        if server.alive and not server.frozen:
            server.cluster.freeze(server.id, self.world.scene.session)
            self.later(self._while(20.0), self._revive, server)

    def behind(self) -> None:
        """A process starts again with an older state."""
        server = self._server()
        if server.alive:
            server.cluster.kill(server.id, 0.1)
            self.world.network.stop(server, silent=False)
            server.state = max(0, server.state - self.random.randint(1, 5))
            self.later(self.random.random(), self._revive, server)

    def upgrade(self) -> None:
        """A process starts again with other versions of Metadata."""
        server = self._server()
        if server.alive:
            server.versions = 0, self.random.choice((3, 4, 8, 9, 10, 12, 13, 13))
            if self.world.scene.faults & {"recreate", "delete"}:
                is_new = self.world.scene.versions[0][1] >= 10
                server.versions = 0, self.random.choice((10, 12, 13) if is_new else (4, 8, 9))
            if self.random.random() < 0.1:
                server.versions = 14, 15
            server.cluster.kill(server.id, 0.1)
            self.world.network.stop(server, silent=False)
            self.later(self.random.random(), self._revive, server)

    def slow(self) -> None:
        server = self._server()
        server.service = self.random.choice((0.3, 2.0, 8.0))
        server.drip = self.random.random() < 0.5
        self.later(self._while(10.0), self._quick, server)

    def _quick(self, server: Server) -> None:
        server.service, server.drip = 0.002, False

    def lag(self) -> None:
        server = self._server()
        server.lag = self.random.choice((2.0, 10.0, 100.0))
        self.later(self._while(20.0), self._caught_up, server)

    def _caught_up(self, server: Server) -> None:
        server.lag = self.world.scene.lag
        server.cluster.learn(server, len(server.cluster.log) - 1)

    # ---- the network ----------------------------------------------------------------------------

    def unreachable(self) -> None:
        server = self._server()
        if server.alive:
            self._cut(server, self.random.choice(("hole", "reset")))
            self.later(self._while(10.0), self._mend, server)

    def outage(self) -> None:
        """The client reaches no server."""
        how, duration = self.random.choice(("hole", "reset")), self._while(20.0)
        for server in self.world.cluster.servers.values():
            self._cut(server, how)
            self.later(duration, self._mend, server)

    def _cut(self, server: Server, how: str) -> None:
        server.network = how
        self.world.network.stop(server, silent=how == "hole")

    def _mend(self, server: Server) -> None:
        server.network = "up"
        self.world.network.go_on(server)

    def break_link(self) -> None:
        links = self.world.network.open_links()
        if links:
            self.world.network.break_link(self.random.choice(links))

    def damage(self) -> None:
        """Answers come twice, damaged, unasked or cut; names do not resolve."""
        kinds = ("duplicates", "garbage", "unasked", "cut", "resolver")
        kind = self.random.choice(kinds)
        self.world.network.strange.add(kind)
        self.later(self._while(10.0), self.world.network.strange.discard, kind)

    def move(self) -> None:
        """Servers start again at new addresses; the old ones refuse connections, or are silent."""
        servers = list(self.world.cluster.servers.values())
        if self.random.random() < 0.3:
            servers = [self._server()]
        for server in servers:
            self.world.network.stop(server, silent=self.random.random() < 0.3)
            self.moved += 1
            server.network = "up"
            server.cluster.move(server.id, Address(f"moved-{self.moved}", 9092))
        if self.random.random() < 0.5:
            self.world.point_bootstrap()

    def usurp(self) -> None:
        """Servers move, and another cluster has their old addresses."""
        if self.usurped:
            return
        self.usurped = True
        other = Cluster(self.random, self.later, "usurper")
        other.start(len(self.world.cluster.servers), (0, 13), NAMES[:3])
        for old, new in zip(
            self.world.cluster.servers.values(), other.servers.values(), strict=True
        ):
            new.address = old.address
            self.world.network.stop(old, silent=False)
            self.moved += 1
            old.cluster.move(old.id, Address(f"moved-{self.moved}", 9092))
        other.log[-1] = type(other.truth)(
            {id: other._registered(id) for id in other.servers}, other.truth.topics
        )
        self.world.network.clusters.append(other)
        self.world.point_bootstrap()

    # ---- answers --------------------------------------------------------------------------------

    def throttle(self) -> None:
        server = self._server()
        server.throttle_ms = self.random.choice((100, 1000, 5000))
        self.later(self._while(10.0), setattr, server, "throttle_ms", 0)

    def quirk(self) -> None:
        server = self._server()
        server.quirk = self.random.choice(("no brokers", "error", "rebootstrap"))
        self.later(self._while(5.0), setattr, server, "quirk", "")

    def listener(self) -> None:
        server = self._server()
        server.listenerless = self._server().id
        self.later(self._while(10.0), setattr, server, "listenerless", -1)

    # ---- the truth ------------------------------------------------------------------------------

    def deny(self) -> None:
        name = self._topic()
        self.world.cluster.deny(name, True)
        self.later(self._while(20.0), self.world.cluster.deny, name, False)

    def delete(self) -> None:
        self.world.cluster.delete(self._topic())

    def create(self) -> None:
        self.world.cluster.create(self._topic())

    def recreate(self) -> None:
        name = self._topic()
        self.world.cluster.delete(name)
        self.later(self.random.choice((0.0, 0.1, 3.0)), self.world.cluster.create, name)

    def widen(self) -> None:
        self.world.cluster.widen(self._topic())

    def elect(self) -> None:
        self.world.cluster.elect(self._topic(), self.random.randrange(3))

    def flip(self) -> None:
        """A leadership moves away and back: A, B, A."""
        name, index = self._topic(), self.random.randrange(3)
        for delay in (0.0, self.random.random(), 2 * self.random.random() + 1):
            self.later(delay, self._elect, name, index)

    def _elect(self, name: str, index: int) -> None:
        self.world.cluster.elect(name, index)

    def isr(self) -> None:
        self.world.cluster.resize_isr(self._topic(), self.random.randrange(3))

    # ---- clocks ---------------------------------------------------------------------------------

    def leap(self) -> None:
        """The client's process stands still; its clock goes on."""
        self.world.pause(self.random.choice((0.5, 3.0, 20.0, 60.0)))

    def wall(self) -> None:
        """The wall clock is set."""
        self.world.clock.epoch += self.random.choice((-86400.0, -1.0, 3600.0))

    # ---- choices --------------------------------------------------------------------------------

    def _server(self) -> Server:
        return self.random.choice(list(self.world.cluster.servers.values()))

    def _topic(self) -> str:
        return self.random.choice(NAMES)

    def _while(self, longest: float) -> float:
        return self.random.choice((0.02, 0.2, 1.0)) * longest * self.random.random()

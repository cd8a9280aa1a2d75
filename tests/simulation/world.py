"""One seed: a simulated cluster, network and application around the real policy and cache.

`World.run` takes events in the order of their times. Whenever something has reached the client,
the world works as a driver: it sweeps the cache, polls the policy and carries out the actions. Then
it checks every invariant.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Generator
from random import Random
from typing import Any

import app
import faults
import trials
from app import App
from cluster import Cluster
from faults import Faults
from invariants import Invariants
from network import Answer, Link, Network
from policy_driver import head_of
from report import Report
from rules import Rules
from scene import Scene, scene_of
from violation import Violation

from rdmeta import Applied, MetadataCache
from rdmeta.client.actions import Action, Close, Connect, Finish, Send
from rdmeta.client.policy import Policy
from rdmeta.config.address import parse_bootstrap
from rdmeta.errors import Error

# The shortest time between two sweeps by the driver.
SWEEP = 0.05


class Clock:
    """The clock of the cache: the world's time, and a wall clock that can be set."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.epoch = 1_750_000_000.0

    def monotonic(self) -> float:
        return self.now

    def time(self) -> float:
        return self.epoch + self.now


def micros(at: float) -> float:
    """Returns the time, rounded up to microseconds as the cache counts them."""
    if at == math.inf:
        return at
    count = math.ceil(at * 1e6)
    return count / 1e6 if count / 1e6 >= at else (count + 1) / 1e6


class World:
    """A seed's run; `make` makes the policy under test."""

    def __init__(
        self, seed: int, make: Callable[..., Policy] = Policy, report: Report | None = None
    ) -> None:
        self.seed, self.report = seed, report
        self.random = Random(seed)
        self.clock = Clock()
        self.heap: list[tuple[float, int, Callable[..., None], tuple[Any, ...]]] = []
        self.count = 0
        self.steps = 0
        self.paused_until = -math.inf
        self.inbox: list[tuple[Callable[..., None], tuple[Any, ...]]] = []
        self.touched = True
        self.client_at, self.sweep_at = self.now, math.inf
        self.closing = self.ended = False
        self.scene: Scene = scene_of(self.random, faults.KINDS, app.KINDS)
        scene = self.scene
        self.faults = Faults(self)
        self.cluster = Cluster(self.random, self.faults.later)
        self.network = Network(self, [self.cluster], scene.round_trip)
        self._start_cluster()
        self.cache = MetadataCache(clock=self.clock, seed=seed, max_age=scene.config.max_age)
        self.invariants = Invariants(self)
        self.rules = Rules(self)
        self.app = App(self)
        self.policy = make(
            self.cache,
            scene.config,
            parse_bootstrap(scene.config.bootstrap_servers),
            Random(seed + 1),
            topics=scene.topics,
            sticky=scene.sticky,
        )
        # The topics in which the cache must equal the truth; None: all that are needed.
        self.only: set[str] | None = None
        # Whether the client gets no help: then it finds what it knows to be missing, and no more.
        self.alone = False
        self.settled_at: Callable[[], None] | None = None
        self.script = self._script()

    @property
    def now(self) -> float:
        return self.clock.now

    # ---- events ---------------------------------------------------------------------------------

    def later(self, delay: float, function: Callable[..., None], *arguments: Any) -> None:
        """Calls the function after `delay` s of simulated time."""
        self.count += 1
        heapq.heappush(self.heap, (micros(self.now + delay), self.count, function, arguments))

    def hand(self, function: Callable[..., None], *arguments: Any) -> None:
        """Calls what enters the client: at once, or when its process goes on."""
        if self.paused_until > self.now:
            self.inbox.append((function, arguments))
        else:
            self.touched = True
            function(*arguments)

    def pause(self, seconds: float) -> None:
        """Stops the client's process."""
        if self.paused_until <= self.now:
            self.paused_until = self.now + seconds
            self.later(seconds, self._resume)

    def _resume(self) -> None:
        self.paused_until = -math.inf
        inbox, self.inbox = self.inbox, []
        for function, arguments in inbox:
            self.hand(function, *arguments)
        self.touched = True

    def run(self) -> None:
        """Runs the seed to its end; raises Violation."""
        self._continue()
        while not self.ended:
            at = self.heap[0][0] if self.heap else math.inf
            if self.paused_until <= self.now:
                at = min(at, self.client_at)
            self.demand(at < math.inf, "nothing will ever happen again")
            self.clock.now = max(self.now, at)
            while self.heap and self.heap[0][0] <= self.now:
                _, _, function, arguments = heapq.heappop(self.heap)
                function(*arguments)
            if self.paused_until <= self.now and (self.touched or self.now >= self.client_at):
                self._step()

    def _step(self) -> None:
        """Does what a driver does in one turn, then checks the invariants."""
        self.steps += 1
        told, self.touched = self.touched or self.now >= self.sweep_at, False
        self.cache.sweep()
        self.rules.before_actions()
        poll = self.policy.poll(self.now)
        self.invariants.poll_never_spins(poll, told)
        for action in poll.actions:
            self._execute(action)
        sweep = self.cache.sweep()
        late = self.random.random() * self.scene.late
        self.sweep_at = math.inf if sweep is None else micros(self.now + max(sweep, SWEEP))
        self.client_at = min(micros(poll.at + late), self.sweep_at)
        self.policy.take_events()
        self.rules.acted()
        self.invariants.stepped(poll.at)
        if self.settled_at is not None:
            self.settled_at()

    def _execute(self, action: Action) -> None:
        if self.report is not None:
            self.report.action(self, action)
        if isinstance(action, Send):
            link = self.network.links.get(action.link)
            self.demand(link is not None and link.ready, "a request is sent on no ready link")
            assert link is not None
            self.invariants.sending(action, link)
            self.rules.sending(action, link)
            self.network.send(action)
        elif isinstance(action, Connect):
            self.invariants.connecting(action)
            self.rules.trying(action)
            self.network.connect(action)
        elif isinstance(action, Close):
            self.invariants.closing(action, self.network.links.get(action.link))
            self.network.close(action)
        else:
            assert isinstance(action, Finish)
            self.app.finished(action)

    # ---- what reaches the client ----------------------------------------------------------------

    def connected(self, link: Link) -> None:
        self.say("connected", link)
        self.invariants.connected(link)
        self.policy.on_connected(link.number, self.now, link.versions)

    def disconnected(self, link: Link, error: Error) -> None:
        self.say("disconnected", link, str(error))
        self.invariants.disconnected(link)
        self.rules.disconnected(link)
        self.policy.on_disconnected(link.number, self.now, error)

    def failed(self, number: int, error: Error) -> None:
        self.say("failed", number, str(error))
        self.invariants.failed(number)
        self.policy.on_failure(number, self.now, error)

    def answered(self, link: Link, send: Send, answer: Answer) -> None:
        self.invariants.answering(send)
        self.rules.answering(answer)
        applied = self._respond(send, answer)
        self.say("answered", link, send, answer, applied)
        if send.number in self.invariants.in_flight:
            self.rules.answered(link, send, answer, applied)
        self.invariants.answered(link, send, answer, applied)

    def answered_again(self, send: Send, answer: Answer) -> None:
        applied = self._respond(send, answer)
        self.demand(applied is None, "the second answer to a request was applied")

    def _respond(self, send: Send, answer: Answer) -> Applied | None:
        version, body = answer.version, answer.body
        head = head_of(send, version, body)
        return self.policy.on_response(send.number, self.now, version, body, head)

    # ---- the course of a seed -------------------------------------------------------------------

    def _start_cluster(self) -> None:
        self.cluster.start(self.scene.brokers, (0, 13), self.scene.existing)
        for server, versions in zip(
            self.cluster.servers.values(), self.scene.versions, strict=True
        ):
            server.versions, server.lag = versions, self.scene.lag
        self.point_bootstrap()

    def point_bootstrap(self) -> None:
        """Makes the bootstrap names stand for the servers' present addresses."""
        addresses = [server.address for server in self.cluster.servers.values()]
        self.network.bootstrap = {"boot-1": addresses[:1], "boot-2": addresses}

    def _continue(self) -> None:
        self.touched = True
        step = next(self.script, None)
        if step is None:
            self.ended = True
        elif step >= 0:
            self.later(step, self._continue)

    def _script(self) -> Generator[float, None, None]:
        """Yields the time until the script goes on; -1: when the cache equals the truth."""
        for _ in range(self.scene.rounds):
            self.app.begin()
            self.faults.begin()
            yield self.scene.length * self.random.random()
            self.app.quiet()
            if self.scene.closes_early:
                break
            while self.paused_until > self.now:
                yield self.paused_until - self.now
            yield from self._heal()
            for trial in self.random.sample(trials.TRIALS, self.random.randint(0, 3)):
                yield from self._try(trial)
        self.hand(self._close)
        yield max(0.0, self.paused_until - self.now) + 1.0
        self.invariants.closed()

    def _heal(self) -> Generator[float, None, None]:
        self.faults.heal()
        self.touched = True
        mode = self.random.choice(("break", "refresh", "alone"))
        self.say("heal", mode)
        if mode == "break":
            for link in self.network.open_links():
                self.network.break_link(link)
        self.app.keep_in_use()
        if mode == "alone":
            self.alone = True
            yield from self._settle(trials.SLOW)
            self.alone = False
        self.app.refresh_of(None, False, None)
        self.touched = True
        yield from self._settle(0.0)

    def _try(self, trial: Callable[[World], trials.Trial]) -> Generator[float, None, None]:
        """Makes a trial in the healthy cluster, and heals the cluster afterwards."""
        if min(server.versions[1] for server in self.cluster.servers.values()) < 4:
            return  # a trial is about topics that are asked for by name
        self.say("trial", trial.__name__)
        extra = yield from trial(self)
        self.touched = True
        if extra is not None:
            yield from self._settle(extra)
        if self.unhealthy() or self.only is not None:
            self.only = None
            yield from self._heal()

    def unhealthy(self) -> bool:
        return any(
            not server.usable or server.state < len(self.cluster.log) - 1
            for server in self.cluster.servers.values()
        )

    def _settle(self, extra: float) -> Generator[float, None, None]:
        """Waits until the cache equals the truth, and then a while; it must stay equal."""
        topics = self.cluster.created
        settling = self.invariants.settle(self.faults, extra)
        self.later(settling.bound + 0.001, self._look_again)

        def look() -> None:
            if self.invariants.truth_is_reached(settling):
                self.settled_at = None
                self.later(0.0, self._continue)

        while True:
            self.settled_at = look
            yield -1
            self.say("settled", self.now - settling.since)
            yield 2.0 * self.random.random()
            if self.cluster.created != topics:  # a request created a topic
                yield from self._settle(extra)
                break
            if self.invariants.truth_stays(settling):
                break

    def _look_again(self) -> None:
        self.touched = True

    def _close(self) -> None:
        self.say("close")
        self.closing = True
        self.policy.close(self.now)

    # ---- helpers --------------------------------------------------------------------------------

    def can_be_asked(self) -> bool:
        """Returns whether a broker can be asked for names and does not create them unasked."""
        servers = self.cluster.servers.values()
        return self.scene.config.allow_auto_create or any(s.versions[1] >= 4 for s in servers)

    def black(self, name: str) -> bool:
        return any(pattern.search(name) for pattern in self.scene.config.blacklist)

    def demand(self, condition: object, text: str) -> None:
        """Raises Violation unless the policy keeps its contract with the driver."""
        if not condition:
            raise Violation("contract", text)

    def say(self, *what: object) -> None:
        if self.report is not None:
            self.report.note(self, *what)

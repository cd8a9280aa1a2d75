"""The state that the parts of the policy share: cache, data structures, output of a poll."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from itertools import count
from random import Random

from rdmeta._core import MetadataCache
from rdmeta.client.actions import Action, Event
from rdmeta.client.backoff import Backoff, Budget, Gate
from rdmeta.client.complaints import Complaints
from rdmeta.client.flights import Flights
from rdmeta.client.nodes import Link, Nodes, Server
from rdmeta.client.retry_schedule import Elections, RetrySchedule, Rules, Why
from rdmeta.client.subscriptions import Subscriptions
from rdmeta.client.suspects import Suspects
from rdmeta.client.waiting_calls import Waiters, Wants
from rdmeta.config import Config
from rdmeta.config.address import Address
from rdmeta.errors import Error, RequestTimedOutError, TransportError

__all__ = ["State"]

BURST = 8
BUDGET_SHARE = 0.8


class State:
    """The shared state; each part of the policy changes it through the parts' methods."""

    def __init__(
        self,
        cache: MetadataCache,
        config: Config,
        bootstrap: Sequence[Address],
        random: Random,
        sticky: bool,
    ) -> None:
        longest = config.retry_backoff_max
        self.cache, self.config, self.random = cache, config, random
        self.actions: list[Action] = []
        self.events: list[Event] = []
        self.numbers = count(1)
        reconnect = Backoff(config.reconnect_backoff, config.reconnect_backoff_max, random)
        self.nodes = Nodes(bootstrap, random, reconnect, config.setup_timeout, sticky)
        self.subscriptions = Subscriptions(config.max_topics, config.max_idle, config.blacklist)
        rules = Rules(config.fast_interval, longest, random, config.propagation_max)
        self.schedule = RetrySchedule(rules)
        self.waiters = Waiters(
            self.actions.append,
            lambda: cache.version,
            lambda name: self.schedule.drop(Why.WAITED, name),
        )
        self.wants = Wants(self.waiters)
        self.elections = Elections(cache)
        self.suspects = Suspects(cache, rules, self.subscriptions.__contains__, self.elections)
        self.complaints = Complaints(cache)
        self.gate = Gate(Backoff(config.retry_backoff, longest, random))
        self.budget = Budget(BURST, BUDGET_SHARE * longest)
        self.flights = Flights()
        # The link of each request that its link has not answered, also after another one has.
        self.unanswered: dict[int, Link] = {}
        # Needed topics that an answer did not bring, and since when.
        self.unknown: dict[str, float] = {}
        self.topics_in_all = 0  # the topics of the last all-topics answer
        self.is_changed = True  # the cache must be looked at
        self.next_poll = math.inf
        # For stats().
        self.counts: Counter[tuple[str, str]] = Counter()
        self.totals: Counter[str] = Counter()
        self.last_try: float | None = None
        self.last_success: float | None = None

    def later(self, at: float) -> None:
        """Asks for a poll at that time."""
        self.next_poll = min(self.next_poll, at)

    def timed_out(self, what: str) -> RequestTimedOutError:
        """Returns the error of a wait whose time is over; it names each server's last cause."""
        servers = [
            server
            for server in self.nodes.servers()
            if server.last_error is not None or server.is_awaited
        ]
        causes = [f"{each.address}: {each.last_error or 'no answer yet'}" for each in servers]
        why = f" ({'; '.join(causes)})" if causes else ""
        if servers and self.last_success is None and all(map(_may_be_elsewhere, servers)):
            why += "; check bootstrap.servers"
        return RequestTimedOutError(f"{what} in time{why}")

    def refused(self, error: Error) -> Error:
        """Returns the error of a wait that `error` ends; it names each server that refuses.

        Its type is that of `error`, which is the last cause.
        """
        causes = [
            f"{server.address}: {server.last_error}"
            for server in self.nodes.servers()
            if server.last_error is error or server.is_wrong
        ]
        found = type(error)("; ".join(causes) or str(error), error.code, error.retriable)
        found.__cause__ = error
        return found

    def closed_error(self) -> Error:
        """Returns the error of a wait that close() ends."""
        return Error("the client is closed")


def _may_be_elsewhere(server: Server) -> bool:
    """Returns whether a server's address may be wrong: each attempt to connect failed."""
    may_be = type(server.last_error) in (TransportError, RequestTimedOutError)
    return may_be and server.connections == 0

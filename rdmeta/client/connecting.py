"""Which links are made and closed: attempts, probes of suspects, and the rebootstrap.

A request that finds no link leaves a Wish. Then one attempt is made, on the best server for it; one
more whenever the newest has been silent for 1 s; five at most. Probes of suspect brokers count
among the five, and there are two at most, so that requests are not held up by dead brokers.

A rebootstrap closes every link and goes back to the bootstrap servers, whose names the driver
resolves at each Connect. The cache and every backoff stay. There are three causes:

- No node can be used: all present servers back off or speak too old a version, and nothing is
  connected or being connected.
- There were tries and no success for metadata.recovery.rebootstrap.trigger.ms.
- A broker answered with error 129.

Two rebootstraps are at least reconnect.backoff.max.ms apart. Only after one, an answer of another
cluster is taken.
"""

from __future__ import annotations

import math

from rdmeta.client.actions import Close, Connect, Problem
from rdmeta.client.nodes import MOST_ATTEMPTS, MOST_PROBES, Link, Nodes, Server, Wish, silent_at
from rdmeta.client.poll_output import PollOutput
from rdmeta.client.suspects import Suspects
from rdmeta.config import Config
from rdmeta.errors import TransportError

FIRST_WITH_CLUSTER_ID = 2


class Connecting:
    """Decides about links."""

    def __init__(
        self, config: Config, nodes: Nodes, suspects: Suspects, output: PollOutput
    ) -> None:
        self._config, self._nodes, self._suspects = config, nodes, suspects
        self._output = output
        self._wish: Wish | None = None
        self._rebootstrapped_at = -math.inf
        self._wanted: str | None = None
        self.trying_since: float | None = None
        # Whether there was any answer; before it, the configuration may be wrong.
        self.has_succeeded = False
        # Whether the next answer may be of another cluster.
        self.is_rebootstrapped = False
        self.rebootstraps = 0

    def wish(self, wish: Wish) -> None:
        """Notes that a request finds no link; the first wish of a poll counts."""
        if self._wish is None:
            self._wish = wish

    def tried(self, now: float) -> None:
        """Notes a request or an attempt to connect."""
        if self.trying_since is None:
            self.trying_since = now

    def succeeded(self, version: int) -> None:
        """Notes an answer that was applied; before v2 it does not say of which cluster it is."""
        self.trying_since, self.has_succeeded = None, True
        if version >= FIRST_WITH_CLUSTER_ID:
            self.is_rebootstrapped = False

    def want_rebootstrap(self, cause: str) -> None:
        """Notes that a broker asks for a rebootstrap."""
        self._wanted = cause

    # ---- rebootstrap ----

    def rebootstrap_cause(self, now: float, is_asking: bool) -> str | None:
        """Returns why it is time to rebootstrap; None if it is not.

        `is_asking` says that there is something to ask for: without that, nothing can succeed.
        """
        if not self._config.rebootstrap:
            return None
        if not is_asking:
            self.trying_since = None
        cause = self._wanted
        if self.trying_since is not None:
            trigger = self.trying_since + self._config.rebootstrap_trigger
            if now >= trigger:
                cause = cause or f"no answer for {self._config.rebootstrap_trigger:.3g} s"
            else:
                self._output.later(trigger)
        if self._wish is not None and self._nodes.is_lost(now, self._wish):
            cause = cause or "no node can be used"
        if cause is None:
            return None
        allowed = self._rebootstrapped_at + self._config.reconnect_backoff_max
        if now < allowed:
            self._output.later(allowed)
            return None
        return cause

    def rebootstrap(self, now: float, cause: str) -> list[Link]:
        """Goes back to the bootstrap servers; returns the links, which the caller must end."""
        self._rebootstrapped_at, self._wanted = now, None
        self.trying_since, self.is_rebootstrapped = now, True
        links = list(self._nodes.links.values())
        is_wrong = all(each.is_wrong for each in self._nodes.current)
        if links or (self._nodes.knows_brokers and not is_wrong):  # else the servers' errors say it
            text = "every connection is closed, and the bootstrap servers are asked anew"
            self._output.report(Problem(TransportError(cause), None, text))
        self._nodes.use_bootstrap(now)
        self.rebootstraps += 1
        return links

    # ---- links ----

    def run(self, now: float) -> None:
        """Makes and closes links, after every request of this poll has found one or has not."""
        wish, self._wish = self._wish, None
        if wish is not None:
            self._attempt(now, wish)
        self._probe(now)
        for link in self._nodes.superfluous(now):
            self._output.do(Close(link.number, "idle"))
            self._nodes.close(link)

    def _attempt(self, now: float, wish: Wish) -> None:
        self._output.later(self._nodes.next_change(now))
        connecting = self._nodes.connecting()
        attempts = [link for link in connecting if not link.is_probe]
        if attempts:
            quiet_at = silent_at(max(attempts, key=lambda link: link.number))
            if now < quiet_at:
                self._output.later(quiet_at)
                return
        if len(connecting) >= MOST_ATTEMPTS:
            return
        server = self._nodes.to_connect(now, wish)
        if server is not None:
            self.tried(now)
            self._open(now, server)

    def _probe(self, now: float) -> None:
        for broker in self._suspects.ids():
            server = self._nodes.of_broker(broker)
            if server is None or server.links:
                continue
            if now < server.retry_at:
                self._output.later(server.retry_at)
                continue
            connecting = self._nodes.connecting()
            probes = [link for link in connecting if link.is_probe]
            if len(probes) < MOST_PROBES and len(connecting) < MOST_ATTEMPTS:
                self._open(now, server, probe=True)

    def _open(self, now: float, server: Server, probe: bool = False) -> None:
        link = self._nodes.open(self._output.number(), server, now, probe)
        self._output.do(Connect(link.number, link.node, self._config.setup_timeout))
        if not probe:
            self._output.later(silent_at(link))

"""Whether all bootstrap servers are of one cluster.

The first answer says which cluster the client is of. Then each other bootstrap server is asked
once, on a link that is a probe and by a request for the brokers alone. Its answer is not applied.
A server that an answer names as a broker is not asked: it is of that cluster. One that does not
answer is asked again, for 30 s.

A server with another id is reported, with both ids and both servers, and its answers are refused.
That goes for answers after a rebootstrap, too. The cluster has moved only if the newest answer of
each bootstrap server has the same new id, or none: brokers before Kafka 0.10.1 do not say it.

The first call of the application raises that report. Its outcome is held until each bootstrap
server has said of which cluster it is, or has failed or been silent once, for 1 s at most. Once a
call has succeeded, the report is a Problem only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from rdmeta._core import METADATA_MAX_VERSION, MetadataCache, encode_metadata_request
from rdmeta.client.actions import Connect, OtherRequest, Problem, RequestKind, Send
from rdmeta.client.connecting import FIRST_WITH_CLUSTER_ID, Connecting
from rdmeta.client.nodes import MOST_ATTEMPTS, MOST_PROBES, Link, Nodes, silent_at
from rdmeta.client.poll_output import PollOutput
from rdmeta.client.waiting_calls import Waiters
from rdmeta.config import Config
from rdmeta.config.address import Address
from rdmeta.errors import Error, WrongClusterError
from rdmeta.net.handshake import METADATA

# Seconds after the first answer.
ASKS_FOR = 30.0
# Seconds for which the outcomes of the first calls are held.
HOLDS_FOR = 1.0


class Identity:
    """The cluster ids that the bootstrap servers gave."""

    def __init__(
        self,
        bootstrap: Sequence[Address],
        cache: MetadataCache,
        config: Config,
        output: PollOutput,
        *,
        nodes: Nodes,
        waiters: Waiters,
        connecting: Connecting,
    ) -> None:
        self._cache, self._config, self._output = cache, config, output
        self._nodes, self._waiters, self._connecting = nodes, waiters, connecting
        self._bootstrap = frozenset(bootstrap)
        # The servers that are still to be asked once; a single one has nothing to differ from.
        self._unasked = list(dict.fromkeys(bootstrap)) if len(self._bootstrap) > 1 else []
        self._asked: dict[int, Link] = {}
        # The id in the newest answer of each server, and the server that gave the cache its id.
        self._said: dict[Address, str | None] = {}
        self._first: Address | None = None
        self._ends_at: float | None = None
        # What the first call is to raise, and until when its outcome is held.
        self._unreported: WrongClusterError | None = None
        self._held_until: float | None = None
        waiters.is_holding = bool(self._unasked)

    # ---- answers of Metadata ----

    def took(self, server: Address, version: int) -> None:
        """Notes an answer that the cache took."""
        cluster = self._cache.cluster_id
        if version < FIRST_WITH_CLUSTER_ID and server in self._bootstrap:
            self._said[server] = None
        if cluster is None or version < FIRST_WITH_CLUSTER_ID:
            return
        if self._first is None or self._said.get(self._first) != cluster:
            self._first = server
        if server == self._first or server in self._bootstrap:
            self._note(server, cluster)

    def has_moved(self, server: Address, cluster: str | None) -> bool:
        """Returns whether an answer after a rebootstrap may be of another cluster."""
        if cluster is None or self._cache.cluster_id in (None, cluster):
            return True
        self._note(server, cluster)
        return all(self._said.get(each, "") in (cluster, None) for each in self._bootstrap)

    def explained(self, error: WrongClusterError, server: Address, cluster: str | None) -> Error:
        """Returns the cache's error for an answer of another cluster with ids and servers."""
        if cluster is None:
            return error
        self._note(server, cluster)
        found = self._wrong(server, cluster)
        found.__cause__ = error
        self._tell_first(found)
        return found

    def _note(self, server: Address, cluster: str) -> None:
        self._said[server] = cluster
        if server in self._unasked:
            self._unasked.remove(server)

    def _wrong(self, server: Address, cluster: str) -> WrongClusterError:
        known = self._cache.cluster_id
        first = f" ({self._first})" if self._first is not None else ""
        return WrongClusterError(
            f"{server} is of cluster {cluster!r}, and the client of {known!r}{first}:"
            " bootstrap.servers must name servers of one cluster",
            -125,
        )

    def _tell_first(self, error: WrongClusterError) -> None:
        """Has the first call raise an error, unless a call has succeeded."""
        if self._waiters.is_first:
            self._unreported = error

    def others(self) -> dict[str, str]:
        """Returns the ids of the servers that are of another cluster, for stats()."""
        known = self._cache.cluster_id
        return {str(each): id for each, id in self._said.items() if id not in (known, None)}

    # ---- the question to each bootstrap server ----

    def run(self, now: float) -> None:
        """Asks bootstrap servers that have not said it, and hands out what the calls wait for."""
        self._ask_all(now)
        self._hand_out(now)

    def _hand_out(self, now: float) -> None:
        """Ends the first calls: with the error, or with their outcomes once those are not held."""
        waiters = self._waiters
        if self._unreported is not None:
            waiters.is_holding = True
            if len(waiters) or waiters.has_held:
                error, self._unreported = self._unreported, None
                waiters.is_first = waiters.is_holding = False
                waiters.fail_all(error)
            return
        if not waiters.is_holding:
            return
        is_answered = self._connecting.has_succeeded
        if self._held_until is None and (is_answered or waiters.has_held):
            self._held_until = now + HOLDS_FOR
        untried = [each for each in self._unasked if self._is_untried(each, now)]
        is_old = is_answered and self._cache.cluster_id is None  # before Kafka 0.10.1
        if not untried or is_old or (self._held_until is not None and now >= self._held_until):
            waiters.is_holding = False
            waiters.hand_out()
            return
        waiters.hand_out(now)
        self._output.later(min(self._held_until or math.inf, waiters.held_until))

    def _is_untried(self, address: Address, now: float) -> bool:
        """Returns whether a server has neither failed nor been silent for some time."""
        server = self._nodes.bootstrap_server(address)
        at = min((silent_at(link) for link in server.links if not link.is_ready), default=math.inf)
        if server.failures or at <= now:
            return False
        self._output.later(at)
        return True

    def _ask_all(self, now: float) -> None:
        if (
            not self._unasked
            or self._cache.cluster_id is None
            or not self._connecting.has_succeeded
        ):
            return
        self._give_up_silent(now)
        busy = {link.server.address for link in self._asked.values()}
        brokers = {Address(each.host, each.port) for each in self._cache.brokers}
        self._unasked = [each for each in self._unasked if each not in brokers]
        for address in self._unasked:
            server = self._nodes.bootstrap_server(address)
            if address in busy:
                continue
            ready = [each for each in server.links if each.is_ready]
            if ready:
                self._ask(now, ready[0])
            elif not server.links:
                at = max(server.retry_at, server.throttled_until)
                connecting = self._nodes.connecting()
                probes = sum(link.is_probe for link in connecting)
                if now < at:
                    self._output.later(at)
                elif probes < MOST_PROBES and len(connecting) < MOST_ATTEMPTS:
                    link = self._nodes.open(self._output.number(), server, now, probe=True)
                    self._output.do(Connect(link.number, link.node, self._config.setup_timeout))

    def _give_up_silent(self, now: float) -> None:
        """Ends the asking of servers that have not answered for 30 s after the first answer."""
        if self._ends_at is None:
            self._ends_at = now + ASKS_FOR
        if now >= self._ends_at:
            self._unasked.clear()

    def _ask(self, now: float, link: Link) -> None:
        number = self._output.number()
        self._asked[number] = self._nodes.unanswered[number] = link
        link.in_flight[number] = now
        call = OtherRequest(
            METADATA, 1, METADATA_MAX_VERSION, lambda v: encode_metadata_request(v, ())
        )
        self._output.do(Send(link.number, number, call, RequestKind.CALL, "cluster", False))
        self._output.later(now + self._config.socket_timeout)

    def answered(self, number: int, now: float, version: int, cluster: str | None) -> bool:
        """Takes an answer to a question of run(); returns whether it was one."""
        link = self._asked.pop(number, None)
        if link is None:
            return False
        address = link.server.address
        if address in self._unasked:
            self._unasked.remove(address)
        if cluster is not None or version < FIRST_WITH_CLUSTER_ID:
            self._said[address] = cluster
            if cluster not in (None, self._cache.cluster_id):
                error = self._wrong(address, cluster)
                link.server.last_error = error
                self._tell_first(error)
                self._nodes.behind(link.server, now, refused=True)
                self._output.report(Problem(error, link.node, "the server is not used"))
        return True

    def failed(self, number: int) -> None:
        """Notes that a question has no answer: its server is asked again."""
        self._asked.pop(number, None)

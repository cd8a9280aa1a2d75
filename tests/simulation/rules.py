"""Rules of the policy that the eight invariants do not see: jitter, backoff, nodes, rebootstrap.

A client that breaks one of them still has a true cache within its bounds. But a fleet of such
clients acts in step, asks brokers in vain, or takes another cluster for its own.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from network import Answer, Link
from violation import EPSILON, JITTER, Violation

from rdmeta.client.actions import Connect, RequestKind, Send
from rdmeta.config.address import Address
from rdmeta.model import ALL, Advice, All, Applied, Due, DueReason, Request

if TYPE_CHECKING:
    from world import World

# So many waits in a row that are exactly the mean are no chance.
EXACT_WAITS = 4
EXACT = 2e-5


class Rules:
    """The state of the checks of one run."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.config = world.scene.config
        self.exact = {"periodic": 0, "reconnect": 0}
        self.full_at = -math.inf
        self.equivalents = 0
        # The number of equal answers, and the time, of the last answer to a full refresh.
        self.last_full: dict[RequestKind, tuple[int, float]] = {}
        self.version = 0
        self.due: list[Due] = []
        self.behind: dict[Address, None] = {}
        self.links_before: list[Link] = []
        self.rebootstraps = 0
        self.rebootstrapped_at = -math.inf
        self.trying_since: float | None = None
        self.may_change_cluster = True
        self.cluster_id: str | None = None
        self.told_to = False

    # ---- jitter ---------------------------------------------------------------------------------

    def waits_have_jitter(self, kind: str, wait: float, mean: float) -> None:
        """Waits of a fleet differ: no four in a row are exactly their mean.

        The policy spreads every wait by 20 %, so that a fleet which lost a broker in one moment
        does not return in one moment.
        """
        self.exact[kind] = self.exact[kind] + 1 if abs(wait - mean) < EXACT else 0
        if self.exact[kind] >= EXACT_WAITS:
            raise Violation(
                "waits_have_jitter", f"{EXACT_WAITS} {kind} waits in a row are exactly {mean:.3f} s"
            )

    def reconnecting(self, failures: int, wait: float) -> None:
        if self.world.network.links:
            return  # the silence of another attempt may be the cause, which has no jitter
        mean = self.config.reconnect_backoff * 2.0 ** min(failures - 1, 60)
        self.waits_have_jitter("reconnect", wait, min(mean, self.config.reconnect_backoff_max))

    # ---- requests -------------------------------------------------------------------------------

    def sending(self, send: Send, link: Link) -> None:
        if not isinstance(send.request, Request):
            return
        if self.trying_since is None:
            self.trying_since = self.world.now
        self.topics_of_the_blacklist_are_not_asked_for(send.request)
        if send.hedge:
            return
        if send.kind in (RequestKind.FULL, RequestKind.BROKERS):
            self._full(send)
        self.another_node_is_asked_after_an_older_answer(send, link)

    def topics_of_the_blacklist_are_not_asked_for(self, request: Request) -> None:
        topics = () if isinstance(request.topics, All) else request.topics
        black = [each for each in topics if isinstance(each, str) and self.world.black(each)]
        if black:
            raise Violation("topics_of_the_blacklist_are_not_asked_for", f"{black} are asked for")

    def _full(self, send: Send) -> None:
        now = self.world.now
        if send.reason == "interval":
            if self.config.refresh_interval is not None:
                self.waits_have_jitter("periodic", now - self.full_at, self.config.refresh_interval)
            self.begin_anew()
        elif send.reason in ("refresh", "connection"):
            self.equivalent_answers_slow_refreshes_down(send.kind)
        self.full_at = now

    def equivalent_answers_slow_refreshes_down(self, kind: RequestKind) -> None:
        """After n answers in a row that brought nothing nearer, a refresh waits for its backoff.

        That is 0.8 min(retry.backoff 2^(n - 1), retry.backoff.max) at least after the last answer
        to a full refresh of its kind. The answers until then count. New topics and the periodic
        refresh begin anew, and so does any change of the cache, of what is due, or of the waits.
        """
        count, at = self.last_full.get(kind, (0, 0.0))
        if not count:
            return
        wait = self.config.retry_backoff * 2.0 ** min(count - 1, 60)
        rest = (1 - JITTER) * min(wait, self.config.retry_backoff_max)
        if self.world.now < at + rest - EPSILON:
            raise Violation(
                "equivalent_answers_slow_refreshes_down",
                f"after {count} equal answers, the last {self.world.now - at:.3f} s ago;"
                f" it should be {rest:.3f} s",
            )

    def begin_anew(self) -> None:
        """Notes that there are new topics, that something came nearer, or that a wait has ended."""
        self.equivalents = 0
        self.last_full.clear()

    def answering(self, answer: Answer) -> None:
        """Notes what is due before an answer, and whether it has error 129."""
        self.due = self.world.cache.due()
        self.told_to |= answer.asks_rebootstrap

    def answered(self, link: Link, send: Send, answer: Answer, applied: Applied | None) -> None:
        """Notes an answer; None if the cache refused it."""
        address = Address(link.node.host, link.node.port)
        if applied is None:
            if not answer.damaged:
                self._older(address)
            return
        self.trying_since = None
        if Advice.ASK_OTHER in applied.advice:
            self._older(address)
        if send.kind is not RequestKind.NEW:
            due = self.world.cache.due()
            same = self.world.cache.version == self.version and due == self.due
            self.equivalents += 1
            if not same:
                self.begin_anew()
            if send.kind in (RequestKind.FULL, RequestKind.BROKERS):
                self.last_full[send.kind] = self.equivalents, self.world.now
        self.only_a_rebootstrap_changes_the_cluster()
        self.may_change_cluster &= answer.version < 2

    # ---- the node to ask ------------------------------------------------------------------------

    def another_node_is_asked_after_an_older_answer(self, send: Send, link: Link) -> None:
        """After ASK_OTHER a node that has not given the old answer is asked, if there is one.

        There is one if the client can connect to its address now: no link, no backoff, no
        throttling. It must also speak a version in which names may be asked for. A node whose
        connection breaks begins anew, as it may have been started again.
        """
        address = Address(link.node.host, link.node.port)
        assert isinstance(send.request, Request)
        topics = send.request.topics
        if address not in self.behind or link.node.id < 0:
            return  # after a rebootstrap only the bootstrap servers are asked
        if "other_door" in self.world.scene.calls:
            return  # another feeder's answers have brokers that the policy does not know
        kept_back = self._kept_back()
        if not kept_back or (topics is not ALL and not set(kept_back).intersection(topics)):
            return
        brokers = [Address(broker.host, broker.port) for broker in self.world.cache.brokers]
        others = [each for each in brokers if each not in self.behind]
        if any(self._is_free(each) for each in others):
            raise Violation(
                "another_node_is_asked_after_an_older_answer",
                f"{send.number} goes to {address}, which gave an older answer; others are {others}",
            )

    def _is_free(self, address: Address) -> bool:
        known = self.world.invariants.servers.get(address)
        if known is not None:
            rest = (1 + JITTER) * self.config.reconnect_backoff_max if known.failures else 0.0
            if self.world.now < max(known.failed_at + rest, known.throttled_until):
                return False
        for link in self.world.network.open_links():
            if (link.node.host, link.node.port) == address:
                return False
        return all(
            server.versions[0] <= 13 and server.versions[1] >= 4
            for cluster in self.world.network.clusters
            for server in cluster.servers.values()
        )

    # ---- rebootstrap ----------------------------------------------------------------------------

    def before_actions(self) -> None:
        """Notes what is connected before the policy acts."""
        self.links_before = self.world.network.open_links()

    def disconnected(self, link: Link) -> None:
        self.behind.pop(Address(link.node.host, link.node.port), None)

    def trying(self, action: Connect) -> None:
        if self.trying_since is None:
            self.trying_since = self.world.now

    def acted(self) -> None:
        """Looks at what the policy did."""
        count = self.world.policy.stats()["rebootstraps"]
        if count != self.rebootstraps:
            self.rebootstraps = count
            self._rebootstrapped()
        self.version = self.world.cache.version
        if self.behind and not self._kept_back():
            self.behind.clear()

    def _kept_back(self) -> list[str]:
        """Returns the needed topics of which older answers came."""
        wanted = self.world.app.wanted()
        due = self.world.cache.due()
        return [e.topic for e in due if e.reasons & DueReason.KEPT_BACK and e.topic in wanted]

    def _older(self, address: Address) -> None:
        """Notes an older answer, or one that the cache refused."""
        self.behind[address] = None

    def _rebootstrapped(self) -> None:
        self.a_rebootstrap_has_a_cause()
        self.a_rebootstrap_closes_every_link()
        self.rebootstrapped_at = self.trying_since = self.world.now
        self.may_change_cluster, self.told_to = True, False

    def a_rebootstrap_has_a_cause(self) -> None:
        """A rebootstrap comes if all nodes are lost, after the trigger, or on error 129.

        A node with a link, or one that is being connected to, is not lost: it may be busy, or
        throttled. One that cannot be asked for names may be. Two rebootstraps are
        reconnect.backoff.max.ms apart.
        """
        now = self.world.now
        if now < self.rebootstrapped_at + self.config.reconnect_backoff_max - EPSILON:
            self._wrong("two rebootstraps within reconnect.backoff.max.ms")
        late = self.trying_since is not None and (
            now >= self.trying_since + self.config.rebootstrap_trigger - EPSILON
        )
        oldest = 1 if self.config.allow_auto_create else 4  # for the brokers alone, for names
        links = [
            link
            for link in self.links_before
            if link.closed in ("", "rebootstrap")
            and not (link.versions is not None and link.versions[1] < oldest)
        ]
        if not late and not self.told_to and links:
            self._wrong(f"a rebootstrap although there are {len(links)} links")

    def a_rebootstrap_closes_every_link(self) -> None:
        """A rebootstrap keeps no connection: behind it may be another cluster."""
        kept = [link.number for link in self.links_before if not link.closed]
        if kept:
            self._wrong(f"a rebootstrap keeps the links {kept}")

    def only_a_rebootstrap_changes_the_cluster(self) -> None:
        """Only the first answer after a rebootstrap that names its cluster may be of another one.

        Answers before Metadata v2 do not name it.
        """
        before, self.cluster_id = self.cluster_id, self.world.cache.cluster_id
        if before not in (None, self.cluster_id) and not self.may_change_cluster:
            self._wrong(f"the cluster {before} became {self.cluster_id} without a rebootstrap")

    def _wrong(self, text: str) -> None:
        raise Violation("a_rebootstrap_has_a_cause", text)

"""The choice of `rdmeta list`: states of clusters, and which topics and partitions of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from rdmeta import health
from rdmeta.cache import Reading
from rdmeta.cli.messages import FINE, NO_ANSWER, UNMET, BadInputError, Messages
from rdmeta.errors import Error, NotCachedError, TopicAuthorizationError, UnknownTopicError
from rdmeta.model import ALL, All, Broker, Partition, Topic, topic_fault

# Whether a partition needs care; the second argument is min.insync.replicas of its topic, None if
# that is not known.
Condition = Callable[[Partition, "int | None"], bool]


class ClusterState(NamedTuple):
    """The state of a cluster; `name` is that of the clusters file, None without -c.

    `error` says why there is no state. `operations` is the bit field of what the user may do with
    the cluster. `min_isr` has the topics whose min.insync.replicas is known. `controller` is the
    leader of a KRaft cluster's quorum; Metadata has a random broker there.
    """

    name: str | None
    reading: Reading
    error: Exception | None = None
    operations: int | None = None
    min_isr: dict[str, int] = {}
    controller: int | None = None


def named_topics(given: Sequence[str]) -> tuple[list[str], list[re.Pattern[str]]]:
    """Returns the names and the regular expressions among the values of -t."""
    names, patterns = [], []
    for each in given:
        if len(each) > 1 and each[0] == each[-1] == "/":
            try:
                patterns.append(re.compile(each[1:-1]))
            except re.error as error:
                raise BadInputError(f"-t {each}: no regular expression: {error}") from None
        elif fault := topic_fault(each):
            raise BadInputError(f"-t {each!r} is no topic's name: {fault}")
        else:
            names.append(each)
    return sorted(set(names)), patterns


def kept_topics(given: Sequence[str]) -> list[str] | All:
    """Returns the values of -t as a client's `topics`: names and "^patterns", or ALL for none."""
    names, patterns = named_topics(given)
    return names + [_from_begin(each.pattern) for each in patterns] or ALL


def _from_begin(pattern: str) -> str:
    """Returns the regular expression that matches from the begin where `pattern` has a match."""
    flags = re.match(r"\(\?([aimsux]+)\)", pattern)
    if flags is None:
        return f"^.*(?:{pattern})"
    return f"^.*(?{flags[1]}:{pattern[flags.end() :]})"


def conditions(flags: Iterable[str], *, if_down: Iterable[int] = ()) -> list[Condition]:
    """Returns a condition for each option; `flags` are names in the table below.

    Those in NEED_MIN_ISR do not hold where it is unknown.
    """
    found: list[Condition] = [_OF_FLAGS[flag] for flag in flags]
    if down := frozenset(if_down):
        found.append(lambda p, _: health.is_lost_without(p, down))
    return found


_OF_FLAGS: dict[str, Condition] = {
    "urp": lambda p, _: health.is_under_replicated(p),
    "leaderless": lambda p, _: health.is_leaderless(p),
    "offline": lambda p, _: health.has_offline_replica(p),
    "nonpreferred": lambda p, _: health.is_not_preferred(p),
    "under_min_isr": lambda p, least: least is not None and health.is_under_min_isr(p, least),
    "at_min_isr": lambda p, least: least is not None and health.is_at_min_isr(p, least),
}
NEED_MIN_ISR = frozenset(("under_min_isr", "at_min_isr"))


class Selection(NamedTuple):
    """Which brokers, topics and partitions are shown; an empty sequence restricts nothing.

    One of several conditions is enough. `down` are the brokers of --if-down.
    """

    names: Sequence[str] = ()
    patterns: Sequence[re.Pattern[str]] = ()
    brokers: frozenset[int] = frozenset()
    internal: bool | None = None
    conditions: Sequence[Condition] = ()
    down: frozenset[int] = frozenset()

    def brokers_of(self, state: ClusterState) -> Iterator[Broker]:
        """Yields the wanted brokers."""
        for broker in state.reading.brokers:
            if not self.brokers or broker.id in self.brokers:
                yield broker

    def topics_of(self, state: ClusterState) -> Iterator[tuple[Topic, Sequence[Partition]]]:
        """Yields the wanted topics, in the order of their names, with their wanted partitions.

        A topic is left out if partitions are restricted, and none of its own is wanted.
        """
        for name in self.names_in(state.reading):
            topic = state.reading.topic(name, None, allow_stale=True)
            if topic is None or self.internal not in (None, topic.internal):
                continue
            if not (self.brokers or self.conditions):
                yield topic, topic.partitions
            elif partitions := self._matching(topic, state.min_isr.get(name)):
                yield topic, partitions

    @property
    def has_everything(self) -> bool:
        """Whether nothing is restricted."""
        return self.internal is None and not any(
            (self.names, self.patterns, self.brokers, self.conditions)
        )

    def names_in(self, reading: Reading) -> list[str]:
        """Returns the names of the wanted topics, sorted; --internal does not count here."""
        if self.names and not self.patterns:
            return list(self.names)
        return sorted(filter(self._is_named, reading.names(allow_stale=True)))

    def _is_named(self, name: str) -> bool:
        if not self.names and not self.patterns:
            return True
        return name in self.names or any(pattern.search(name) for pattern in self.patterns)

    def _matching(self, topic: Topic, least: int | None) -> list[Partition]:
        return [
            each
            for each in topic.partitions
            if (
                not self.brokers
                or each.leader in self.brokers
                or not self.brokers.isdisjoint(each.replicas)
            )
            and (not self.conditions or any(holds(each, least) for holds in self.conditions))
        ]

    def missing(self, state: ClusterState, messages: Messages) -> int:
        """Says which topics and brokers the state lacks, and returns the exit code for that."""
        if state.error is not None:
            return FINE
        code = FINE
        for name in self.names:
            try:
                state.reading.topic(name, allow_stale=True)
            except (UnknownTopicError, NotCachedError):  # the latter: an all-topics answer lacks it
                messages.fault(f"topic {name} is unknown", state.name)
                code = max(code, UNMET)
            except TopicAuthorizationError:
                advice = "the user may not describe it: grant DESCRIBE on it"
                messages.fault(f"topic {name}: {advice}", state.name)
                code = NO_ANSWER
            except Error as error:
                code = max(code, messages.failure(error, state.name))
        for pattern in self.patterns:
            if not any(map(pattern.search, state.reading.names(allow_stale=True))):
                messages.fault(f"no topic matches /{pattern.pattern}/", state.name)
                code = max(code, UNMET)
        for broker in sorted(self.brokers | self.down):
            known = state.reading.broker(broker, None)
            on_it = state.reading.partitions_on(broker, "replica", allow_stale=True)
            if known is None and not on_it:
                messages.fault(f"broker {broker} is unknown", state.name)
                code = max(code, UNMET)
        return code

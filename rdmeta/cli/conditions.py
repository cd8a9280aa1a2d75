"""The conditions of `rdmeta wait`: whether each holds in a state, and what is missing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from rdmeta import health
from rdmeta._core import DENIED, NOT_CACHED, UNKNOWN_TOPIC, WAITING
from rdmeta.cache import Reading
from rdmeta.model import Partition, Topic

__all__ = ["Answers", "Condition", "Finding", "Conditions", "conditions"]


class Conditions(NamedTuple):
    """The user's words: topics, what must hold for them or for all topics; None: not asked for."""

    topics: Sequence[str] = ()
    partition: int | None = None
    partitions: int | None = None
    isr: int | None = None
    leader: int | None = None
    gone: bool = False
    brokers: Sequence[int] = ()
    no_urp: bool = False


class Finding(NamedTuple):
    """A condition as a state has it.

    `missing` is a text, None if the condition holds. `present` is the value that is there instead
    of `wanted`, None where nothing is known.
    """

    condition: str
    topic: str | None
    partition: int | None
    wanted: int | None
    present: int | None
    missing: str | None


class Answers:
    """The topics of which the last answer said that they do not exist, or are not to be seen.

    The cache keeps that for a moment only, so look() must come soon after each answer. `denied` is
    a topic that the user may not describe, None if there is none.
    """

    def __init__(self, topics: Iterable[str]) -> None:
        self._topics = tuple(topics)
        self._absent: set[str] = set()
        self.denied: str | None = None

    def look(self, reading: Reading) -> None:
        """Notes what an answer has said."""
        self.denied = None
        for name in self._topics:
            state = reading.state(name)
            if state == DENIED:
                self.denied = name
            if state == UNKNOWN_TOPIC:
                self._absent.add(name)
            elif state not in (NOT_CACHED, WAITING):  # otherwise the last word counts
                self._absent.discard(name)

    def say_absent(self, topic: str) -> bool:
        """Returns whether the topic does not exist, as far as an answer has said so."""
        return topic in self._absent


# A condition is a function of a state and of what the answers have said about absent topics.
Condition = Callable[[Reading, Answers], Finding]


def conditions(wanted: Conditions) -> list[Condition]:
    """Returns the conditions, in the order in which they are told."""
    found: list[Condition] = []
    for topic in wanted.topics:
        if wanted.gone:
            found.append(partial(_gone, topic))
            continue
        found.append(partial(_there, topic, wanted.partition))
        if wanted.partitions is not None:
            found.append(partial(_partition_count, topic, wanted.partitions))
        if wanted.isr is not None:
            found.append(partial(_isr, topic, wanted.partition, wanted.isr))
        if wanted.leader is not None:
            found.append(partial(_leader, topic, wanted.partition, wanted.leader))
    found += [partial(_broker, wanted.topics, each) for each in wanted.brokers]
    if wanted.no_urp:
        found.append(partial(_no_urp, wanted.topics))
    return found


# ---- one topic ----------------------------------------------------------------------------------


def _there(topic: str, number: int | None, reading: Reading, answers: Answers) -> Finding:
    """Finds whether the topic, or its partition, exists and has leaders."""
    known, missing = _known(topic, reading, answers), None
    if known is None:
        missing = _unknown(topic, answers)
    elif not (partitions := _chosen(known, number)):
        missing = f"topic {topic} has {_partitions(len(known.partitions))}, none of number {number}"
    elif without := [each for each in partitions if health.is_leaderless(each)]:
        missing = f"{_first_of(without, partitions)} no leader"
    return Finding("topic", topic, number, None, None, missing)


def _gone(topic: str, reading: Reading, answers: Answers) -> Finding:
    missing = None
    if not answers.say_absent(topic):
        is_there = reading.topic(topic, None, allow_stale=True) is not None
        missing = f"topic {topic} exists" if is_there else _unknown(topic, answers)
    return Finding("gone", topic, None, None, None, missing)


def _partition_count(topic: str, least: int, reading: Reading, answers: Answers) -> Finding:
    known = _known(topic, reading, answers)
    if known is None:
        return Finding("partitions", topic, None, least, None, _unknown(topic, answers))
    count = len(known.partitions)
    missing = f"topic {topic} has {count} of {_partitions(least)}" if count < least else None
    return Finding("partitions", topic, None, least, count, missing)


def _isr(topic: str, number: int | None, least: int, reading: Reading, answers: Answers) -> Finding:
    """Finds whether each partition has enough replicas in sync."""
    partitions = _chosen(_known(topic, reading, answers), number)
    if not partitions:
        return Finding("isr", topic, number, least, None, _unknown(topic, answers, number))
    worst = min(partitions, key=lambda each: len(each.isr))
    present, missing = len(worst.isr), None
    if present < least:
        shown = f"{present} of {least} replicas in sync ({_ids(worst.isr)})"
        missing = f"{topic}-{worst.partition} has {shown}"
    return Finding("isr", topic, number, least, present, missing)


def _leader(
    topic: str, number: int | None, leader: int, reading: Reading, answers: Answers
) -> Finding:
    """Finds whether that broker leads each partition."""
    partitions = _chosen(_known(topic, reading, answers), number)
    if not partitions:
        return Finding("leader", topic, number, leader, None, _unknown(topic, answers, number))
    for each in partitions:
        present = None if health.is_leaderless(each) else each.leader
        if present != leader:
            has = "no leader" if present is None else f"leader {present}"
            missing = f"{topic}-{each.partition} has {has}, not {leader}"
            return Finding("leader", topic, number, leader, present, missing)
    return Finding("leader", topic, number, leader, leader, None)


def _known(topic: str, reading: Reading, answers: Answers) -> Topic | None:
    """Returns the topic; None if an answer has said that it does not exist."""
    if answers.say_absent(topic):
        return None
    return reading.topic(topic, None, allow_stale=True)


def _chosen(topic: Topic | None, number: int | None) -> Sequence[Partition]:
    """Returns all partitions, or the one of that number if it is there."""
    if topic is None:
        return ()
    return [each for each in topic.partitions if number in (None, each.partition)]


def _unknown(topic: str, answers: Answers, number: int | None = None) -> str:
    what = f"topic {topic}" if number is None else f"{topic}-{number}"
    if answers.say_absent(topic):
        return f"{what} does not exist"
    return f"nothing is known of {what} yet"


# ---- several topics -----------------------------------------------------------------------------


def _broker(topics: Sequence[str], broker: int, reading: Reading, answers: Answers) -> Finding:
    """Finds whether a broker is listed, and in sync wherever it has a replica."""
    if reading.broker(broker, None) is None:
        return Finding("broker", None, None, broker, None, f"broker {broker} is not listed")
    if not topics and not reading.health(allow_stale=True).under_replicated:
        return Finding("broker", None, None, broker, broker, None)
    own = [each for each in _partitions_of(topics, reading) if broker in each.replicas]
    behind = [each for each in own if broker not in each.isr]
    if not behind:
        return Finding("broker", None, None, broker, broker, None)
    count = f"{len(behind)} of {_partitions(len(own))}"
    missing = f"broker {broker} is not in sync for {count}, such as {_example(behind[0])}"
    return Finding("broker", None, None, broker, broker, missing)


def _no_urp(topics: Sequence[str], reading: Reading, answers: Answers) -> Finding:
    """Finds whether every replica is in sync."""
    if topics:
        partitions = list(_partitions_of(topics, reading))
        count, total = sum(map(health.is_under_replicated, partitions)), len(partitions)
    else:
        found = reading.health(allow_stale=True)
        count, total = found.under_replicated, found.partitions
    missing = None
    if count:
        behind = _partitions_of(topics, reading)
        example = next(filter(health.is_under_replicated, behind), None)
        such = "" if example is None else f", such as {_example(example)}"
        verb = "is" if count == 1 else "are"
        missing = f"{count} of {_partitions(total)} {verb} under-replicated{such}"
    return Finding("no_urp", None, None, 0, count, missing)


def _partitions_of(topics: Sequence[str], reading: Reading) -> Iterator[Partition]:
    """Yields the partitions of those topics, of all topics without any."""
    for name in topics or reading.names(allow_stale=True):
        topic = reading.topic(name, None, allow_stale=True)
        if topic is not None:
            yield from topic.partitions


# ---- words --------------------------------------------------------------------------------------


def _partitions(count: int) -> str:
    return f"{count} partition" if count == 1 else f"{count} partitions"


def _first_of(found: Sequence[Partition], among: Sequence[Partition]) -> str:
    """Returns the subject of a sentence about some partitions of a topic, with its verb."""
    first = f"{found[0].topic}-{found[0].partition}"
    if len(found) == 1:
        return f"{first} has"
    return f"{len(found)} of {_partitions(len(among))} of {found[0].topic}, such as {first}, have"


def _example(partition: Partition) -> str:
    shown = f"replicas {_ids(partition.replicas)}, ISR {_ids(partition.isr)}"
    return f"{partition.topic}-{partition.partition} ({shown})"


def _ids(brokers: Iterable[int]) -> str:
    return ",".join(map(str, brokers)) or "none"

"""`rdmeta wait`: returns when topics, brokers and replicas are as they should be.

Conditions says whether each condition holds in a state, and what is missing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import click

from rdmeta import health
from rdmeta._core import DENIED, NOT_CACHED, UNKNOWN_TOPIC, WAITING
from rdmeta.cache import Reading
from rdmeta.cli.messages import FINE, NO_ANSWER, UNMET, BadInputError
from rdmeta.cli.output import Output, label
from rdmeta.cli.selection import named_topics
from rdmeta.cli.shared_options import Where, connection_options, seconds_option
from rdmeta.cli.status import Spinner, Status
from rdmeta.errors import Error
from rdmeta.model import ALL, Partition, Topic

if TYPE_CHECKING:
    from rdmeta.client.actions import Updated
    from rdmeta.client.blocking import Client

UpdateBatches: TypeAlias = "SimpleQueue[tuple[Updated, ...]]"

# A hold starts again after a pause between two answers of 3 intervals, or of this if it is longer.
_LEAST_PAUSE_S = 5.0

_number = click.IntRange(min=0)
_count = click.IntRange(min=1)


@click.command(
    epilog="""\b
Examples:
  rdmeta wait -t orders --isr 1
  rdmeta wait --broker 1 --no-urp --hold 3 --timeout 120
"""
)
@click.option(
    "-t",
    "--topic",
    "topics",
    metavar="NAME",
    multiple=True,
    help="The topic exists, and its partitions have leaders. May be repeated.",
)
@click.option("-p", "--partition", type=_number, metavar="N", help="Only this partition counts.")
@click.option("--partitions", type=_count, metavar="N", help="The topic has at least N partitions.")
@click.option(
    "--isr", type=_count, metavar="N", help="Each partition has at least N replicas in sync."
)
@click.option("--leader", type=_number, metavar="ID", help="This broker leads each partition.")
@click.option("--gone", is_flag=True, help="A broker says that the topic does not exist.")
@click.option(
    "--broker",
    "brokers",
    type=_number,
    metavar="ID",
    multiple=True,
    help="The broker is listed, and in the ISR of each partition of which it has a replica. May be"
    " repeated.",
)
@click.option(
    "--no-urp", is_flag=True, help="Each replica is in sync: of all topics, or of those of -t."
)
@seconds_option("--hold", help="All conditions hold for this long without a break.")
@click.option("--json", "json", is_flag=True, help="Print the result as JSON.")
@connection_options
def command(
    where: Where,
    topics: tuple[str, ...],
    brokers: tuple[int, ...],
    hold: float | None,
    json: bool,
    **others: Any,
) -> int:
    """Wait until all conditions hold, for --timeout seconds at most.

    If they do not hold by then, a line says what is missing, and the exit code is 1. It is 3 if no
    server has answered. -v shows what is still missing while the command waits.

    The command asks every second with -t, and otherwise every two seconds: -X
    topic.metadata.refresh.interval.ms=N changes that. It keeps asking for a topic
    that does not exist or lacks a leader. When the time of --hold is over, one more answer must
    confirm the conditions. The time starts again if one fails, or if no broker answers for a while.
    """
    wanted = Conditions(_names(topics), brokers=tuple(dict.fromkeys(brokers)), **others)
    _check(wanted, hold, where.timeout)
    target = where.target()
    from rdmeta.cli.following import following, interval_of

    status = Status(where.messages)
    status.log(quietly=True)
    pause = max(_LEAST_PAUSE_S, 3 * interval_of(target, wanted.topics))
    with following(target, wanted.topics) as client, Spinner(status) as spinner:
        report = _Report(status, spinner, target.name)
        wait = _Wait(client, wanted, hold or 0.0, pause, report)
        try:
            code = wait.run(where.timeout)
        except Error as error:
            return status.failure(error, target.name)
    if json:
        head = {"version": 1, "command": "wait", **label(target.name)}
        Output("json").answer({**head, **wait.result()})
    return code


def _names(given: tuple[str, ...]) -> Sequence[str]:
    names, patterns = named_topics(given)
    if patterns:
        raise BadInputError(f"-t /{patterns[0].pattern}/: wait takes names of topics")
    return names


def _check(wanted: Conditions, hold: float | None, timeout: float) -> None:
    """Raises BadInputError for conditions that are missing, or cannot hold together."""
    of_topics = {
        "-p": wanted.partition,
        "--partitions": wanted.partitions,
        "--isr": wanted.isr,
        "--leader": wanted.leader,
        "--gone": wanted.gone or None,
    }
    given = [name for name, value in of_topics.items() if value is not None]
    if given and not wanted.topics:
        raise BadInputError(f"{given[0]} needs a topic: give -t NAME")
    if not (wanted.topics or wanted.brokers or wanted.no_urp):
        raise BadInputError("there is nothing to wait for: give -t NAME, --broker ID or --no-urp")
    if wanted.gone:
        others = given[:-1] + ["--broker"] * bool(wanted.brokers) + ["--no-urp"] * wanted.no_urp
        if others:
            raise BadInputError(f"--gone and {others[0]} contradict each other")
    if hold is not None and hold >= timeout:
        raise BadInputError(f"--hold {hold:g} needs a --timeout above it; it is {timeout:g}")


class _Report:
    """Tells what is missing: a spinner shows it on a terminal, and with -v it is a line."""

    def __init__(self, status: Status, spinner: Spinner, cluster: str | None) -> None:
        self._status, self._spinner, self._cluster = status, spinner, cluster
        self._last = ""

    def progress(self, text: str) -> None:
        """Shows what is missing now, if it has changed."""
        if text != self._last:
            self._last = text
            self._spinner.say(f"waiting: {text}")
            if self._status.level > 0:
                self._status.note(f"waiting: {text}", self._cluster)

    def fault(self, text: str) -> None:
        """Prints a line about the end."""
        self._status.fault(text, self._cluster)


class _Wait:
    """The wait of one run: it looks at the state after each answer."""

    def __init__(
        self, client: Client, wanted: Conditions, hold: float, pause: float, report: _Report
    ) -> None:
        self._client, self._report = client, report
        self._topics = frozenset(wanted.topics)
        self._conditions = conditions(wanted)
        self._answers = Answers(wanted.topics)
        self._hold, self._pause = hold, pause
        self._began = time.monotonic()
        self._verdicts: Sequence[Verdict] = ()
        # The version at the last look, and the time of the last answer about all that is wanted.
        self._seen, self._heard = 0, self._began
        # The first such answer since which everything has held.
        self._since: float | None = None

    def run(self, timeout: float) -> int:
        """Returns the exit code; raises what Client.refresh() does if there is no answer."""
        until = self._began + timeout
        batches: UpdateBatches = SimpleQueue()
        self._client.on_update(batches.put)
        self._client.refresh(timeout=timeout)
        asked = False
        while True:
            held = until if asked or self._since is None else self._since + self._hold
            try:
                batch = batches.get(timeout=max(0.0, min(held, until) - time.monotonic()))
            except Empty:
                if time.monotonic() >= until:
                    return self._unmet(timeout)
                asked = True  # the last answer of a hold need not wait for its turn
                self._client.refresh(force=True, wait=False)
                continue
            asked = False
            if denied := self._look(batch):
                self._report.fault(denied)
                return NO_ANSWER
            if self.is_met:
                return FINE

    @property
    def is_met(self) -> bool:
        """Whether everything holds, and has held for long enough."""
        return self._holds() and (not self._hold or self._held() >= self._hold)

    def result(self) -> dict[str, object]:
        """Returns the result for JSON."""
        return {
            "met": self.is_met,
            "seconds": round(time.monotonic() - self._began, 3),
            "held": round(self._held(), 3),
            "conditions": [each._asdict() for each in self._verdicts],
        }

    def _holds(self) -> bool:
        return bool(self._verdicts) and all(each.missing is None for each in self._verdicts)

    def _held(self) -> float:
        return 0.0 if self._since is None else self._heard - self._since

    def _look(self, batch: Iterable[Updated]) -> str | None:
        """Looks at the state after some answers; returns an error that ends the wait."""
        now, state = time.monotonic(), self._client.cache.image()
        self._answers.look(state)
        if denied := self._answers.denied:
            return f"topic {denied}: the user may not describe it: grant DESCRIBE on it"
        self._verdicts = [each(state, self._answers) for each in self._conditions]
        if not self._holds() or self._has_missed(state.version):
            self._since = None
        self._seen = state.version
        if any(map(self._is_whole, batch)):
            if now - self._heard > self._pause:
                self._since = None
            self._heard = now
            if self._since is None and self._holds():
                self._since = now
        if not self.is_met:
            held = f"everything holds; it must stand for {self._hold:g} s"
            self._report.progress(self._missing() or held)
        return None

    def _has_missed(self, version: int) -> bool:
        """Returns whether a break may hide between the last look and this one.

        The cache has had more than one new version, or a leader has changed more than once.
        """
        if self._since is None or version == self._seen:
            return False
        changes = self._client.cache.changes(self._seen)
        return (
            changes.resync
            or version > self._seen + 1
            or any(
                (each.new_leader_epoch or 0) > (each.old_leader_epoch or 0) + 1
                for each in changes
                if each.kind == "leader_changed"
            )
        )

    def _is_whole(self, answer: Updated) -> bool:
        """Returns whether an answer was about all that is wanted."""
        asked = answer.request.topics
        if asked is ALL or not self._topics:
            return asked is ALL
        return asked is not None and self._topics.issubset(asked)

    # ---- words ----------------------------------------------------------------------------------

    def _missing(self) -> str:
        missing = [each.missing for each in self._verdicts if each.missing is not None]
        return "; ".join(dict.fromkeys(missing))

    def _unmet(self, timeout: float) -> int:
        """Says what is missing at the end; returns the exit code."""
        text = self._missing() or f"everything held for {self._held():.1f} of {self._hold:g} s only"
        silence = time.monotonic() - self._heard
        if silence > self._pause:
            text += f"; no broker has answered for {silence:.0f} s"
        self._report.fault(f"not so after {timeout:g} s: {text}")
        return UNMET


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


class Verdict(NamedTuple):
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
Condition = Callable[[Reading, Answers], Verdict]


def conditions(wanted: Conditions) -> list[Condition]:
    """Returns the conditions, in the order in which they are listed."""
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


def _there(topic: str, number: int | None, reading: Reading, answers: Answers) -> Verdict:
    """Finds whether the topic, or its partition, exists and has leaders."""
    known, missing = _known(topic, reading, answers), None
    if known is None:
        missing = _unknown(topic, answers)
    elif not (partitions := _chosen(known, number)):
        missing = f"topic {topic} has {_partitions(len(known.partitions))}, none of number {number}"
    elif without := [each for each in partitions if health.is_leaderless(each)]:
        missing = f"{_first_of(without, partitions)} no leader"
    return Verdict("topic", topic, number, None, None, missing)


def _gone(topic: str, reading: Reading, answers: Answers) -> Verdict:
    missing = None
    if not answers.say_absent(topic):
        is_there = reading.topic(topic, None, allow_stale=True) is not None
        missing = f"topic {topic} exists" if is_there else _unknown(topic, answers)
    return Verdict("gone", topic, None, None, None, missing)


def _partition_count(topic: str, least: int, reading: Reading, answers: Answers) -> Verdict:
    known = _known(topic, reading, answers)
    if known is None:
        return Verdict("partitions", topic, None, least, None, _unknown(topic, answers))
    count = len(known.partitions)
    missing = f"topic {topic} has {count} of {_partitions(least)}" if count < least else None
    return Verdict("partitions", topic, None, least, count, missing)


def _isr(topic: str, number: int | None, least: int, reading: Reading, answers: Answers) -> Verdict:
    """Finds whether each partition has enough replicas in sync."""
    partitions = _chosen(_known(topic, reading, answers), number)
    if not partitions:
        return Verdict("isr", topic, number, least, None, _unknown(topic, answers, number))
    worst = min(partitions, key=lambda each: len(each.isr))
    present, missing = len(worst.isr), None
    if present < least:
        shown = f"{present} of {least} replicas in sync ({_ids(worst.isr)})"
        missing = f"{topic}-{worst.partition} has {shown}"
    return Verdict("isr", topic, number, least, present, missing)


def _leader(
    topic: str, number: int | None, leader: int, reading: Reading, answers: Answers
) -> Verdict:
    """Finds whether that broker leads each partition."""
    partitions = _chosen(_known(topic, reading, answers), number)
    if not partitions:
        return Verdict("leader", topic, number, leader, None, _unknown(topic, answers, number))
    for each in partitions:
        present = None if health.is_leaderless(each) else each.leader
        if present != leader:
            has = "no leader" if present is None else f"leader {present}"
            missing = f"{topic}-{each.partition} has {has}, not {leader}"
            return Verdict("leader", topic, number, leader, present, missing)
    return Verdict("leader", topic, number, leader, leader, None)


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


def _broker(topics: Sequence[str], broker: int, reading: Reading, answers: Answers) -> Verdict:
    """Finds whether a broker is listed, and in sync wherever it has a replica."""
    if reading.broker(broker, None) is None:
        return Verdict("broker", None, None, broker, None, f"broker {broker} is not listed")
    if not topics and not reading.health(allow_stale=True).under_replicated:
        return Verdict("broker", None, None, broker, broker, None)
    own = [each for each in _partitions_of(topics, reading) if broker in each.replicas]
    behind = [each for each in own if broker not in each.isr]
    if not behind:
        return Verdict("broker", None, None, broker, broker, None)
    count = f"{len(behind)} of {_partitions(len(own))}"
    missing = f"broker {broker} is not in sync for {count}, such as {_example(behind[0])}"
    return Verdict("broker", None, None, broker, broker, missing)


def _no_urp(topics: Sequence[str], reading: Reading, answers: Answers) -> Verdict:
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
    return Verdict("no_urp", None, None, 0, count, missing)


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

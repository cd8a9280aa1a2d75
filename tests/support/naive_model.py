"""A simple model of the cache, in plain Python: what the real cache should return.

Each rule of policies.md is one branch of about three lines. Times are in seconds; there is no
index, no digest, and no sharing. `test_model_based.py` compares the real cache with the model.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from frames import NO_OPERATIONS, ZERO_ID, B, P, T

from rdmeta.model import DueReason

UNKNOWN_TOPIC, INVALID_TOPIC, DENIED, UNKNOWN_ID, INCONSISTENT_ID = 3, 17, 29, 100, 103
# A rewind is believed after ANSWERS older answers over SECONDS, from OPINIONS brokers; answers of
# one broker are enough once BOUND seconds have passed.
ANSWERS, OPINIONS, SECONDS, BOUND, PROPAGATES = 5, 2, 5.0, 900.0, 1.0
# The number of former ids that an entry keeps per topic.
PAST_IDS = 4
NOTHING = DueReason(0)
# The states of a topic that need not be asked for.
ANSWERED = ("valid", "unknown", "denied", "invalid")


class NotAppliedError(Exception):
    """The answer counts as a failed refresh."""


@dataclass
class Row:
    """A partition of the latest answer, its last leader, and the highest epoch ever seen."""

    latest: P
    last: int
    high: int

    def as_sets(self) -> tuple[Any, ...]:
        s = self.latest
        sets = frozenset(s.isr or ()), frozenset(s.offline)
        return s.id, s.leader, s.epoch, s.replicas, *sets, s.error, self.last, self.high


class Timed:
    """A base class that rounds times to whole microseconds, as the cache counts."""

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, round(value, 6) if isinstance(value, float) else value)


@dataclass
class Hint(Timed):
    """A name in flight; lookups see it unless an answer was known when it was asked for."""

    until: float
    shown: bool
    number: int


@dataclass
class Rewind:
    """A count of answers older than the entry: in these rows, or by this former topic id."""

    since: float
    target: set[int] | bytes
    answers: int = 0
    brokers: set[int] = field(default_factory=set)


@dataclass
class Entry(Timed):
    """The entry of a name: valid, unknown, denied, invalid, missing (absent), or gone.

    A retained entry keeps its id and highest epochs until `kept_until`.
    """

    state: str
    until: float
    kept_until: float | None = None
    id: bytes = ZERO_ID
    past: list[bytes] = field(default_factory=list)
    rows: dict[int, Row] = field(default_factory=dict)
    internal: bool = False
    operations: int = NO_OPERATIONS
    changed: int = 0
    rewind: Rewind | None = None
    # When the answers that are older in a row began; a row that they agree on has no clock.
    clocks: dict[int, float] = field(default_factory=dict)
    absent_from: int = -1
    gone_at: float = -math.inf  # when it became missing or gone
    given_by: int = -1  # the first broker that gave the topic since
    expired: bool = False  # its grace time removed it, and no second broker
    doubt: DueReason = NOTHING  # why the last answer about it calls for another one

    def equals(self, other: Entry) -> bool:
        """Returns whether two entries show the same topic; ISR and offline replicas are sets."""
        return {i: row.as_sets() for i, row in self.rows.items()} == {
            i: row.as_sets() for i, row in other.rows.items()
        } and all(
            getattr(self, name) == getattr(other, name)
            for name in ("state", "id", "internal", "operations")
        )


@dataclass(frozen=True)
class Answer:
    """A response and its circumstances; `after` is the cache's version once it is applied."""

    topics: Sequence[T]
    brokers: Sequence[B]
    cluster_id: str | None
    version: int
    asked: Collection[str] | None  # the names of its request; None: not known
    all: bool
    broker: int
    sent: int | None  # the version when its request left; None: not known
    hints: float
    now: float
    after: int

    @property
    def candidates(self) -> int:
        return len(self.brokers)

    def id_of(self, topic: T) -> bytes:
        return topic.id if self.version >= 10 else ZERO_ID

    def usable(self, epoch: int) -> bool:
        """Returns whether the epoch counts; epochs of Metadata before v9 can go backwards."""
        return self.version >= 9 and epoch >= 0

    def outdated(self, entry: Entry) -> bool:
        """Returns whether its request left before the topic last changed."""
        return self.sent is not None and self.sent < entry.changed


class Model:
    """A cache of metadata."""

    def __init__(
        self,
        max_age: float = 900.0,
        negative_ttl: float = 0.1,
        denied_ttl: float = 10.0,
        hint_ttl: float = 60.0,
        absent_grace: float = 15.0,
    ) -> None:
        self.max_age, self.negative_ttl, self.hint_ttl = max_age, negative_ttl, hint_ttl
        self.denied_ttl, self.absent_grace = min(max_age, denied_ttl), absent_grace
        self.hint_calls = 0
        self.purge()

    # ---- reading ------------------------------------------------------------------------------

    def state(self, name: str, now: float) -> str:
        """Returns the state of a topic as a lookup sees it."""
        entry = self.entries.get(name)
        if entry and entry.state == "valid":
            return "valid" if now <= entry.until else "stale"
        if entry and now <= entry.until:
            return "unknown" if entry.state in ("missing", "gone") else entry.state
        shown = name in self.hints and self.hints[name].shown
        return "waiting" if shown and self.in_flight(name, now) else "not cached"

    def in_flight(self, name: str, now: float) -> bool:
        return name in self.hints and now <= self.hints[name].until

    def due(self, now: float) -> dict[str, DueReason]:
        """Returns why topics need another answer, found by a walk over all of them."""
        found = {}
        brokers = {broker.id for broker in self.brokers}
        for name, entry in self.entries.items():
            why = entry.doubt
            leaders = {row.latest.leader for row in entry.rows.values()}
            if entry.state == "valid" and min(leaders, default=0) < 0:
                why |= DueReason.NO_LEADER
            if entry.state == "valid" and {i for i in leaders if i >= 0} - brokers:
                why |= DueReason.UNREACHABLE
            if entry.state == "missing" and now <= entry.until:
                why |= DueReason.ABSENT
            if entry.state == "denied" and now > entry.until:
                why |= DueReason.DENIED
            if why:
                found[name] = why
        return found

    # ---- hints, sweeping, purging -------------------------------------------------------------

    def forget(self, names: Iterable[str]) -> int:
        """Removes topics and ends their hints; returns how many of them were not gone."""
        for name in names:
            self.hints.pop(name, None)
        removed = [self.entries.pop(name, None) for name in names]
        return sum(entry is not None and entry.state != "gone" for entry in removed)

    def purge(self) -> None:
        self.entries: dict[str, Entry] = {}
        self.hints: dict[str, Hint] = {}
        self.brokers: tuple[B, ...] = ()
        self.cluster_id: str | None = None

    def purge_hints(
        self, names: Collection[str] | None, now: float, sent: float = math.inf
    ) -> None:
        """Ends hints, except those that were made after the call number `sent`."""
        for name in list(self.hints) if names is None else names:
            if name in self.hints and self.hints[name].number <= sent:
                del self.hints[name]
                self.retain(name, now)

    def retain(self, name: str, now: float) -> None:
        """Retains a negative past its deadline: keeps its id and highest epochs for max age."""
        entry = self.entries.get(name)
        if entry and entry.state not in ("valid", "missing") and entry.until < now:
            entry.kept_until = now + self.max_age

    def hint(self, names: Iterable[str], now: float, again: bool, force: bool) -> list[str]:
        """Returns the names that must be asked for; they are in flight from now on."""
        to_ask = []
        for name in dict.fromkeys(names):
            answered = self.state(name, now) in ANSWERED
            if again if self.in_flight(name, now) else force or not answered:
                shown = not answered or (name in self.hints and self.hints[name].shown)
                self.hints[name] = Hint(now + self.hint_ttl, shown, self.hint_calls + 1)
                to_ask.append(name)
        self.hint_calls += bool(to_ask)
        return to_ask

    def still_out(self, name: str, now: float) -> None:
        """Shows a hint that outlasts an answer about its topic as if it was made just now."""
        if name in self.hints:
            self.hints[name].shown = self.state(name, now) not in ANSWERED

    def sweep(self, now: float, after: int) -> None:
        """Ends what is past its deadline: retains negatives, and removes retained entries."""
        self.purge_hints([name for name, hint in self.hints.items() if hint.until < now], now)
        for name, entry in list(self.entries.items()):
            if entry.state == "valid" or name in self.hints:
                continue
            if entry.kept_until is not None:
                if entry.kept_until < now:
                    del self.entries[name]
            elif entry.until < now:
                if entry.state == "missing" and entry.given_by >= 0:  # it has its time once more
                    entry.until, entry.given_by = now + self.absent_grace, -1
                    continue
                if entry.state == "missing":
                    entry.state, entry.until, entry.changed = "gone", now - 1e-6, after
                    entry.doubt, entry.gone_at, entry.given_by = NOTHING, now, -1
                    entry.expired = True
                entry.kept_until = now + self.max_age

    # ---- answers ------------------------------------------------------------------------------

    def apply(self, answer: Answer, rebootstrapped: bool = False) -> None:
        ended = () if answer.all else answer.asked or ()
        if not answer.brokers:
            self.purge_hints(ended, answer.now, answer.hints)
            raise NotAppliedError("no brokers")
        if self.cluster_id and answer.cluster_id and self.cluster_id != answer.cluster_id:
            if not rebootstrapped:
                self.purge_hints(ended, answer.now, answer.hints)
                raise NotAppliedError("another cluster")
            self.purge()
        self.brokers = tuple(sorted(answer.brokers, key=lambda broker: broker.id))
        self.cluster_id = answer.cluster_id or self.cluster_id
        for topic in answer.topics:
            self.answered(topic, answer)
        named = {str(topic.name) for topic in answer.topics}
        absent = self.absences(named, answer) if answer.all else set()
        ended = named.union(answer.asked or ())
        self.purge_hints(None if answer.all else ended, answer.now, answer.hints)
        for name in named | absent:
            self.still_out(name, answer.now)

    def answered(self, topic: T, answer: Answer) -> None:
        name = str(topic.name)
        entry = self.entries.get(name)
        newer = entry and entry.state == "valid" and answer.outdated(entry)
        by_name = topic.error in (UNKNOWN_ID, INCONSISTENT_ID)
        if entry:  # unless the answer is taken
            entry.doubt = DueReason.ASK_BY_NAME if by_name else DueReason.KEPT_BACK
        if topic.error in (UNKNOWN_TOPIC, UNKNOWN_ID):
            if not newer:
                self.negative(name, "unknown", self.negative_ttl, answer)
                self.entries[name].doubt = DueReason.ASK_BY_NAME if by_name else NOTHING
        elif topic.error == DENIED:
            if not newer:
                self.negative(name, "denied", self.denied_ttl, answer)
        elif topic.error == INVALID_TOPIC:
            self.negative(name, "invalid", self.max_age, answer)
        elif topic.error == 0:
            self.described(name, topic, answer)

    def negative(self, name: str, state: str, ttl: float, answer: Answer) -> None:
        """Makes the entry negative; its id and epochs stay."""
        entry = self.entries.setdefault(name, Entry(state, 0.0, changed=answer.after))
        entry.doubt = NOTHING
        if state == "unknown" and (entry.rows or entry.state in ("valid", "missing", "gone")):
            state = self.without(entry, answer)
            if state == entry.state == "missing":
                return
            ttl = self.absent_grace if state == "missing" else ttl
            entry.absent_from = answer.broker
        if entry.state != state:
            entry.changed = answer.after
            if state in ("missing", "gone"):
                self.went(entry, answer)
        entry.state, entry.until, entry.kept_until = state, answer.now + ttl, None

    def without(self, entry: Entry, answer: Answer) -> str:
        """Returns the state of a topic that was seen, after an answer that it is unknown."""
        if entry.state == "gone" or answer.candidates < OPINIONS or self.is_second(entry, answer):
            return "gone"
        return "missing"

    def is_second(self, entry: Entry, answer: Answer) -> bool:
        """Returns whether the answer is of another named broker than the one without the topic."""
        brokers = {entry.absent_from, answer.broker}
        return entry.state == "missing" and len(brokers) == 2 and min(brokers) >= 0

    def went(self, entry: Entry, answer: Answer) -> None:
        """Notes that the topic becomes missing or gone now."""
        entry.absent_from, entry.gone_at, entry.given_by = answer.broker, answer.now, -1
        entry.expired = False

    def absences(self, present: Collection[str], answer: Answer) -> set[str]:
        """Marks topics that the answer leaves out; returns the names of those that changed."""
        changed = set()
        for name, entry in self.entries.items():
            if name in present:
                continue
            if entry.state == "valid" and answer.outdated(entry):
                continue
            entry.doubt = NOTHING
            if entry.state == "valid":
                entry.state, entry.until = "missing", answer.now + self.absent_grace
            elif self.is_second(entry, answer):
                entry.state, entry.until = "gone", answer.now - 1e-6
                entry.kept_until = answer.now + self.max_age
            else:
                continue
            entry.changed = answer.after
            self.went(entry, answer)
            changed.add(name)
        return changed

    # ---- merging ------------------------------------------------------------------------------

    def described(self, name: str, topic: T, answer: Answer) -> None:
        old = self.entries.get(name)
        fresh = Entry("valid", answer.now + self.max_age, internal=topic.internal)
        fresh.operations = topic.operations
        topic_id = answer.id_of(topic)
        fresh.id = topic_id
        if old is None:
            fresh.rows = {p.id: self.row(p, None, answer) for p in topic.partitions}
        elif ZERO_ID not in (old.id, topic_id) and old.id != topic_id:
            if topic_id in old.past and (
                answer.outdated(old) or not self.believed(old, topic_id, answer)
            ):
                return
            fresh.past = [i for i in [old.id, *old.past] if i != topic_id][:PAST_IDS]
            fresh.rows = {p.id: self.row(p, None, answer) for p in topic.partitions}
        elif self.lagging(old, answer) or not self.merged(old, fresh, topic, answer):
            return
        fresh.changed = answer.after
        if old and old.equals(fresh):
            fresh.changed, fresh.rows = old.changed, old.rows
        self.entries[name] = fresh

    def lagging(self, old: Entry, answer: Answer) -> bool:
        """Returns whether the answer gives a topic that went just now, as a lagging broker.

        It is taken from the only broker, from the one that had it missing, or from a second one if
        the two may not both lag.
        """
        in_grace = answer.now <= round(old.gone_at + self.absent_grace, 6)
        if old.state == "missing" and old.absent_from == answer.broker:
            return False
        if old.state not in ("missing", "gone") or not in_grace or answer.candidates < OPINIONS:
            return False
        if self.is_seconded(old, answer):
            return False
        if old.given_by < 0:
            old.given_by = answer.broker
        return True

    def is_seconded(self, old: Entry, answer: Answer) -> bool:
        """Returns whether a second broker gives a topic that went, and the two may not both lag."""
        brokers = {old.given_by, answer.broker}
        if len(brokers) < 2 or min(brokers) < 0:
            return False
        if old.state == "missing":
            return answer.now >= round(old.gone_at + PROPAGATES, 6)
        return old.expired or old.absent_from in brokers

    def merged(self, old: Entry, fresh: Entry, topic: T, answer: Answer) -> bool:
        """Merges the same topic row by row; returns False if all is older and the entry stays."""
        new = {p.id: p for p in topic.partitions}
        known = {p.id: p for p in topic.partitions if p.id in old.rows and answer.usable(p.epoch)}
        lower = {i for i, p in known.items() if p.epoch < old.rows[i].high}
        raised = {i for i, p in known.items() if p.epoch > old.rows[i].high}
        older, outdated = lower | (old.rows.keys() - new.keys()), answer.outdated(old)
        if older and old.id == ZERO_ID != answer.id_of(topic):
            if not outdated:  # it is another topic
                fresh.rows = {p.id: self.row(p, None, answer) for p in topic.partitions}
            return not outdated
        kept = set(older)
        if outdated:
            undecided = (old.rows.keys() & new.keys()) - known.keys()
            kept |= {
                i for i in undecided if self.row(new[i], None, answer).latest != old.rows[i].latest
            }
        if raised or not (older or outdated):
            old.rewind = None
        if raised and outdated:
            old.clocks = {i: at for i, at in old.clocks.items() if i not in raised}
        elif not outdated:
            old.clocks = {i: old.clocks.get(i, answer.now) for i in older}
        if older and not outdated:
            kept -= self.believed_rows(old, older, answer)
        if kept and kept >= new.keys() and not old.rows.keys() - new.keys() - kept:
            return False
        if kept:
            fresh.until = old.until if outdated else fresh.until
            fresh.doubt = DueReason.KEPT_BACK
        fresh.rewind, fresh.clocks = old.rewind, old.clocks
        fresh.id = answer.id_of(topic) if answer.id_of(topic) != ZERO_ID else old.id
        fresh.past = old.past
        if topic.operations == NO_OPERATIONS:
            fresh.operations = old.operations
        fresh.rows = {i: self.row(p, old.rows.get(i), answer) for i, p in new.items()}
        fresh.rows |= {i: old.rows[i] for i in kept}
        return True

    def row(self, p: P, old: Row | None, answer: Answer) -> Row:
        """Returns the row of a partition that is not older than its old row."""
        usable = answer.usable(p.epoch)
        last = p.leader if p.leader >= 0 or old is None else old.last
        high = p.epoch if usable else old.high if old else -1
        epoch = p.epoch if usable else -1
        isr = p.replicas if p.isr is None else p.isr
        latest = P(p.id, p.leader, epoch, p.replicas, isr, p.offline, p.error)
        return Row(latest, last, high)

    def believed(self, entry: Entry, target: set[int] | bytes, answer: Answer) -> bool:
        """Counts one more answer that goes back to `target`; returns whether to believe it now."""
        rewind = entry.rewind
        if rewind is None or rewind.target != target:
            rewind = entry.rewind = Rewind(answer.now, target)
        if isinstance(target, bytes):
            entry.clocks = {}
        rewind.answers += 1
        rewind.brokers |= {answer.broker} - {-1}
        bound = min(self.max_age, BOUND)
        if (
            rewind.answers >= ANSWERS
            and answer.now >= round(rewind.since + SECONDS, 6)
            and (
                len(rewind.brokers) >= OPINIONS
                or answer.candidates < OPINIONS
                or answer.now >= round(rewind.since + bound, 6)
                or answer.now > entry.until
            )
        ):
            entry.rewind = None
            return True
        return False

    def believed_rows(self, entry: Entry, older: set[int], answer: Answer) -> set[int]:
        """Returns the rows to rewind now: those that were older in each counted answer, or none."""
        if entry.rewind and isinstance(entry.rewind.target, set) and entry.rewind.target & older:
            entry.rewind.target &= older
            older = entry.rewind.target
        gone = set(older) if self.believed(entry, older, answer) else set()
        bound = min(self.max_age, BOUND)
        gone |= {i for i, at in entry.clocks.items() if answer.now >= round(at + bound, 6)}
        if entry.rewind and isinstance(entry.rewind.target, set):
            entry.rewind.target = entry.rewind.target - gone
        for i in gone:
            del entry.clocks[i]
        return gone

    def leader_hint(self, name: str, p: int, leader: int, epoch: int, after: int) -> bool:
        """Applies a leader hint (KIP-951); returns whether the cache takes it."""
        entry = self.entries.get(name)
        row = entry.rows.get(p) if entry and entry.state == "valid" else None
        known = leader in {broker.id for broker in self.brokers}
        if entry is None or row is None or not known or epoch < 0 or epoch <= row.high:
            return False
        s = row.latest
        row.latest = P(s.id, leader, epoch, s.replicas, s.isr, s.offline, 0)
        row.last, row.high, entry.changed, entry.rewind = leader, epoch, after, None
        entry.clocks.pop(p, None)
        return True

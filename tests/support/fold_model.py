"""A naive fold of change records: the state after each version, then one list per thing.

`random_rows` makes the rows of a recording at random. `walk` folds rows version by version, with
the whole state in dictionaries, and cuts the result afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from itertools import accumulate, groupby
from random import Random
from typing import Any, NamedTuple

DAY = 86_400_000_000
START = 20_000 * DAY + 85_000_000_000  # a little before a midnight
Row = dict[str, Any]
Key = tuple[Any, ...]

WHOLE = ("topic_added", "topic_recreated", "partitions_added")
LED = ("leader_changed", "leader_epoch_changed")
ENDS = ("topic_absent", "topic_removed", "topic_recreated", "topic_error")
MARKS = ("observed_from", "resync")
ORDER = [
    *ENDS,
    "topic_added",
    "baseline",
    "partitions_added",
    "leader_changed",
    "isr_changed",
    "replicas_changed",
    "leader_epoch_changed",
    "offline_changed",
    "topic_id_learned",
    "config_changed",
    "broker_added",
    "broker_removed",
    "broker_changed",
]
NOTHING: Row = dict.fromkeys(
    ("leader", "leader_epoch", "isr", "replicas", "offline", "topic_id", "min_isr", "racks")
)


class Piece(NamedTuple):
    """A state from `began_at` to `ended_at`, with the row that began it."""

    key: Key
    state: tuple[Any, ...]
    began_at: int
    ended_at: int
    began_by: str
    ended_by: str
    unseen_us: int | None
    source: str | None
    version: int
    partial: bool


class Begun(NamedTuple):
    """A piece that stands."""

    state: tuple[Any, ...]
    at: int
    by: str
    row: Row


def as_ids(values: tuple[int, ...] | None, ordered: bool = False) -> tuple[int, ...] | None:
    if values is None:
        return None
    return tuple(values) if ordered else tuple(sorted(values))


class Walk:
    """The state after each version, and the pieces that have ended."""

    def __init__(self) -> None:
        self.partitions: dict[Key, Row] = {}  # a state that has a leader given has "live"
        self.topics: dict[str, Row] = {}
        self.brokers: dict[int, tuple[str, int, str | None]] = {}
        self.racks: dict[int, str | None] = {}
        self.configs: dict[Key, str] = {}
        self.standing: dict[Key, Begun] = {}
        self.done: list[Piece] = []
        self.mark: int | None = None
        self.is_baseline = False
        self.clock = 0
        self.partial = False

    def version(self, rows: list[Row]) -> None:
        """Takes the rows of one version and time."""
        first = rows[0]
        if any(row["kind"] in MARKS for row in rows) and first["version"] != self.mark:
            self.end(self.clock, "gap")
            self.mark, self.is_baseline = first["version"], True
        else:
            self.is_baseline = False
        if self.mark is None:
            return
        self.clock = max(self.clock, *(row["observed_at"] for row in rows))
        before = self.now()
        reasons: dict[Key, list[tuple[str, Row]]] = {}
        cut: set[Key] = set()
        given: set[tuple[Key, str]] = set()
        for row in rows:
            self.row(row, reasons, cut, given)
        after = self.now()
        for key in [*before, *(key for key in after if key not in before)]:
            if before.get(key) != after.get(key) or (key in cut and key in after):
                why = reasons.get(key) or reasons["racks",]
                self.change(key, after.get(key), why)
        for topic in [t for t, s in self.topics.items() if not s["exists"] and not self.has(t)]:
            del self.topics[topic]

    def has(self, topic: str) -> bool:
        states = [s for key, s in self.partitions.items() if key[0] == topic]
        return self.topics[topic]["min_isr"] is not None or any(s != NOTHING for s in states)

    def change(self, key: Key, state: tuple[Any, ...] | None, why: list[tuple[str, Row]]) -> None:
        """Ends the piece of `key`, and begins that of its new state."""
        by = min((reason for reason, _ in why), key=ORDER.index)
        if key in self.standing:
            self.stop(key, self.clock, by)
        if state is not None:
            row = why[-1][1]
            midnight = by == "baseline" and self.clock % DAY == 0
            if by == "baseline":
                row = {**row, "unseen_us": None}
            self.standing[key] = Begun(state, self.clock, "midnight" if midnight else by, row)

    def stop(self, key: Key, at: int, by: str) -> None:
        b = self.standing.pop(key)
        unlisted = key[0] == "topic" and not b.state[-1]
        state = b.state[:-1] if key[0] == "topic" else b.state
        row = b.row
        self.done.append(
            Piece(
                key,
                state,
                b.at,
                at,
                b.by,
                by,
                row.get("unseen_us"),
                row.get("source"),
                row["version"],
                self.partial or unlisted,
            )
        )

    def end(self, at: int, by: str) -> None:
        for key in list(self.standing):
            self.stop(key, at, by)
        racks = self.racks
        done, partial, clock = self.done, self.partial, self.clock
        self.__init__()  # type: ignore[misc]
        self.racks, self.done, self.partial, self.clock = racks, done, partial, clock

    def reason(self, row: Row) -> str:
        ends = row["kind"] in ENDS and row.get("partition") is None
        return "baseline" if self.is_baseline and not ends else row["kind"]

    def row(
        self,
        row: Row,
        reasons: dict[Key, list[tuple[str, Row]]],
        cut: set[Key],
        given: set[tuple[Key, str]],
    ) -> None:
        kind, topic, partition = row["kind"], row.get("topic"), row.get("partition")
        why = (self.reason(row), row)

        def touch(*key: Any) -> None:
            reasons.setdefault(key, []).append(why)

        if kind not in ORDER and kind not in (*MARKS, "observed_to", "internal_changed"):
            self.partial = True
        elif kind.startswith("broker_"):
            self.broker(row, touch)
        elif kind == "config_changed":
            self.config(row, touch)
        elif topic is not None and partition is not None:
            self.part(row, reasons, touch, given, cut)
        elif topic is not None and kind in (*WHOLE, *ENDS, "topic_id_learned"):
            self.topic(row, touch, given, cut)

    def topic_of(self, name: str) -> Row:
        new = {"exists": False, "listed": False, "topic_id": None, "min_isr": None}
        return self.topics.setdefault(name, new)

    def part(
        self,
        row: Row,
        reasons: dict[Key, list[tuple[str, Row]]],
        touch: Any,
        given: set[tuple[Key, str]],
        cut: set[Key],
    ) -> None:
        kind, topic = row["kind"], row["topic"]
        key = (topic, row["partition"])
        parts: Row = {}
        if kind in (*WHOLE, *LED):
            parts |= {
                "leader": row.get("new_leader"),
                "leader_epoch": row.get("new_leader_epoch"),
                "live": True,
            }
        if kind in (*WHOLE, "isr_changed"):
            parts["isr"] = as_ids(row.get("new_isr"))
        if kind in (*WHOLE, "replicas_changed"):
            parts["replicas"] = as_ids(row.get("new_replicas"), ordered=True)
        if kind in (*WHOLE, "offline_changed"):
            parts["offline"] = as_ids(row.get("new_offline"))
        if not parts:
            return
        topic_id = row.get("topic_id")
        if kind in WHOLE or (topic_id is not None and kind != "offline_changed"):
            parts["topic_id"] = topic_id
        about = self.topic_of(topic)
        about["listed"] |= kind in WHOLE
        about["topic_id"] = parts.get("topic_id") or about["topic_id"]
        state = self.partitions.setdefault(key, deepcopy(NOTHING))
        state.update(parts)
        given.update((key, name) for name in parts)
        touch("partition", *key)
        touch("topic", topic)
        if ("topic", topic) in cut:
            cut.add(("partition", *key))
            # The topic's end counts for a partition that comes later in the version, too.
            ends = [w for w in reasons["topic", topic] if w[0] in ENDS]
            reasons[("partition", *key)][:0] = ends

    def topic(self, row: Row, touch: Any, given: set[tuple[Key, str]], cut: set[Key]) -> None:
        kind, topic = row["kind"], row["topic"]
        for config in [c for c in self.configs if c[:2] == ("topic", topic) and kind in ENDS]:
            del self.configs[config]
            cut.add(("config", *config))
            touch("config", *config)
        if kind not in WHOLE and topic not in self.topics:
            return
        about = self.topic_of(topic)
        touch("topic", topic)
        if kind in ENDS:
            cut.add(("topic", topic))
            about.update(exists=False, listed=False, topic_id=None, min_isr=None)
            for key, state in self.partitions.items():
                if key[0] != topic:
                    continue
                cut.add(("partition", *key))
                touch("partition", *key)
                for name in [*state]:
                    if (key, name) not in given:
                        state.pop(name) if name == "live" else state.update({name: None})
        if kind in WHOLE:
            about.update(exists=True, topic_id=row.get("topic_id"))
        elif kind == "topic_id_learned" and row.get("topic_id"):
            about["topic_id"] = row["topic_id"]

    def config(self, row: Row, touch: Any) -> None:
        key, equals, value = row["detail"].partition("=")
        topic = row.get("topic")
        config = ("topic", topic, key) if topic else ("broker", str(row["broker"]), key)
        if equals:
            self.configs[config] = value
        else:
            self.configs.pop(config, None)
        touch("config", *config)
        if topic and key == "min.insync.replicas":
            min_isr = int(value) if value.isdigit() else None
            if min_isr == (self.topics[topic]["min_isr"] if topic in self.topics else None):
                return
            self.topic_of(topic)["min_isr"] = min_isr
            touch("topic", topic)
            for name, partition in self.partitions:
                if name == topic:
                    touch("partition", name, partition)

    def broker(self, row: Row, touch: Any) -> None:
        broker = row["broker"]
        touch("broker", broker)
        if row["kind"] == "broker_removed":
            self.brokers.pop(broker, None)
            return
        endpoint, _, rack = row["detail"].partition(" rack=")
        host, _, port = endpoint.rpartition(":")
        self.brokers[broker] = (host, int(port), rack or None)
        if self.racks.get(broker) != (rack or None):
            self.racks[broker] = rack or None
            touch("racks")

    def racks_of(self, replicas: tuple[int, ...] | None) -> int | None:
        racks = {self.racks.get(broker) for broker in replicas or ()}
        return None if replicas is None or None in racks else len(racks)

    def now(self) -> dict[Key, tuple[Any, ...]]:
        """Returns what each thing says now."""
        found: dict[Key, tuple[Any, ...]] = {}
        for (topic, partition), s in self.partitions.items():
            if s.get("live"):
                found["partition", topic, partition] = (
                    s["topic_id"],
                    s["leader"],
                    s["leader_epoch"],
                    s["isr"],
                    s["replicas"],
                    s["offline"],
                    self.topics[topic]["min_isr"],
                    self.racks_of(s["replicas"]),
                )
        for topic, about in self.topics.items():
            live = [key for key in found if key[:2] == ("partition", topic)]
            if about["exists"] or live:
                found["topic", topic] = (about["topic_id"], len(live), about["listed"])
        found |= {("broker", broker): said for broker, said in self.brokers.items()}
        found |= {("config", *key): (value,) for key, value in self.configs.items()}
        return found


def cut_at_midnights(piece: Piece) -> Iterator[Piece]:
    """Yields the piece's parts, none of which spans a midnight."""
    at, rest = (piece.began_at // DAY + 1) * DAY, piece
    while at <= rest.ended_at:
        yield rest._replace(ended_at=at, ended_by="midnight")
        rest = rest._replace(began_at=at, began_by="midnight", unseen_us=None)
        at += DAY
    yield rest


def clip(piece: Piece, counts_from: int, counts_to: int) -> Piece | None:
    if piece.began_at >= counts_to:
        return None
    if piece.ended_at > counts_to:
        by = "open" if counts_to % DAY else "midnight"
        piece = piece._replace(ended_at=counts_to, ended_by=by)
    if piece.began_at < counts_from:
        if piece.ended_at <= counts_from:
            return None
        return piece._replace(began_at=counts_from, began_by="baseline", unseen_us=None)
    if piece.ended_at == piece.began_at and piece.began_by == "midnight":
        return None
    return piece


def walk(
    rows: list[Row], end: int, by: str, counts_from: int = -(2**63), counts_to: int = 2**63 - 1
) -> list[Piece]:
    """Returns the pieces of all rows; those that stand end at `end`."""
    walked = Walk()
    latest = accumulate((row["observed_at"] for row in rows), max)
    timed = zip(latest, rows, strict=True)
    for _, group in groupby(timed, key=lambda pair: (pair[1]["version"], pair[0])):
        walked.version([row for _, row in group])
    reached = walked.clock
    walked.end(max(end, reached), by)
    parts = []
    for piece in walked.done:
        pieces = list(cut_at_midnights(piece))
        # An end at a midnight that no row has reached is no cut.
        if len(pieces) > 1 and pieces[-1].began_at == end > reached:
            pieces[-2:] = [pieces[-2]._replace(ended_by=by)]
        parts += pieces
    clipped = (clip(part, counts_from, counts_to) for part in parts)
    return [part for part in clipped if part is not None]


class Maker:
    """Makes rows of a cluster that changes at random."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.rows: list[Row] = []
        self.version = self.random.randrange(1, 50)
        self.at = START + self.random.randrange(DAY // 100)
        self.topics: dict[str, dict[int, Row]] = {}
        self.ids: dict[str, str | None] = {}
        self.used: dict[int, set[Key]] = {}

    def next_version(self, *used: Any) -> None:
        """Goes on to the next version if this one has a record about the same thing."""
        if used in self.used.setdefault(self.version, set()):
            self.version += 1
        self.used.setdefault(self.version, set()).add(used)

    def put(self, kind: str, **columns: Any) -> None:
        unseen = self.random.choice((None, 0, 1_000_000))
        source = self.random.choice(("poll", "hint", "log"))
        row: Row = {"version": self.version, "observed_at": self.at, "kind": kind}
        self.rows.append(row | {"source": source, "unseen_us": unseen} | columns)

    def ids_of(self) -> tuple[int, ...]:
        return tuple(self.random.sample(range(1, 6), self.random.randrange(0, 4)))

    def state(self) -> Row:
        choose = self.random.choice
        return {
            "new_leader": choose((1, 2, 3, None)),
            "new_leader_epoch": choose((0, 1, 2, None)),
            "new_isr": choose((self.ids_of(), (1, 2), None)),
            "new_replicas": choose(((1, 2, 3), (2, 1, 3), (3, 4, 5), None)),
            "new_offline": choose((None, (), (3,))),
        }

    def add(self, topic: str, kind: str) -> None:
        if kind == "topic_recreated":
            self.next_version("config", topic)
        self.ids[topic] = self.random.choice(("A" * 22, "B" * 22, None))
        self.put(kind, topic=topic, topic_id=self.ids[topic])
        self.topics[topic] = {}
        for partition in range(self.random.randrange(0, 4)):
            self.topics[topic][partition] = {}
            self.whole(topic, partition, kind)

    def remove(self, topic: str, topic_id: str | None) -> None:
        self.next_version("config", topic)
        self.put(self.random.choice(ENDS), topic=topic, topic_id=topic_id)

    def whole(self, topic: str, partition: int, kind: str) -> None:
        self.put(kind, topic=topic, topic_id=self.ids[topic], partition=partition, **self.state())

    def baseline(self) -> None:
        self.put("observed_from", unseen_us=None)
        if self.random.random() < 0.2:
            self.put("resync", detail="why")
        for broker in self.random.sample(range(1, 6), 4):
            self.broker(broker)
        for topic in self.random.sample(("orders", "payments", "x"), 2):
            self.add(topic, "topic_added")
            if self.random.random() < 0.5:
                self.config(topic)

    def broker(self, broker: int, kind: str = "broker_added") -> None:
        self.next_version("broker", broker)
        rack = self.random.choice(("", " rack=a", " rack=b", " rack=c d"))
        detail = f"host-{self.random.randrange(2)}:{9092 + broker}{rack}"
        self.put(kind, broker=broker, detail=detail)

    def config(self, topic: str) -> None:
        self.next_version("config", topic)
        detail = self.random.choice(
            ("min.insync.replicas=1", "min.insync.replicas=2", "min.insync.replicas", "a=b", "a")
        )
        self.put("config_changed", topic=topic, topic_id=self.ids.get(topic), detail=detail)

    def step(self, quiet: bool) -> None:
        """Changes something; with `quiet`, neither brokers nor configurations."""
        random = self.random
        topic = random.choice(("orders", "payments", "x"))
        partition = random.randrange(4)
        topic_id = random.choice((self.ids.get(topic), None))
        where = {"topic": topic, "topic_id": topic_id, "partition": partition}
        state = self.state()
        led = {name: state[name] for name in ("new_leader", "new_leader_epoch")}
        led |= {"old_leader": random.choice((1, None)), "old_leader_epoch": 0}
        makes: list[Any] = [
            lambda: self.put("leader_changed", **where, **led),
            lambda: self.put("leader_changed", **where, **led),
            lambda: self.put("leader_epoch_changed", **where, **led),
            lambda: self.put("isr_changed", **where, new_isr=state["new_isr"], old_isr=(1,)),
            lambda: self.put("isr_changed", **where, new_isr=state["new_isr"], old_isr=(1,)),
            lambda: self.put("replicas_changed", **where, new_replicas=state["new_replicas"]),
            lambda: self.put("offline_changed", **where, new_offline=state["new_offline"]),
            lambda: self.whole(topic, partition, "partitions_added") if topic in self.ids else 0,
            lambda: self.add(topic, random.choice(("topic_added", "topic_recreated"))),
            lambda: self.remove(topic, topic_id),
            lambda: self.put("topic_id_learned", topic=topic, topic_id="C" * 22),
            lambda: self.put("internal_changed", topic=topic, detail="true"),
        ]
        if not quiet:
            makes += [
                lambda: self.broker(random.randrange(1, 6), "broker_changed"),
                lambda: self.broker(random.randrange(1, 6)),
                lambda: self.broker(random.randrange(1, 6), "broker_removed"),
                lambda: self.config(topic),
                lambda: self.config(topic),
            ]
        random.choice(makes)()

    def make(self, steps: int, quiet: bool) -> list[Row]:
        random = self.random
        self.baseline()
        for _ in range(steps):
            if random.random() < 0.8:
                self.version += random.randrange(1, 3)
                jump = random.choice((0, 0, 1, 1_000_000, 3_600_000_000, DAY // 2))
                self.at += jump
                if random.random() < 0.05:
                    self.at = (self.at // DAY + 1) * DAY
            elif random.random() < 0.2:
                self.at += random.choice((1, 1_000_000, DAY // 2))
            self.step(quiet)
        return self.rows


def random_rows(seed: int, steps: int = 60, quiet: bool = False) -> list[Row]:
    """Returns the rows of a random recording."""
    return Maker(seed).make(steps, quiet)


def apart(rows: list[Row]) -> list[Row]:
    """Returns rows within one day; a version has one record about a topic, or whole ones.

    Queries do not know the order of records in a version.
    """
    made: list[Row] = []
    named: set[str | None] = set()
    version, at = rows[0]["version"], 1
    for i, row in enumerate(rows):
        topic, last = row.get("topic"), rows[i - 1]
        place, before = (-1 if r.get("partition") is None else r["partition"] for r in (row, last))
        same = (topic, row["kind"]) == (last.get("topic"), last["kind"])
        again = topic in named and not (same and row["kind"] in WHOLE and place > before)
        if i and (row["version"] != last["version"] or again):
            version, named, at = version + 1, set(), i + 1
        named.add(topic)
        made.append(row | {"version": version, "observed_at": START // DAY * DAY + at})
    return made

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
States = dict[Key, tuple[Any, ...]]

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
    "reassignment_changed",
    "elr_changed",
    "leader_epoch_changed",
    "offline_changed",
    "topic_id_learned",
    "config_changed",
    "broker_added",
    "broker_removed",
    "broker_changed",
    "broker_fenced",
    "broker_unfenced",
    "broker_shutting_down",
    "controller_changed",
]
PLAIN = ("observed_to", "internal_changed", "unclean_election")
# The names of a thing, and what it says, in each table of intervals.
COLUMNS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "partition_interval": (
        ("topic", "partition"),
        (
            *("topic_id", "leader", "leader_epoch", "isr", "replicas", "offline"),
            *("min_isr", "racks", "adding", "removing", "elr"),
        ),
    ),
    "topic_interval": (("topic",), ("topic_id", "partitions")),
    "broker_interval": (("broker",), ("host", "port", "rack", "fenced", "shutting_down")),
    "config_interval": (("resource_type", "resource", "key"), ("value",)),
    "controller": ((), ("broker", "epoch")),
}
NOTHING: Row = dict.fromkeys(COLUMNS["partition_interval"][1])
MIN_ISR = COLUMNS["partition_interval"][1].index("min_isr")


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
    epoch: int | None = None  # of a partition or a broker, in the row that began it


def piece_of(table: str, row: Row) -> Piece:
    """Returns a row of a table of intervals as a piece."""
    keys, values = COLUMNS[table]
    key = (table.removesuffix("_interval"), *(row[name] for name in keys))
    rest: Any = (row[name] for name in Piece._fields[2:-1])
    epoch = row.get("partition_epoch", row.get("broker_epoch"))
    return Piece(key, tuple(row[name] for name in values), *rest)._replace(epoch=epoch)


class Begun(NamedTuple):
    """A piece that stands."""

    state: tuple[Any, ...]
    at: int
    by: str
    row: Row
    epoch: int | None = None


def as_ids(values: tuple[int, ...] | None, ordered: bool = False) -> tuple[int, ...] | None:
    if values is None:
        return None
    return tuple(values) if ordered else tuple(sorted(values))


class Walk:
    """The state after each version, and the pieces that have ended."""

    def __init__(self) -> None:
        self.partitions: dict[Key, Row] = {}  # a state that has a leader given has "live"
        self.topics: dict[str, Row] = {}
        self.brokers: dict[int, Row] = {}
        self.min_isr: int | None = None
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
                cause = "min_isr" if self.has_other_min_isr(key, before, after) else "racks"
                why = reasons.get(key) or reasons[cause,]
                self.change(key, after.get(key), why, key in cut)
        for topic in [t for t, s in self.topics.items() if not s["exists"] and not self.has(t)]:
            del self.topics[topic]

    def has_other_min_isr(self, key: Key, before: States, after: States) -> bool:
        is_kept = key[0] == "partition" and key in before and key in after
        return is_kept and before[key][MIN_ISR] != after[key][MIN_ISR]

    def has(self, topic: str) -> bool:
        states = [s for key, s in self.partitions.items() if key[0] == topic]
        return self.topics[topic]["min_isr"] is not None or any(s != NOTHING for s in states)

    def change(
        self, key: Key, state: tuple[Any, ...] | None, why: list[tuple[str, Row]], is_cut: bool
    ) -> None:
        """Ends the piece of `key`, and begins that of its new state."""
        by = min((reason for reason, _ in why), key=ORDER.index)
        last = self.standing.get(key)
        if last is not None:
            self.stop(key, self.clock, by)
        if state is not None:
            of = {"partition": "partition_epoch", "broker": "broker_epoch"}.get(key[0], "")
            rows = [row for _, row in why]
            if key[0] == "partition":  # its own rows count before those of others
                rows += [row for row in rows if row.get(of) is not None]
            row, epoch = rows[-1], rows[-1].get(of)
            if key[0] == "partition" and epoch is None and last is not None and not is_cut:
                epoch = last.epoch
            midnight = by == "baseline" and self.clock % DAY == 0
            if by == "baseline":
                row = {**row, "unseen_us": None}
            by = "midnight" if midnight else by
            self.standing[key] = Begun(state, self.clock, by, row, epoch)

    def term(self, row: Row) -> None:
        """Begins a controller's term; the one before ended at its last record."""
        key, state = ("controller",), (row.get("broker"), row["new_leader_epoch"])
        last, gap, why = self.standing.get(key), row.get("unseen_us") or 0, self.reason(row)
        if last is not None and last.state == state:
            return
        if last is not None and last.state[0] is not None and gap:
            at = max(last.at, self.clock - gap, self.clock // DAY * DAY)
            self.stop(key, at, why)
            row_of = {**row, "unseen_us": None}
            by = "midnight" if why == "baseline" and self.clock % DAY == 0 else why
            self.standing[key] = Begun((None, last.state[1]), at, by, row_of)
        self.change(key, state, [(why, row)], False)

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
                b.epoch,
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

        if kind not in (*ORDER, *MARKS, *PLAIN):
            self.partial = True
        elif kind == "controller_changed":
            self.term(row)
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
        if kind in (*WHOLE, "reassignment_changed"):
            parts |= {name: as_ids(row.get(f"new_{name}")) for name in ("adding", "removing")}
        if kind in (*WHOLE, "elr_changed"):
            parts["elr"] = as_ids(row.get("new_elr"))
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
                if row.get("offset") is not None:  # the rows of a log are in order
                    given -= {(key, name) for name in state}
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
        broker = row.get("broker")
        name = "" if broker is None else str(broker)
        config = ("broker", name, key) if topic is None else ("topic", topic, key)
        if equals:
            self.configs[config] = value
        else:
            self.configs.pop(config, None)
        touch("config", *config)
        min_isr = int(value) if value.isdigit() else None
        if topic is None and broker is None and key == "min.insync.replicas":
            self.min_isr = min_isr
            touch("min_isr")
        elif topic is not None and key == "min.insync.replicas":
            if min_isr == (self.topics[topic]["min_isr"] if topic in self.topics else None):
                return
            self.topic_of(topic)["min_isr"] = min_isr
            touch("topic", topic)
            for name, partition in self.partitions:
                if name == topic:
                    touch("partition", name, partition)

    def broker(self, row: Row, touch: Any) -> None:
        broker, kind = row["broker"], row["kind"]
        touch("broker", broker)
        found = self.brokers.setdefault(broker, {"fenced": None, "shutting_down": None})
        if kind in ("broker_fenced", "broker_unfenced"):
            found["fenced"] = kind == "broker_fenced"
        elif kind == "broker_shutting_down":
            found["shutting_down"] = True
        is_whole = kind in ("broker_added", "broker_changed")
        if kind == "broker_removed" or not ("host" in found or is_whole):
            del self.brokers[broker]
        if not is_whole:
            return
        endpoint, has_rack, text = row["detail"].partition(" rack=")
        host, _, port = endpoint.rpartition(":")
        rack = text if has_rack else None
        found |= {"host": host, "port": int(port), "rack": rack}
        found["shutting_down"] = False if row["source"] == "log" else None
        if self.racks.get(broker) != rack:
            self.racks[broker] = rack
            touch("racks")

    def racks_of(self, replicas: tuple[int, ...] | None) -> int | None:
        racks = {self.racks.get(broker) for broker in replicas or ()}
        return None if replicas is None or None in racks else len(racks)

    def now(self) -> States:
        """Returns what each thing says now."""
        found: States = {}
        for (topic, partition), s in self.partitions.items():
            if s.get("live"):
                own = self.topics[topic]["min_isr"]
                min_isr = self.min_isr if own is None else own
                shown = {**s, "min_isr": min_isr, "racks": self.racks_of(s["replicas"])}
                names = COLUMNS["partition_interval"][1]
                found["partition", topic, partition] = tuple(shown[name] for name in names)
        for topic, about in self.topics.items():
            live = [key for key in found if key[:2] == ("partition", topic)]
            if about["exists"] or live:
                found["topic", topic] = (about["topic_id"], len(live), about["listed"])
        names = COLUMNS["broker_interval"][1]
        for broker, said in self.brokers.items():
            found["broker", broker] = tuple(said[name] for name in names)
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
        self.is_log = bool(seed % 2)
        self.epoch = 0
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
        if self.is_log:
            self.epoch += self.random.randrange(2)
            source = "log"
            row["offset"] = len(self.rows)
            if "partition" in columns:
                row["partition_epoch"] = self.epoch
            elif "broker" in columns and kind != "config_changed":
                row["broker_epoch"] = self.epoch // 4
        self.rows.append(row | {"source": source, "unseen_us": unseen} | columns)

    def ids_of(self) -> tuple[int, ...]:
        return tuple(self.random.sample(range(1, 6), self.random.randrange(0, 4)))

    def state(self) -> Row:
        choose = self.random.choice
        lists = ("new_adding", "new_removing", "new_elr") if self.is_log else ()
        return {
            **{name: choose(((), (), self.ids_of())) for name in lists},
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
        if not self.is_log:
            self.next_version("broker", broker)
        rack = self.random.choice(("", " rack=a", " rack=b", " rack=c d"))
        detail = f"host-{self.random.randrange(2)}:{9092 + broker}{rack}"
        self.put(kind, broker=broker, detail=detail)

    def config(self, topic: str | None) -> None:
        self.next_version("config", topic)
        detail = self.random.choice(
            ("min.insync.replicas=1", "min.insync.replicas=2", "min.insync.replicas", "a=b", "a")
        )
        self.put("config_changed", topic=topic, topic_id=self.ids.get(topic or ""), detail=detail)

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
        if self.is_log:
            broker = random.randrange(1, 6)
            flags = ("broker_fenced", "broker_unfenced", "broker_shutting_down")
            epoch = random.randrange(3)
            makes += [
                *(lambda kind=kind: self.put(kind, broker=broker) for kind in flags),
                lambda: self.put("reassignment_changed", **where, **state),
                lambda: self.put("elr_changed", **where, **state),
                lambda: self.put("unclean_election", **where, **state),
                lambda: self.put("controller_changed", broker=broker, new_leader_epoch=epoch),
                lambda: self.config(None),
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
    """Returns the rows of a random recording; with an odd seed, unless quiet, of a log."""
    return Maker(2 * seed if quiet else seed).make(steps, quiet)


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

"""Tables of silver of small clusters at random, as recordings or as metadata logs would make them.

Times lie about the end of a month. Some changes fall on a midnight, and some on one moment.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from functools import cache
from random import Random
from typing import Any

import pyarrow as pa
from gold_tables import rows_of_silver

__all__ = ["random_silver"]

BEGIN = datetime(2026, 10, 30, 17, tzinfo=timezone.utc)
TOPICS = ("orders", "payments", "clicks")
KEYS: dict[str, tuple[str, ...]] = {
    "partition_interval": ("topic", "topic_id", "partition"),
    "broker_interval": ("broker",),
    "topic_interval": ("topic",),
    "config_interval": ("resource_type", "resource", "key"),
    "controller": (),
}
TABLES = tuple(KEYS)
Row = dict[str, Any]
State = dict[tuple[Any, ...], Row]


class _Cluster:
    """A cluster whose state changes; `standing` are the intervals that have begun."""

    def __init__(self, name: str, random: Random, rows: dict[str, list[Row]]) -> None:
        self.name, self.random, self.rows = name, random, rows
        # The first thing of all is a log, so that there is a controller in all silver.
        self.is_log = not rows["observation"] or random.random() < 0.6
        self.now = BEGIN + timedelta(microseconds=random.randrange(3_600_000_000))
        self.state: dict[str, State] = {table: {} for table in TABLES}
        self.standing: dict[str, State] = {table: {} for table in TABLES}
        self.version = self.epoch = self.id = 0
        self.origin = ""
        self.counts_from = self.now
        for broker in (1, 2, 3):
            self.register(broker)
        self.kinds: dict[tuple[str, tuple[Any, ...]], str] = {}
        self.add_topic("orders", "topic_added")
        self.lead()
        self.begin()

    def live(self, until: datetime, steps: int) -> None:
        """Lets time pass, with changes, midnights and holes."""
        gaps = sorted(self.random.random() for _ in range(steps))
        times = [self.now + gap * (until - self.now) for gap in gaps]
        days = (until - self.now).days + 1
        midnights = [self.now.replace(hour=0, minute=0, second=0, microsecond=0)] * days
        for number in range(days):
            midnights[number] += timedelta(days=number + 1)
        for at in sorted([*times, *(each for each in midnights if each < until)]):
            if at < self.now:  # in a hole
                continue
            self.now = at
            if at in midnights:
                self.midnight()
                continue
            action = self.random.choices(("change", "hole", "other"), (90, 4, 3))[0]
            if action == "change":
                self.changes()
            else:
                self.end("gap" if action == "hole" else "open")
                if action == "hole":
                    self.now += self.random.choice((1e-6, 600, 7200)) * timedelta(seconds=1)
                    self.now = min(self.now, at.replace(hour=23, minute=59, second=59))
                    if self.random.random() < 0.7:
                        self.change()
                self.begin()
        self.now = max(self.now, until)
        self.end("open")

    def midnight(self) -> None:
        """Cuts all intervals; a change may be dated at the midnight."""
        self.end("midnight")
        is_same = self.random.random() < 0.7
        if not is_same:
            self.change()
        self.begin("midnight" if is_same or self.random.random() < 0.5 else "baseline")

    def begin(self, by: str = "baseline") -> None:
        self.counts_from = self.now
        if by == "baseline":
            self.origin = f"origin-{self.random.randrange(10**6)}"
            if self.rows["observation"] and self.random.random() < 0.2:
                self.tell_other_things()
        for table in TABLES:
            for key, values in self.state[table].items():
                self.stand(table, key, values, by)
        self.kinds = {}

    def tell_other_things(self) -> None:
        """Goes on with a recording behind a log, or with a log behind a recording."""
        self.is_log = not self.is_log
        self.lead()
        partitions = self.state["partition_interval"]
        for broker in list(self.state["broker_interval"]):
            self.register(*broker)
        for key, found in partitions.items():
            partitions[key] = found | dict.fromkeys(
                ("adding", "removing"), [] if self.is_log else None
            )

    def end(self, by: str) -> None:
        for table in TABLES:
            for key in [*self.standing[table]]:
                self.stop(table, key, by)
        self.rows["observation"].append(
            {
                "cluster_id": self.name,
                "origin": self.origin,
                **dict.fromkeys(("seen_from", "counts_from"), self.counts_from),
                **dict.fromkeys(("seen_to", "counts_to"), self.now),
                "ended_by": by,
                "partial": False,
            }
        )

    def changes(self) -> None:
        """Makes one version, or several at one moment."""
        for _ in range(self.random.choice((1, 1, 1, 2))):
            self.change()
            for table in TABLES:
                for key in [*self.standing[table]]:
                    row, values = self.standing[table][key], self.state[table].get(key)
                    same = values is not None and all(row[n] == v for n, v in values.items())
                    if not same or (table, key) in self.kinds:
                        self.stop(table, key, self.kind(table, key))
                for key, values in self.state[table].items():
                    if key not in self.standing[table]:
                        self.stand(table, key, values, self.kind(table, key))
            self.kinds = {}

    def kind(self, table: str, key: tuple[Any, ...]) -> str:
        return self.kinds.get((table, key), f"{table.partition('_')[0]}_changed")

    def stand(self, table: str, key: tuple[Any, ...], values: Row, by: str) -> None:
        self.version += 1
        self.standing[table][key] = {
            "cluster_id": self.name,
            **dict(zip(KEYS[table], key, strict=True)),
            **values,
            "began_at": self.now,
            "began_by": by,
            "origin": self.origin,
            "version": self.version,
            "offset": self.version if self.is_log else None,
            "partial": False,
        }

    def stop(self, table: str, key: tuple[Any, ...], by: str) -> None:
        row = self.standing[table].pop(key)
        us = (self.now - row["began_at"]) // timedelta(microseconds=1)
        if us or row["began_by"] != "midnight":
            self.rows[table].append({**row, "ended_at": self.now, "us": us, "ended_by": by})

    def change(self) -> None:
        """Changes one thing."""
        makes: list[Callable[[], object]] = [
            self.change_broker,
            self.elect,
            self.move,
            self.change_topic,
            self.change_config,
            self.lead,
        ]
        self.random.choices(makes, (30, 30, 10, 12, 12, 6))[0]()

    def lead(self) -> None:
        """Another controller leads, or none; recordings do not tell."""
        self.epoch += 1
        row = {"broker": self.random.choice((1, 2, None)), "epoch": self.epoch}
        self.state["controller"] = {(): row} if self.is_log else {}

    def register(self, broker: int, fenced: bool = False) -> None:
        self.epoch += 1
        self.state["broker_interval"][broker,] = {
            "broker_epoch": self.epoch if self.is_log else None,
            "host": "host",
            "port": 9092,
            "fenced": fenced if self.is_log else None,
            "shutting_down": False if self.is_log else None,
        }

    def change_broker(self) -> None:
        broker = self.random.choice((1, 2, 2, 3, 3, 4))
        brokers = self.state["broker_interval"]
        found = brokers.get((broker,))
        if found is None:
            self.register(broker, self.random.random() < 0.5)
        elif not self.is_log or self.random.random() < 0.15:
            del brokers[broker,]
        elif not found["fenced"]:
            name = self.random.choice(("fenced", "shutting_down"))
            brokers[broker,] = found | {name: True}
        elif self.random.random() < 0.5:
            self.register(broker, self.random.random() < 0.5)
        else:
            brokers[broker,] = found | {"fenced": False, "shutting_down": False}

    def partition(self) -> tuple[Any, ...] | None:
        keys = list(self.state["partition_interval"])
        return self.random.choice(keys) if keys else None

    def elect(self) -> None:
        key = self.partition()
        if key is None:
            return
        found = self.state["partition_interval"][key]
        leader = self.random.choice((*found["replicas"], found["replicas"][0], None))
        epoch = found["leader_epoch"] + 1
        self.state["partition_interval"][key] = found | {"leader": leader, "leader_epoch": epoch}
        seen = {"cluster_id": self.name, "observed_at": self.now, "origin": self.origin}
        seen |= dict(zip(KEYS["partition_interval"], key, strict=True))
        old = {"old_leader": found["leader"], "old_leader_epoch": epoch - 1}
        new = {"new_leader": leader, "new_leader_epoch": epoch, "elections": 1}
        self.rows["leader_change"].append(seen | old | new)
        if self.is_log and leader is not None and self.random.random() < 0.3:
            unclean = {"kind": "unclean_election", "broker": leader}
            self.rows["change"].append(seen | unclean)

    def move(self) -> None:
        key = self.partition()
        if key is None:
            return
        replicas = self.random.sample((1, 2, 3, 4), self.random.randrange(1, 4))
        adding = self.random.choice(([], replicas[:1])) if self.is_log else None
        removing = self.random.choice(([], replicas[-1:])) if self.is_log else None
        found = self.state["partition_interval"][key]
        moved = {"replicas": replicas, "adding": adding, "removing": removing}
        self.state["partition_interval"][key] = found | moved

    def add_topic(self, topic: str, kind: str) -> None:
        self.id += 1
        topic_id = self.random.choice((f"id-{self.id}", f"id-{self.id}", None))
        self.state["topic_interval"][topic,] = {"topic_id": topic_id, "partitions": 0}
        self.kinds["topic_interval", (topic,)] = kind
        for _ in range(self.random.randrange(1, 3)):
            self.grow(topic)

    def grow(self, topic: str) -> None:
        found = self.state["topic_interval"][topic,]
        number = found["partitions"]
        self.state["topic_interval"][topic,] = found | {"partitions": number + 1}
        replicas = self.random.sample((1, 2, 3), self.random.randrange(1, 4))
        self.state["partition_interval"][topic, found["topic_id"], number] = {
            "leader": self.random.choice((*replicas, None)),
            "leader_epoch": 0,
            "isr": sorted(replicas),
            "replicas": replicas,
            "adding": [] if self.is_log else None,
            "removing": [] if self.is_log else None,
        }

    def remove(self, topic: str, kind: str) -> None:
        del self.state["topic_interval"][topic,]
        self.kinds["topic_interval", (topic,)] = kind
        for key in [each for each in self.state["partition_interval"] if each[0] == topic]:
            del self.state["partition_interval"][key]
        for key in [each for each in self.state["config_interval"] if each[1] == topic]:
            self.kinds["config_interval", key] = kind
            if self.random.random() < 0.7:
                del self.state["config_interval"][key]

    def change_topic(self) -> None:
        topic = self.random.choice(TOPICS)
        found = self.state["topic_interval"].get((topic,))
        if found is None:
            self.add_topic(topic, "topic_added")
            return
        action = self.random.choice(("grow", "remove", "error", "again", "learn", "forget", "back"))
        if action == "grow":
            self.grow(topic)
        elif action in ("remove", "error"):
            kinds = ("topic_removed", "topic_absent") if action == "remove" else ("topic_error",)
            self.remove(topic, self.random.choice(kinds))
        elif action == "again":
            self.remove(topic, "topic_recreated")
            self.add_topic(topic, "topic_recreated")
        elif action == "back":  # the same topic comes back in the same moment
            self.kinds["topic_interval", (topic,)] = "topic_absent"
        else:
            topic_id = f"id-{self.random.randrange(6)}" if action == "learn" else None
            self.state["topic_interval"][topic,] = found | {"topic_id": topic_id}
            self.kinds["topic_interval", (topic,)] = "topic_id_learned"

    def change_config(self) -> None:
        topics = [each[0] for each in self.state["topic_interval"]]
        key = ("topic", self.random.choice([*topics, "default"]), "min.insync.replicas")
        configs = self.state["config_interval"]
        self.kinds["config_interval", key] = "config_changed"
        if key in configs and self.random.random() < 0.4:
            del configs[key]
        else:
            configs[key] = {"value": self.random.choice(("1", "2", "***"))}


@cache
def random_silver(seed: int, clusters: int = 2, steps: int = 80) -> dict[str, pa.Table]:
    """Returns tables of silver of some clusters over two and a half days."""
    random = Random(seed)
    names = (*TABLES, "observation", "leader_change", "change")
    rows: dict[str, list[Row]] = {table: [] for table in names}
    for number in range(clusters):
        _Cluster(f"cluster-{number}", random, rows).live(BEGIN + timedelta(hours=60), steps)
    for each in rows.values():
        random.shuffle(each)
    return {table: rows_of_silver(table, each) for table, each in rows.items()}

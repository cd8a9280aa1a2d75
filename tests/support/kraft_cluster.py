"""The log directories of three controllers, written by a test.

cluster = Cluster(tmp_path, 0)      # node 1 leads epoch 1: a batch in all three logs
cluster.append(1, 2)                # a batch in two of them
cluster.looked_at()                 # as rdmeta.kraft looks at the directories
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kraft_logs import LOG
from kraft_model import Model, fact_key
from kraft_random import RandomLog
from kraft_records import batches

from rdmeta._core import KraftReplay
from rdmeta.generate.logs import Given, Log, snapshot, snapshot_name, uuid_text
from rdmeta.kraft import NodeLog
from rdmeta.kraft.log_files import find_nodes
from rdmeta.kraft.proving import looked_at
from rdmeta.kraft.replaying import LogReplay

NOTHING: Given = ("NO_OP_RECORD", 0, {})


class Cluster:
    """Three controllers, of which a test writes the logs.

    With `batches` node 1 leads epoch 1, and all have so many batches behind that.
    """

    def __init__(
        self, directory: Path, batches: int | None = None, voters: Sequence[int] = (1, 2, 3)
    ) -> None:
        self.directory = directory
        self.voters = voters
        self.logs = {node: Log() for node in (1, 2, 3)}
        self.noted: dict[int, int | None] = {}  # the epochs of quorum-state
        if batches is not None:
            self.lead(1, 1)
        for _ in range(batches or 0):
            self.append()

    def lead(self, epoch: int, leader: int, *nodes: int) -> None:
        for node in nodes or self.logs:
            self.logs[node].lead(epoch, leader, self.voters)

    def append(self, *nodes: int) -> None:
        """Appends a batch to the logs of these nodes, or of all."""
        for node in nodes or self.logs:
            self.logs[node].append(NOTHING)

    def looked_at(self, *nodes: int) -> list[NodeLog]:
        for node, log in self.logs.items():
            directory = self.directory / f"n{node}" / LOG
            directory.mkdir(parents=True, exist_ok=True)
            (directory / log.name).write_bytes(bytes(log.data))
            (directory.parent / "meta.properties").write_text(
                f"node.id={node}\ncluster.id=c\ndirectory.id={uuid_text(node)}\n"
            )
            epoch = self.noted.get(node, log.epoch)
            state = {"leaderId": -1, "leaderEpoch": epoch, "votedId": -1, "data_version": 1}
            if epoch is not None:
                (directory / "quorum-state").write_text(json.dumps(state))
        found = find_nodes([self.directory / f"n{node}" for node in nodes or self.logs])
        return [looked_at(each) for each in found]

    def snapshot(self, node: int, end: int, epoch: int, last_ms: int, cut: int = 0) -> Path:
        directory = self.directory / f"n{node}" / LOG
        directory.mkdir(parents=True, exist_ok=True)
        data = snapshot([NOTHING], epoch, last_ms)
        path = directory / snapshot_name(end, epoch)
        path.write_bytes(data[: len(data) - cut])
        return path


def log_of(batches: int) -> Log:
    """Returns a log of a leader and of so many batches of a record."""
    log = Log()
    log.lead(1, 1)
    for _ in range(batches):
        log.append(NOTHING)
    return log


def replayed(log: NodeLog, at: int | None = None, **options: Any) -> LogReplay:
    """Replays a log up to the offset `at`, or to its end."""
    end = log.end if at is None else at
    made = LogReplay(log, end, **options)
    made.advance(end)
    return made


def snapshot_of(log: Log) -> tuple[str, bytes]:
    """Returns the name and the bytes of a snapshot behind the last batch of a log."""
    model = Model()
    for batch in batches(bytes(log.data)):
        model.apply(batch)
    last_ms = log.ends[-1][2]
    return snapshot_name(log.end, log.epoch), snapshot(model.records(), log.epoch, last_ms)


def model_of(replay: KraftReplay) -> Model:
    """Returns a state in C in the form of the naive replay."""
    made = Model()
    for name, topic_id, *_ in replay.topics():
        made.topics[name] = topic_id
        for id, *row, _ in replay.partitions(name):
            made.partitions[name, id] = dict(zip(_ROW, map(_listed, row), strict=True))
    for id, epoch, fenced, down, dirs, cordoned, registration, _ in replay.brokers():
        data = json.loads(registration)
        made.brokers[id] = {
            "incarnation": data["incarnationId"], "epoch": epoch, "endpoints": data["endPoints"],
            "features": data["features"], "rack": data["rack"], "fenced": fenced,
            "shutting_down": down, "dirs": list(dirs), "cordoned": _listed(cordoned),
        }  # fmt: skip
    for kind, text, _ in replay.facts(show_secrets=True):
        data = json.loads(text)
        made.facts[fact_key(str(kind), data)] = data
    made.next = replay.info()["next"]
    return made


_ROW = (
    "leader", "leader_epoch", "partition_epoch", "recovery", "replicas", "isr", "removing",
    "adding", "elr", "last_elr", "directories",
)  # fmt: skip


def _listed(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def random_node(directory: Path, seed: int, cut: int = 0) -> tuple[NodeLog, RandomLog]:
    """Writes a random log as three segments, of which the first is left out with `cut`."""
    made = RandomLog(random.Random(seed))
    made.grow(60)
    commits = sorted(made.states)[1:]
    ends = {end: place for place, end, _, _ in made.log.ends}
    begins = [0, commits[len(commits) // 3], commits[2 * len(commits) // 3]]
    places = [0, *(ends[begin] for begin in begins[1:]), len(made.log.data)]
    for number, begin in enumerate(begins[cut:], cut):
        data = bytes(made.log.data[places[number] : places[number + 1]])
        (directory / f"{begin:020d}.log").write_bytes(data)
    for end in (*begins[1:], commits[-2]):
        name, data = made.snapshot(end)
        (directory / name).write_bytes(data)
    return looked_at(find_nodes([directory])[0]), made

"""The log directories of three controllers, written by a test.

cluster = Cluster(tmp_path)
cluster.lead(1, 1)                  # node 1 leads epoch 1: a batch in all three logs
cluster.append(1, 2)                # a batch in two of them
cluster.looked_at()                 # as rdmeta.kraft looks at the directories
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from kraft_logs import LOG
from kraft_records import Given, Log, snapshot, snapshot_name, uuid_text

from rdmeta.kraft import NodeLog, find_nodes, looked_at

NOTHING: Given = ("NO_OP_RECORD", 0, {})


class Cluster:
    """Three controllers, of which a test writes the logs."""

    def __init__(self, directory: Path, voters: Sequence[int] = (1, 2, 3)) -> None:
        self.directory = directory
        self.voters = voters
        self.logs = {node: Log() for node in (1, 2, 3)}
        self.noted: dict[int, int | None] = {}  # the epochs of quorum-state

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

"""The log of one partition over several days, as the directories of nodes.

days = LogOfDays(3)                         # a change each hour, for three days
days.write(tmp_path / "n1", 1, cuts=(10,), snapshots=(20,))
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime, timedelta, timezone
from pathlib import Path

from kraft_logs import LOG

from rdmeta.generate.logs import Given, Log, snapshot, snapshot_name, uuid_text

FIRST = datetime(2026, 11, 22, 12, tzinfo=timezone.utc)
_ID = uuid_text(7)
_TOPIC: Given = ("TOPIC_RECORD", 0, {"name": "orders", "topicId": _ID})


def _partition(epoch: int) -> Given:
    lists = {"replicas": [1, 2], "isr": [1, 2], "removingReplicas": [], "addingReplicas": []}
    about = {"partitionId": 0, "topicId": _ID, "leader": 1 + epoch % 2}
    return (
        "PARTITION_RECORD",
        0,
        {**about, **lists, "leaderEpoch": epoch, "partitionEpoch": epoch},
    )


def _broker(node: int) -> Given:
    return (
        "REGISTER_BROKER_RECORD", 0,
        {
            "brokerId": node, "incarnationId": uuid_text(node), "brokerEpoch": node,
            "endPoints": [
                {"name": "A", "host": "h", "port": 9092, "securityProtocol": 0},
            ],
            "features": [], "rack": None, "fenced": False,
        },
    )  # fmt: skip


class LogOfDays:
    """A log that begins at noon: offset 0 elects node 1, 1 to 4 are the state, then one an hour.

    Offset 4 + n is the election with leader epoch n, n hours after noon of the first day.
    """

    def __init__(self, days: int, *, first: datetime = FIRST, epoch: int = 1) -> None:
        self.log = Log(epoch=epoch, time_ms=_ms(first))
        self._first, self._ends = first, dict[int, tuple[int, int]]()
        self.log.lead(epoch, 1)
        self.log.time_ms = _ms(first)
        self.log.append(_broker(1), _broker(2), _TOPIC, _partition(0))
        for hour in range(1, 24 * days - 12):
            self.elect(first + timedelta(hours=hour), hour)

    def elect(self, at: datetime, epoch: int) -> None:
        self.log.time_ms = _ms(at)
        about = {"partitionId": 0, "topicId": _ID, "leader": 1 + epoch % 2}
        self.log.append(("PARTITION_CHANGE_RECORD", 0, about))

    @property
    def end(self) -> int:
        return self.log.end

    def segment(self, first: int = 0, end: int | None = None) -> bytes:
        """Returns the batches from an offset to before another one."""
        last = self.end if end is None else end
        places = {0: 0, **{behind: byte for byte, behind, *_ in self.log.ends}}
        return bytes(self.log.data[places[first] : places[last]])

    def snapshot(self, end: int) -> bytes:
        ((time_ms, epoch),) = (each[2:] for each in self.log.ends if each[1] == end)
        state = [_broker(1), _broker(2), _TOPIC, _partition(end - 5)]
        return snapshot(state, epoch, time_ms)

    def write(
        self,
        parent: Path,
        node: int,
        *,
        cuts: Iterable[int] = (),
        snapshots: Iterable[int] = (),
        first: int = 0,
        end: int | None = None,
    ) -> Path:
        """Writes a node's directory: segments that begin at `first` and `cuts`, and snapshots."""
        directory = parent / LOG
        directory.mkdir(parents=True, exist_ok=True)
        begins = [first, *cuts]
        last = self.end if end is None else end
        for begin, behind in zip(begins, [*begins[1:], last], strict=True):
            (directory / f"{begin:020d}.log").write_bytes(self.segment(begin, behind))
        for each in snapshots:
            name = snapshot_name(each, self.log.epoch)
            (directory / name).write_bytes(self.snapshot(each))
        about = f"node.id={node}\ncluster.id=c\ndirectory.id={uuid_text(node)}\n"
        (parent / "meta.properties").write_text(about)
        noted = {"leaderId": -1, "leaderEpoch": self.log.epoch, "votedId": -1, "data_version": 1}
        (directory / "quorum-state").write_text(json.dumps(noted))
        return directory


def _ms(time: datetime) -> int:
    return round(time.timestamp() * 1000)

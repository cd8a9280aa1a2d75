"""The records of a metadata log, chosen and read one after the other."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from rdmeta._core import kraft_types
from rdmeta._moments import nearest_moment
from rdmeta.errors import ArgumentError
from rdmeta.kraft.log_files import DamagedBatchError
from rdmeta.kraft.log_state import as_json

if TYPE_CHECKING:
    import pyarrow as pa

    from rdmeta.kraft.log_reader import KraftLog


class Record(NamedTuple):
    """One record of the log. `data` has its fields as Kafka's DumpLogSegments prints them.

    `type` is a name, or a number where it is unknown: then `data` has the value in base64 as `raw`.
    `topic` is the name that the record's topic had then, None if it is about none.
    """

    offset: int
    epoch: int
    time: datetime
    type: str | int
    version: int
    data: dict[str, Any]
    topic: str | None = None


def types_of(types: Collection[str | int]) -> tuple[set[int], set[int]]:
    """Returns api keys, and the types of control records, by names or numbers.

    A name is Kafka's, in any case, also without its RECORD: "PARTITION_RECORD", "topic",
    "leader-change". Numbers are api keys. ArgumentError for other names.
    """
    keys: set[int] = set()
    controls: set[int] = set()
    for each in types:
        if isinstance(each, int) or each.isdecimal():
            if not 0 <= int(each) < 64:
                raise ArgumentError(f"types of records are 0 to 63, not {each}")
            keys.add(int(each))
            continue
        name = each.upper().replace("-", "_")
        found = _types().get(name) or _types().get(f"{name}_RECORD")
        if found is None:
            known = "names are those of kafka-dump-log, such as PARTITION_RECORD"
            raise ArgumentError(f"no type of records is called {each!r}; {known}")
        (controls if found[0] else keys).add(found[1])
    return keys, controls


@cache
def _types() -> dict[str, tuple[bool, int]]:
    return kraft_types()


class Records:
    """The records of the offsets `since` to before `until` that were asked for, in their order.

        for record in log.records(types=["partition_change"], topic="orders"):
            print(record.offset, record.time, record.data)

    Each walk reads the log anew. `proven` says whether all of them are committed. `partial` says,
    behind a walk, that records were unknown or passed over; `faults` names them. `lines()` has
    them as JSON.
    """

    def __init__(self, log: KraftLog, since: int, until: int, **wanted: Any) -> None:
        self._log = log
        self._wanted = wanted
        self.since = since
        self.until = until
        self.proven = until <= log.proven
        self.faults: tuple[str, ...] = ()

    @property
    def partial(self) -> bool:
        return bool(self.faults)

    def lines(self) -> Iterator[bytes]:
        """Yields many records at a time, each as a line of JSON. Raises KraftError."""
        since = self.since
        made: list[bytes] = []

        def lines(data: bytes) -> int:
            text, used = replayed.replay.lines(data, since=since, until=until, **self._wanted)
            made.append(text)
            return used

        while True:
            until = min(self.until, self._log.end)
            replayed = self._log.again(lambda: self._log.replay(since, until))  # noqa: B023
            try:
                for _ in replayed.steps((1 << 63) - 1, apply=lines):
                    yield from filter(None, made)
                    made.clear()
            except DamagedBatchError as error:
                yield from filter(None, made)
                made.clear()
                if not self._log.leave_out(error):
                    raise
                since = max(since, replayed.next)
            else:
                break
        replayed.require(until)
        self.faults = replayed.faults

    def __iter__(self) -> Iterator[Record]:
        for text in self.lines():
            for line in text.splitlines():
                yield record_of(line)

    def to_arrow(self) -> pa.Table:
        """Returns the records as Arrow; `data` is JSON. MissingExtraError without pyarrow."""
        from rdmeta.kraft.log_tables import table_of

        return table_of("records", self._rows())

    def _rows(self) -> Iterator[tuple[Any, ...]]:
        cluster_id = self._log.cluster_id
        for offset, epoch, time, type, version, data, topic in self:
            broker = data.get("brokerId")
            if broker is None and type in ("FENCE_BROKER_RECORD", "UNFENCE_BROKER_RECORD"):
                broker = data["id"]
            about = topic, data.get("topicId"), data.get("partitionId"), broker
            yield (cluster_id, offset, epoch, time, str(type), version, *about, as_json(data))


def record_of(line: bytes) -> Record:
    """Returns the record of a line of JSON."""
    found = json.loads(line)
    data = found["data"] if "data" in found else {"raw": found["raw"]}
    time = nearest_moment(1000 * found["time"])
    type, version = found["type"], found["version"]
    return Record(found["offset"], found["epoch"], time, type, version, data, found.get("topic"))

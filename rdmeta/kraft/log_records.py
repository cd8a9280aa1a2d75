"""A record of a metadata log, and the names of the types of records."""

from __future__ import annotations

import json
from collections.abc import Collection
from datetime import datetime
from functools import cache
from typing import Any, NamedTuple

from rdmeta._core import kraft_types
from rdmeta._moments import nearest_moment
from rdmeta.errors import ArgumentError


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


def record_of(line: bytes) -> Record:
    """Returns the record of a line of JSON."""
    found = json.loads(line)
    data = found["data"] if "data" in found else {"raw": found["raw"]}
    time = nearest_moment(1000 * found["time"])
    type, version = found["type"], found["version"]
    return Record(found["offset"], found["epoch"], time, type, version, data, found.get("topic"))

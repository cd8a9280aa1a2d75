"""The days that whole parts have after a run that ended without its manifest.

A kill between the renames of a period and the manifest leaves days that only the parts tell of. If
their input goes away before the next run, these parts are all there is: the next run keeps them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from rdmeta.pipeline.layout import SILVER, Parts, table_file
from rdmeta.pipeline.manifest import DayRecord
from rdmeta.pipeline.store import Store
from rdmeta.pipeline.tables import made_from, rows_of_days
from rdmeta.pipeline.work import VERSIONS, tables_of

__all__ = ["days_of_parts"]

_OF_DAYS = "observation"


def days_of_parts(
    out: Store, names: Iterable[str], parts: Mapping[str, Parts]
) -> dict[str, dict[str, DayRecord]]:
    """Returns the days by cluster that all tables of a period have; `names` are the files of `out`.

    A day that some of the tables lack is none: the run that made it was killed between them.
    """
    found: dict[str, dict[str, DayRecord]] = {}
    for name in sorted(names):
        if not name.startswith(f"{SILVER}/{_OF_DAYS}/"):
            continue
        footer = _footer(out, name)
        cluster_id, period = str(footer.get("cluster_id")), str(footer.get("period"))
        if cluster_id not in parts:
            continue
        buckets = parts[cluster_id].buckets
        if name != table_file(_OF_DAYS, cluster_id, period, 0, buckets):
            continue
        digests = _whole_days(out, cluster_id, period, buckets)
        for day, rows in rows_of_days(out, name, sorted(digests)):
            found.setdefault(cluster_id, {})[day] = DayRecord(digests[day], _origins(rows))
    return found


def _whole_days(out: Store, cluster_id: str, period: str, buckets: int) -> dict[str, str]:
    """Returns the days that each part of a period has, with their digests in the first bucket."""
    whole: dict[str, str] = {}
    for bucket in range(buckets):
        each: list[dict[str, str]] = [
            _footer(out, table_file(table, cluster_id, period, bucket, buckets)).get("days", {})
            for table in tables_of(bucket)
        ]
        same = dict(set(each[0].items()).intersection(*(days.items() for days in each)))
        whole = same if bucket == 0 else {day: whole[day] for day in whole if day in same}
    return whole


def _footer(out: Store, name: str) -> dict[str, Any]:
    """Returns what a part says it was made from, nothing if these versions did not make it."""
    text = made_from(out, name)
    footer: dict[str, Any] = {} if text is None else json.loads(text)
    return footer if footer.get("versions") == VERSIONS else {}


def _origins(rows: pa.Table) -> dict[str, int]:
    """Returns until when each origin told of a day, as the manifest has it."""
    times = pc.cast(rows["seen_to"], "int64").to_pylist()
    return dict(zip(rows["origin"].to_pylist(), times, strict=True))

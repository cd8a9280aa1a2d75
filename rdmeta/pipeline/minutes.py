"""`leader_minutes`: how long each broker led, summed over partitions, from silver.

A file of sums keeps how long each broker led each partition, with the names and digests of the
parts that are in the sums. One more day then reads that file and the new part alone.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rdmeta.pipeline.layout import leader_minutes_file, leader_sums_file
from rdmeta.pipeline.place import Draft, Place

__all__ = ["draft_leader_minutes"]

_COLUMNS = ["leader", "topic", "topic_id", "partition", "us"]
_PARTITION = _COLUMNS[:-1]
# To keep sums of fewer parts than this takes longer than to read the parts.
_MANY = 4
_SUMMED = "rdmeta.summed"
_SCHEMA = pa.schema(
    [
        ("cluster_id", pa.string()),
        ("broker", pa.int32()),
        ("minutes", pa.float64()),
        ("share", pa.float64()),
        ("partitions", pa.int64()),
    ]
)


def draft_leader_minutes(out: Place, cluster_id: str, parts: Mapping[str, str]) -> list[Draft]:
    """Makes a cluster's file, and its sums if it has many parts; the caller commits both.

    `parts` are the names of the parts of its partition_interval, with their digests. A null broker
    stands for time without a leader. `minutes` are partition-minutes, `share` is their share of the
    cluster's, null if it has none. `partitions` counts those that the broker led at any time.
    Raises OSError.
    """
    sums = []
    before = _read_sums(out, cluster_id) if len(parts) >= _MANY else None
    summed: Mapping[str, str] = {}
    if before is not None and before[1].items() <= parts.items():
        sums, summed = [before[0]], before[1]
    for name in parts:
        if name not in summed:
            with out.opened(name) as stream:
                sums.append(_summed(pq.read_table(stream, columns=_COLUMNS)))
    led = _summed(pa.concat_tables(sums)) if sums else None
    tables = {leader_minutes_file(cluster_id): _minutes(cluster_id, led)}
    if led is not None and len(parts) >= _MANY:
        order = [(name, "ascending") for name in _PARTITION]
        metadata = {_SUMMED: json.dumps(dict(parts), sort_keys=True)}
        kept = led.sort_by(order).replace_schema_metadata(metadata)
        tables[leader_sums_file(cluster_id)] = kept
    return _drafts(out, tables)


def _drafts(out: Place, tables: Mapping[str, pa.Table]) -> list[Draft]:
    drafts: list[Draft] = []
    try:
        for name, table in tables.items():
            draft = out.draft(name)
            drafts.append(draft)
            is_checked = table.schema.metadata is not None  # damaged sums would show nowhere else
            with draft.naming():
                pq.write_table(
                    table, draft.path, compression="zstd", write_page_checksum=is_checked
                )
    except BaseException:
        for draft in drafts:
            draft.drop()
        raise
    return drafts


def _read_sums(out: Place, cluster_id: str) -> tuple[pa.Table, dict[str, str]] | None:
    """Returns the sums and the parts that are in them; None if they are not there or damaged."""
    try:
        with out.opened(leader_sums_file(cluster_id)) as stream:
            table = pq.read_table(stream, page_checksum_verification=True)
        parts: dict[str, str] = json.loads(table.schema.metadata[_SUMMED.encode()])
        return table.select(_COLUMNS).replace_schema_metadata(), parts
    except (pa.ArrowException, OSError, ValueError, KeyError, TypeError):
        return None


def _summed(rows: pa.Table) -> pa.Table:
    found = rows.group_by(_PARTITION, use_threads=False).aggregate([("us", "sum")])
    return found.rename_columns([*_PARTITION, "us"]).select(_COLUMNS)


def _minutes(cluster_id: str, led: pa.Table | None) -> pa.Table:
    if led is None or led.num_rows == 0:
        return _SCHEMA.empty_table()
    found = (
        led.group_by("leader", use_threads=False)
        .aggregate([("us", "sum"), ([], "count_all")])
        .sort_by("leader")
    )
    minutes = pc.divide(pc.cast(found["us_sum"], pa.float64()), 60e6)
    whole = pc.sum(minutes).as_py()
    share = pc.divide(minutes, whole) if whole else pa.nulls(found.num_rows, pa.float64())
    clusters = pa.array([cluster_id] * found.num_rows, pa.string())
    columns = [clusters, found["leader"], minutes, share, found["count_all"]]
    return pa.table(columns, schema=_SCHEMA)

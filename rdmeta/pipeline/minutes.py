"""`leader_minutes`: how long each broker led, summed over partitions, from silver."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rdmeta.pipeline.layout import leader_minutes_file
from rdmeta.pipeline.place import Draft, Place

__all__ = ["draft_leader_minutes"]

_COLUMNS = ["leader", "topic", "topic_id", "partition", "us"]
_PARTITION = _COLUMNS[:-1]
_SCHEMA = pa.schema(
    [
        ("cluster_id", pa.string()),
        ("broker", pa.int32()),
        ("minutes", pa.float64()),
        ("share", pa.float64()),
        ("partitions", pa.int64()),
    ]
)


def draft_leader_minutes(out: Place, cluster_id: str, parts: Iterable[str]) -> Draft:
    """Makes a cluster's part from the parts of its partition_interval; the caller commits it.

    A null broker stands for time without a leader. `minutes` are partition-minutes, `share` is
    their share of the cluster's, null if it has none. `partitions` counts those that the broker led
    at any time. Raises OSError.
    """
    sums = []
    for name in parts:
        with out.opened(name) as stream:
            sums.append(_summed(pq.read_table(stream, columns=_COLUMNS), "us"))
    led = _summed(pa.concat_tables(sums), "us") if sums else None
    draft = out.draft(leader_minutes_file(cluster_id))
    try:
        pq.write_table(_minutes(cluster_id, led), draft.path, compression="zstd")
    except BaseException:
        draft.drop()
        raise
    return draft


def _summed(rows: pa.Table, what: str) -> pa.Table:
    found = rows.group_by(_PARTITION, use_threads=False).aggregate([(what, "sum")])
    return found.rename_columns([*_PARTITION, "us"])


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

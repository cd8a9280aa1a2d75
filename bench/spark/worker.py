"""Makes intervals of a history: `python -m bench.spark.worker WAY HISTORY OUT`.

It prints one JSON object: seconds without imports and start-up, the most MiB of this process, rows,
and the microseconds of all intervals. `fold1` has one thread; all others have two. The queries of
DuckDB and polars are for the bench's histories: these have one recording of a cluster, which begins
at a midnight and ends within the day. No two states in a row are equal. The queries make the fold's
columns without racks, min ISR and those that a log fills.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from bench.figure import Missing
from rdmeta._change_table import END_KINDS, WHOLE_KINDS

if TYPE_CHECKING:
    import polars as pl

SESSION = ("cluster_id", "session")
KEYS = (*SESSION, "topic", "partition")
# The parts of a partition's state, with the kinds of change that tell them.
PARTS = {
    "led": (("new_leader", "new_leader_epoch"), ("leader_changed", "leader_epoch_changed")),
    "synced": (("new_isr",), ("isr_changed",)),
    "placed": (("new_replicas",), ("replicas_changed",)),
    "lost": (("new_offline",), ("offline_changed",)),
}
# The fold reads these for other tables only, or knows them already.
NOT_OF_INTERVALS = (
    *SESSION,
    "source_broker",
    *(f"old_{n}" for n in ("leader", "leader_epoch", "isr", "replicas", "offline")),
)
STATES = (*WHOLE_KINDS, *(kind for _, kinds in PARTS.values() for kind in kinds))
MADE = {
    "new_leader": "leader",
    "new_leader_epoch": "leader_epoch",
    "new_isr": "isr",
    "new_replicas": "replicas",
    "new_offline": "offline",
}

QUERY = """
copy (
    with changes as (
        from read_parquet({files}, hive_partitioning = false)
    ), ends as (
        select * exclude (partition) from changes where partition is null and kind in {ends}
    ), known as (
        select distinct {keys} from changes semi join ends using ({session}, topic)
        where partition is not null
    ), events as (
        select {keys}, version, observed_at, topic_id, false as cut,
            if(version = 1, 'midnight', kind) as reason, {parts}
        from changes where partition is not null and kind in {states}
        union all by name
        select {keys}, version, observed_at, topic_id, true as cut, kind as reason
        from ends join known using ({session}, topic)
    ), ended as (
        select {session}, max(observed_at) as seen_to from changes group by all
    ), carried as (
        select {keys}, version, topic_id, cut, observed_at as began_at, reason as began_by,
            {carried},
            lead(observed_at) over w as next_at, lead(reason) over w as next_by
        from events window w as (partition by {keys} order by version)
    )
    select {keys}, version, topic_id, led.new_leader as leader,
        led.new_leader_epoch as leader_epoch, list_sort(synced.new_isr) as isr,
        placed.new_replicas as replicas, list_sort(lost.new_offline) as offline, began_at,
        coalesce(next_at, seen_to) as ended_at, began_by, coalesce(next_by, 'open') as ended_by
    from carried join ended using ({session}) where not cut
) to '{out}' (format parquet, compression zstd)
"""


def by_fold(threads: int, history: str, out: str) -> float:
    import pyarrow as pa
    import pyarrow.parquet as pq

    import rdmeta
    from rdmeta import history as recorded
    from rdmeta.pipeline.store import Store
    from rdmeta.pipeline.tables import TableWriter

    def one(number: int, recording: recorded.Recording) -> None:
        fold = rdmeta.Fold(recording.cluster_id, recording.session)
        writer = TableWriter(Store(out), f"{number}.parquet", "partition_interval", "{}")

        def write() -> None:
            writer.write("2026-11-01", pa.table(fold.take("partition_interval")))
            for table in ("leader_change", "change"):
                fold.take(table)

        for file in recording.files:
            source = pq.ParquetFile(file.path)
            names = [n for n in source.schema_arrow.names if n not in NOT_OF_INTERVALS]
            for batch in source.iter_batches(131_072, columns=names, use_threads=False):
                fold.add(batch)
                write()
        fold.end(fold.stats()["last_at"], "open")
        write()
        writer.close()
        writer.draft.commit()

    begin = perf_counter()
    Path(out).mkdir()
    found = recorded.recordings(history)
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(one, range(len(found)), found))
    return perf_counter() - begin


def by_duckdb(history: str, out: str) -> float:
    import duckdb

    parts, carried = [], []
    for part, (columns, kinds) in PARTS.items():
        of = ", ".join(f"'{column}': {column}" for column in columns)
        parts.append(f"if(kind in {(*WHOLE_KINDS, *kinds)}, {{{of}}}, null) as {part}")
        carried.append(f"last_value({part} ignore nulls) over w as {part}")
    query = QUERY.format(
        keys=", ".join(KEYS),
        session=", ".join(SESSION),
        files=_files(history),
        ends=tuple(END_KINDS),
        states=STATES,
        parts=", ".join(parts),
        carried=", ".join(carried),
        out=out,
    )
    begin = perf_counter()
    with duckdb.connect() as connection:
        connection.execute("set threads = 2")
        connection.execute(query)
    return perf_counter() - begin


def by_polars(history: str, out: str) -> float:
    import polars as pl

    begin = perf_counter()
    names = [*KEYS, "version", "observed_at", "kind", "topic_id", *MADE]
    rows = pl.read_parquet(_files(history), columns=names, hive_partitioning=False)
    ended = rows.group_by(SESSION).agg(pl.col("observed_at").max().alias("seen_to"))
    no_partition = pl.col("partition").is_null()
    ends = rows.filter(no_partition & pl.col("kind").is_in(END_KINDS)).drop("partition")
    states = rows.filter(~no_partition & pl.col("kind").is_in(STATES))
    topics = [*SESSION, "topic"]
    known = states.join(ends, on=topics, how="semi").select(KEYS).unique()
    events = pl.concat([states, ends.join(known, on=topics).select(names)])
    # To sort numbers takes a tenth of the time of sorting names. In the order of partitions and
    # versions, the first row of each partition has its whole state.
    numbers = events.select(KEYS).unique().with_row_index("place")
    events = events.join(numbers, on=KEYS, how="left", maintain_order="left")
    store = pl.col("place").cast(pl.Int64)
    events = events[events.select((store * 2**32 + pl.col("version")).arg_sort()).to_series()]
    follows = pl.col("place") == pl.col("place").shift(-1)
    reason = pl.when(pl.col("version") == 1).then(pl.lit("midnight")).otherwise(pl.col("kind"))
    made = (
        events.lazy()
        .with_columns(began_by=reason, follows=follows.fill_null(False))
        .with_columns(*(_carried(*part) for part in PARTS.values()))
        .join(ended.lazy(), on=SESSION, how="left", maintain_order="left")
        .with_columns(
            pl.when("follows")
            .then(pl.col("observed_at").shift(-1))
            .otherwise("seen_to")
            .alias("ended_at"),
            pl.when("follows")
            .then(pl.col("began_by").shift(-1))
            .otherwise(pl.lit("open"))
            .alias("ended_by"),
        )
        .filter(pl.col("partition").is_not_null() & ~pl.col("kind").is_in(END_KINDS))
        .rename({**MADE, "observed_at": "began_at"})
        .with_columns(pl.col("isr").list.sort(), pl.col("offline").list.sort())
        .drop("follows", "seen_to", "kind", "place")
    )
    made.collect().write_parquet(out, compression="zstd")
    return perf_counter() - begin


def _carried(columns: tuple[str, ...], kinds: tuple[str, ...]) -> pl.Expr:
    """Returns the values of the last row that tells this part of the state."""
    import polars as pl

    tells = pl.col("kind").is_in((*WHOLE_KINDS, *kinds))
    last = pl.when(tells).then(pl.int_range(pl.len())).forward_fill()
    return pl.col(*columns).gather(last)


WAYS: dict[str, Callable[[str, str], float]] = {
    "fold": partial(by_fold, 2),
    "fold1": partial(by_fold, 1),
    "duckdb": by_duckdb,
    "polars": by_polars,
}


def _files(history: str) -> list[str]:
    return sorted(str(path) for path in Path(history).rglob("*.parquet"))


def main(way: str, history: str, out: str) -> None:
    try:
        seconds = WAYS[way](history, out)
    except Missing as reason:
        print(json.dumps({"missing": str(reason)}))
        return
    except ModuleNotFoundError as error:
        if error.name not in ("duckdb", "polars"):
            raise
        print(json.dumps({"missing": f"{error.name} is not installed"}))
        return
    status = Path("/proc/self/status").read_text(encoding="ascii")
    most = re.search(r"VmHWM:\s+(\d+) kB", status)
    mib = int(most[1]) / 1024 if most else 0
    rows, us = _sums(Path(out))
    print(json.dumps({"seconds": seconds, "mib": mib, "rows": rows, "us": us}))


def _sums(made: Path) -> tuple[int, int]:
    """Returns the number of the intervals, and their microseconds."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    rows = us = 0
    for path in sorted(made.glob("*.parquet")) if made.is_dir() else [made]:
        for batch in pq.ParquetFile(path).iter_batches(columns=["began_at", "ended_at"]):
            rows += batch.num_rows
            began, ended = (each.cast(pa.timestamp("us", "UTC")).cast(pa.int64()) for each in batch)
            us += pc.sum(pc.subtract(ended, began), min_count=0).as_py()
    return rows, us


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Makes intervals of a history with two threads: `python -m bench.spark.worker WAY HISTORY OUT`.

It prints one JSON object: seconds without imports and start-up, the most MiB of this process (of
windows: without Java), and rows. The queries of DuckDB and polars do less: no ends of topics, no
equal states, no overlaps.
"""

from __future__ import annotations

import json
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import perf_counter

from bench.build import ROOT
from bench.figure import Missing

KEYS = ("cluster_id", "session", "topic", "partition")
CARRIED = ("topic_id", "new_leader", "new_leader_epoch", "new_isr", "new_replicas", "new_offline")
QUERY = """
copy (
    with carried as (
        select {keys}, version, observed_at as began_at, kind as began_by, {values}
        from read_parquet({files}) where partition is not null
        window w as (partition by {keys} order by version)
    )
    select *, lead(began_at) over w as ended_at, lead(began_by) over w as ended_by
    from carried window w as (partition by {keys} order by version)
) to '{out}' (format parquet, compression zstd)
"""


def by_fold(history: str, out: str) -> float:
    import pyarrow as pa
    import pyarrow.parquet as pq

    import rdmeta
    from rdmeta import history as recorded

    def one(number: int, recording: recorded.Recording) -> None:
        fold = rdmeta.Fold(recording.cluster_id, recording.session)
        schema = pa.schema(fold.take("partition_interval"))
        with pq.ParquetWriter(Path(out, f"{number}.parquet"), schema, compression="zstd") as writer:
            for file in recording.files:
                source = pq.ParquetFile(file.path)
                names = [n for n in source.schema_arrow.names if n not in KEYS[:2]]
                for batch in source.iter_batches(131_072, columns=names, use_threads=False):
                    fold.add(batch)
                    writer.write_table(pa.table(fold.take("partition_interval")))
                    for table in ("leader_change", "change"):
                        fold.take(table)
            fold.end(fold.stats()["last_at"], "open")
            writer.write_table(pa.table(fold.take("partition_interval")))

    begin = perf_counter()
    Path(out).mkdir()
    found = recorded.recordings(history)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(one, range(len(found)), found))
    return perf_counter() - begin


def by_duckdb(history: str, out: str) -> float:
    import duckdb

    begin = perf_counter()
    with duckdb.connect() as connection:
        connection.execute("set threads = 2")
        values = ", ".join(f"last_value({name} ignore nulls) over w as {name}" for name in CARRIED)
        query = QUERY.format(keys=", ".join(KEYS), values=values, files=_files(history), out=out)
        connection.execute(query)
    return perf_counter() - begin


def by_polars(history: str, out: str) -> float:
    import polars as pl

    begin = perf_counter()
    keys = list(KEYS)
    rows = pl.scan_parquet(_files(history)).filter(pl.col("partition").is_not_null())
    kept = rows.select(*keys, "version", "observed_at", "kind", *CARRIED).with_columns(
        *(pl.col(name).forward_fill().over(keys) for name in CARRIED),
        pl.col("observed_at").shift(-1).over(keys).alias("ended_at"),
        pl.col("kind").shift(-1).over(keys).alias("ended_by"),
    )
    kept.collect().write_parquet(out, compression="zstd")
    return perf_counter() - begin


def by_windows(history: str, out: str) -> float:
    sys.path.insert(0, str(ROOT / "tests" / "support"))
    from window_intervals import load, partition_interval

    from bench.spark import sessions
    from rdmeta import history as recorded

    with sessions.local("local[2]") as session:
        session.range(1).collect()
        begin = perf_counter()
        changes, observed = load(session, recorded.recordings(history))
        partition_interval(changes, observed).write.parquet(out)
        return perf_counter() - begin


WAYS = {"fold": by_fold, "windows": by_windows, "duckdb": by_duckdb, "polars": by_polars}


def _files(history: str) -> list[str]:
    return sorted(str(path) for path in Path(history).rglob("*.parquet"))


def main(way: str, history: str, out: str) -> None:
    try:
        seconds = WAYS[way](history, out)
    except Missing as reason:
        print(json.dumps({"missing": str(reason)}))
        return
    except ModuleNotFoundError as error:
        print(json.dumps({"missing": f"{error.name} is not installed"}))
        return
    status = Path("/proc/self/status").read_text(encoding="ascii")
    most = re.search(r"VmHWM:\s+(\d+) kB", status)
    import pyarrow.parquet as pq

    made = sorted(Path(out).glob("*.parquet")) if Path(out).is_dir() else [Path(out)]
    rows = sum(pq.ParquetFile(path).metadata.num_rows for path in made)
    print(json.dumps({"seconds": seconds, "mib": int(most[1]) / 1024 if most else 0, "rows": rows}))


if __name__ == "__main__":
    main(*sys.argv[1:])

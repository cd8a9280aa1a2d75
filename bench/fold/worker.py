"""Makes intervals of a file of changes: `python -m bench.fold.worker WAY CHANGES OUT`.

It prints one JSON object: seconds, the most MiB of memory, and rows. Both ways use one thread.
DuckDB's query is the same without midnights, ends of topics and equal states.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from time import perf_counter

QUERY = """
copy (
    with carried as (
        select topic, partition, version, observed_at as began_at,
            if(version = 1, 'baseline', kind) as began_by,
            last_value(topic_id ignore nulls) over w as topic_id,
            last_value(new_leader ignore nulls) over w as leader,
            last_value(new_leader_epoch ignore nulls) over w as leader_epoch,
            last_value(list_sort(new_isr) ignore nulls) over w as isr,
            last_value(new_replicas ignore nulls) over w as replicas
        from read_parquet('{changes}') where partition is not null
        window w as (partition by topic, partition order by version)
    )
    select *, lead(began_at) over w as ended_at, lead(began_by) over w as ended_by
    from carried window w as (partition by topic, partition order by version)
) to '{out}' (format parquet, compression zstd)
"""


def by_fold(changes: str, out: str) -> float:
    """Returns the seconds, without those of the imports, as by_duckdb() does."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    import rdmeta

    begin = perf_counter()
    pa.set_cpu_count(1)
    fold = rdmeta.Fold("cluster", "session")
    schema = pa.schema(fold.take("partition_interval"))
    with pq.ParquetWriter(out, schema, compression="zstd") as writer:

        def write() -> None:
            writer.write_table(pa.table(fold.take("partition_interval")), row_group_size=122_880)
            for table in ("leader_change", "change"):
                fold.take(table)

        file = pq.ParquetFile(changes)
        # A fold knows its cluster and its recording.
        columns = [
            name for name in file.schema_arrow.names if name not in ("cluster_id", "session")
        ]
        for batch in file.iter_batches(131_072, columns=columns, use_threads=False):
            fold.add(batch)
            write()
        last = fold.stats()["last_at"]
        fold.end(last, "open")
        write()
    return perf_counter() - begin


def by_duckdb(changes: str, out: str) -> float:
    import duckdb

    begin = perf_counter()
    with duckdb.connect() as connection:
        connection.execute("set threads = 1")
        connection.execute(QUERY.format(changes=changes, out=out))
    return perf_counter() - begin


WAYS = {"fold": by_fold, "duckdb": by_duckdb}


def main(way: str, changes: str, out: str) -> None:
    seconds = WAYS[way](changes, out)
    # The kernel's ru_maxrss would also have the memory of the process that started this one.
    status = Path("/proc/self/status").read_text(encoding="ascii")
    most = re.search(r"VmHWM:\s+(\d+) kB", status)
    import pyarrow.parquet as pq

    found = {
        "seconds": seconds,
        "mib": int(most[1]) / 1024 if most else 0,
        "rows": pq.ParquetFile(out).metadata.num_rows,
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])

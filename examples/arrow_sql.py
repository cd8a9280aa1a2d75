"""Metadata as tables: through the Arrow C data interface into polars, DuckDB and pyarrow."""

import duckdb
import polars as pl
import pyarrow as pa

import rdmeta

with rdmeta.EmbeddedCluster(brokers=3) as cluster:
    for team in range(5):
        cluster.create_topic(f"team-{team}", partitions=8, replication_factor=2)
    cache = rdmeta.MetadataCache()
    rdmeta.fetch(cache, cluster.bootstrap)

    partitions = pl.DataFrame(cache.to_arrow("partitions"))
    print(partitions.group_by("leader").len().sort("leader"))

    replicas = pa.RecordBatchReader.from_stream(cache.to_arrow("replicas")).read_all()
    skew = duckdb.sql("SELECT broker, count(*) AS count FROM replicas GROUP BY ALL ORDER BY ALL")
    print(skew)
    assert sum(count for _, count in skew.fetchall()) == 5 * 8 * 2

    version = cache.version
    cluster.set_leader("team-0", 0, 3)
    rdmeta.fetch(cache, cluster.bootstrap)
    print(pa.table(cache.changes(version).to_arrow()).select(["topic", "old_leader", "new_leader"]))

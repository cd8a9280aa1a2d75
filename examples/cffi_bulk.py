"""A million lookups in one call through cffi, from an Arrow column into an Arrow column."""

import time

import numpy as np
import pyarrow as pa

import rdmeta
from rdmeta.ffi import leaders, lib, now, prepare, reader

ROWS = 1_000_000

with rdmeta.EmbeddedCluster(brokers=3) as cluster:
    for team in range(10):
        cluster.create_topic(f"team-{team}", partitions=4, replication_factor=3)
    cache = rdmeta.MetadataCache()
    rdmeta.fetch(cache, cluster.bootstrap)

    r = reader(cache)  # for one thread, on the live cache
    assert lib.rdmeta_leader(r, b"team-3", 6, 0, now().mono_us) == cache.leader("team-3", 0)

    draw = np.random.default_rng(1)
    names = pa.array([f"team-{i}" for i in range(10)])
    topics = prepare(pa.DictionaryArray.from_arrays(draw.integers(0, 10, ROWS), names))
    partitions = draw.integers(0, 4, ROWS, dtype=np.int32)
    found = np.empty(ROWS, np.int32)

    start = time.perf_counter()
    leaders(r, topics, partitions, out=found)
    print(f"{(time.perf_counter() - start) * 1e9 / ROWS:.1f} ns per row")
    print(pa.array(found).value_counts().to_pylist())

    cluster.set_leader("team-0", 0, 2)
    rdmeta.fetch(cache, cluster.bootstrap)  # the same query on the new state
    leaders(r, topics, partitions, out=found)
    print(pa.array(found).value_counts().to_pylist())

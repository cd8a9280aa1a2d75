"""Find a leader millions of times a second: one call into C, no lock, no objects."""

import time

import rdmeta

with rdmeta.EmbeddedCluster(brokers=3) as cluster:
    cluster.create_topic("orders", partitions=6, replication_factor=3)
    cache = rdmeta.MetadataCache()
    rdmeta.fetch(cache, cluster.bootstrap)

    leader = cache.leader  # bound once, like any hot method
    start = time.perf_counter()
    for _ in range(1_000_000):
        leader("orders", 3)
    print(f"leader(): {(time.perf_counter() - start) * 1000:.0f} ns with the loop")

    # A handle stays right when the topic is refreshed, deleted or created again.
    orders = cache.resolve("orders")
    partition = orders.partition_for(b"customer-7")  # as Kafka's Java producer computes it
    assert orders.leader(partition) == cache.leader("orders", partition)

    # An unknown topic raises an error, or returns the caller's default.
    assert cache.leader("payments", 0, None) is None
    try:
        cache.leader("payments", 0)
    except rdmeta.NotCachedError as error:
        print(f"{error}; ask for it: {cache.hint(['payments'])}")

"""pip install --no-build-isolation . && python use.py"""

from array import array

from router import Router

import rdmeta

with rdmeta.EmbeddedCluster(brokers=3) as cluster:
    cluster.create_topic("orders", partitions=6, replication_factor=3)
    cache = rdmeta.MetadataCache()
    rdmeta.fetch(cache, cluster.bootstrap)
    router = Router(cache)
    records = array("i", [i % 6 for i in range(600_000)])
    found = {broker: router.count(b"orders", records, broker) for broker in (1, 2, 3)}
    print(found)
    leaders = [cache.leader("orders", partition) for partition in range(6)]
    assert found == {broker: leaders.count(broker) * 100_000 for broker in (1, 2, 3)}

    for partition in range(6):
        cluster.set_leader("orders", partition, 2)
    rdmeta.fetch(cache, cluster.bootstrap)
    assert router.count(b"orders", records, 2) == 600_000  # it is the live cache

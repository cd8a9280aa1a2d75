"""pip install --no-build-isolation . && python use.py"""

import routes

import rdmeta

with rdmeta.EmbeddedCluster(brokers=3) as cluster:
    cluster.create_topic("orders", partitions=6, replication_factor=3)
    cache = rdmeta.MetadataCache()
    rdmeta.fetch(cache, cluster.bootstrap)
    print({broker: routes.count_led(cache, "orders", broker) for broker in (1, 2, 3)})
    assert sum(routes.count_led(cache, "orders", broker) for broker in (1, 2, 3)) == 6

    for partition in range(6):
        cluster.set_leader("orders", partition, 2)
    rdmeta.fetch(cache, cluster.bootstrap)
    assert routes.count_led(cache, "orders", 2) == 6  # it is the live cache

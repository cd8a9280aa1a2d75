"""python feed.py FILE: saves an image. Readers of FILE, in any language, see the new file."""

import sys

import rdmeta

with rdmeta.EmbeddedCluster(brokers=3) as cluster:
    cluster.create_topic("orders", partitions=6, replication_factor=3)
    cache = rdmeta.MetadataCache()
    rdmeta.fetch(cache, cluster.bootstrap)
    cache.image().save(sys.argv[1])

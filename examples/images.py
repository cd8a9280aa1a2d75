"""One process feeds a cache and every process of the host reads it; images keep a state."""

import os
import subprocess
import sys
import tempfile
import time

import rdmeta

WORKER = """
import sys, time, rdmeta
shared = rdmeta.attach(sys.argv[1])          # no connection, no thread: the file is mapped
while shared.leader("orders", 0) != 3:       # a new state appears by itself
    time.sleep(0.001)
print("a worker sees broker 3")
"""

with rdmeta.EmbeddedCluster(brokers=3) as cluster, tempfile.TemporaryDirectory() as directory:
    path = os.path.join(directory, "metadata.img")
    cluster.create_topic("orders", partitions=2, replication_factor=3)
    cache = rdmeta.MetadataCache()
    rdmeta.fetch(cache, cluster.bootstrap)
    before = cache.image()  # shares its memory with the cache, and never changes

    with cache.publish(path):
        while not os.path.exists(path):
            time.sleep(0.01)
        workers = [subprocess.Popen([sys.executable, "-c", WORKER, path]) for _ in range(2)]
        cluster.set_leader("orders", 0, 3)
        rdmeta.fetch(cache, cluster.bootstrap)
        assert [worker.wait(30) for worker in workers] == [0, 0]

    for change in before.diff(cache.image()):
        print(change.kind, change.partition, change.old_leader, "->", change.new_leader)
    assert rdmeta.Image.open(path).leader("orders", 0) == 3  # needs no feeder

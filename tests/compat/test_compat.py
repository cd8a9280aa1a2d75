"""The compat classes work without the libraries that they imitate."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys
for name in ("kafka", "aiokafka", "confluent_kafka"):
    sys.modules[name] = None
sys.path.insert(0, "tests/support")
import frames, rdmeta
from rdmeta.compat import aiokafka, confluent, kafka_python
cache = rdmeta.MetadataCache(negative_ttl=60)
for name in ("orders", "gone"):
    topic = frames.T(name, error=3 if name == "gone" else 0)
    cache.apply(frames.response(12, topics=[topic]), 12, [name])
theirs = kafka_python.ClusterMetadata(cache)
print(theirs.brokers()[0].node_id, theirs.partitions_for_broker(1))
print(theirs.add_topic("more"))
ours = aiokafka.ClusterMetadata(cache)
first = rdmeta.TopicPartition("orders", 0)
print(sorted(ours.brokers())[0].nodeId, ours.leader_for_partition(first))
found = confluent.list_topics(cache)
print(found.topics["orders"].partitions[0].leader, found.brokers[2].port)
print(confluent.list_topics(cache, "gone").topics["gone"].error)
"""


def test_the_compat_classes_work_without_their_libraries() -> None:
    ran = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    lines = ran.stdout.splitlines()
    assert lines[0] == "1 {TopicPartition(topic='orders', partition=0)}"
    assert "Future" in lines[1]
    assert lines[2:] == ["1 1", "1 9092", "UNKNOWN_TOPIC_OR_PARTITION"]

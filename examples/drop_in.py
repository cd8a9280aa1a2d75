"""Code that was written for another client, unchanged, over the cache of rdmeta."""

from kafka.structs import TopicPartition  # of kafka-python itself

import rdmeta
from rdmeta.compat.confluent import list_topics
from rdmeta.compat.kafka_python import ClusterMetadata

with rdmeta.EmbeddedCluster(brokers=3) as brokers:
    brokers.create_topic("orders", partitions=6, replication_factor=3)
    cache = rdmeta.MetadataCache()
    rdmeta.fetch(cache, brokers.bootstrap)

    # kafka-python: `.cluster` of a KafkaClient (aiokafka's is in rdmeta.compat.aiokafka)
    cluster = ClusterMetadata(cache)
    assert cluster.partitions_for_topic("orders") == set(range(6))
    leader = cluster.leader_for_partition(TopicPartition("orders", 0))
    print("kafka-python:", cluster.broker_metadata(leader))

    # confluent-kafka: the result of Producer.list_topics()
    found = list_topics(cache, "orders")
    partition = found.topics["orders"].partitions[0]
    print("confluent-kafka:", partition.leader, partition.replicas, found.brokers[leader])
    assert partition.leader == leader

    # Both see what the cache learns, whatever feeds it.
    brokers.set_leader("orders", 0, leader % 3 + 1)
    rdmeta.fetch(cache, brokers.bootstrap)
    assert cluster.leader_for_partition(TopicPartition("orders", 0)) == leader % 3 + 1

"""The metadata classes of other Kafka clients, on top of a cache of rdmeta.

    from rdmeta.compat.kafka_python import ClusterMetadata    # like kafka.cluster's
    from rdmeta.compat.aiokafka import ClusterMetadata        # like aiokafka.cluster's
    from rdmeta.compat.confluent import list_topics           # like confluent_kafka's clients'

Each takes a cache, an image or a reader from `rdmeta.attach`. It returns the library's own types
if the library is installed, otherwise tuples and objects with the same attributes.

They are for code that asks `client.cluster` or a client's `list_topics()`. The clients themselves
cannot use them. The network code of kafka-python and aiokafka drives an object of its own and uses
its private attributes. The metadata of librdkafka is in C.
"""

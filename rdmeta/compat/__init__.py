"""The shapes that other clients' users know, over a cache of rdmeta.

    from rdmeta.compat.kafka_python import ClusterMetadata    # as kafka.cluster has it
    from rdmeta.compat.aiokafka import ClusterMetadata        # as aiokafka.cluster has it
    from rdmeta.compat.confluent import list_topics           # as confluent_kafka's clients have it

Each takes a cache, an image or what `rdmeta.attach` gives, and hands out the library's own types
where it is installed, tuples and objects with the same attributes where it is not.

They are for code that asks `client.cluster` or a client's `list_topics()`. The clients themselves
cannot be given them: the network code of kafka-python and aiokafka drives an object of its own, of
which it uses what is not public, and librdkafka's metadata is in C.
"""

"""Keep a cache true: a client asks at start, at an interval, and when something is wrong."""

import rdmeta


def show(changes: rdmeta.Changes) -> None:
    """Prints the changes of leaders; the client calls it in a thread of its own."""
    for change in changes:
        if change.kind == "leader_changed":
            print(f"{change.topic}[{change.partition}] went to broker {change.new_leader}")


with rdmeta.EmbeddedCluster(brokers=3) as cluster:
    cluster.create_topic("orders", partitions=6, replication_factor=3)
    cluster.set_leader("orders", 3, 1)

    conf = {"bootstrap.servers": cluster.bootstrap, "retry.backoff.max.ms": 500}
    with rdmeta.Client(conf) as client:
        client.on_change(show)
        # It asks for a topic that the cache lacks; later calls read the cache.
        print("leader of orders[3]:", client.leader("orders", 3, timeout=5))

        # The leader moves. A producer hears of it in an answer, and says so: the client asks.
        version = client.cache.version
        cluster.set_leader("orders", 3, 2)
        client.leader_unavailable("orders", 3, 6)  # NOT_LEADER_OR_FOLLOWER
        client.cache.wait_change(version, timeout=5, topics=["orders"])
        print("leader of orders[3]:", client.leader("orders", 3))

        # A topic that does not exist yet is waited for.
        cluster.create_topic("payments", partitions=1, replication_factor=3)
        print(client.wait_for_topic("payments", timeout=5).name, "is there")

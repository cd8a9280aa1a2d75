"""Await a change without polling or a thread. Any thread, loop or extension may write."""

import asyncio

import rdmeta


async def watch(cache: rdmeta.MetadataCache) -> None:
    """Prints the changes of one topic until its leader is broker 3."""
    version = cache.version
    while cache.leader("orders", 0, None) != 3:
        await cache.wait_change_async(version, topics=["orders"])
        changes = cache.changes(version)
        version = changes.until
        for change in changes:
            if change.topic == "orders":
                print(change.kind, change.partition, change.old_leader, "->", change.new_leader)


async def main() -> None:
    with rdmeta.EmbeddedCluster(brokers=3) as cluster:
        cache = rdmeta.MetadataCache()
        watching = asyncio.create_task(watch(cache))
        cluster.create_topic("orders", partitions=1, replication_factor=3)
        for broker in (1, 2, 3):
            cluster.set_leader("orders", 0, broker)
            await asyncio.to_thread(rdmeta.fetch, cache, cluster.bootstrap)
        topic = await cache.wait_for_topic_async("orders", timeout=5)
        await asyncio.wait_for(watching, 5)
        print(f"{topic.name}: {len(topic.partitions)} partition")


asyncio.run(main())

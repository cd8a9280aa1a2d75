"""Keep a cache true in an event loop: every call is awaited, changes are iterated over."""

import asyncio

import rdmeta


async def watch(client: rdmeta.AsyncClient) -> None:
    """Prints the changes of one topic until its leader is broker 3."""
    async for changes in client.changes(topics=["orders"]):
        for change in changes:
            print(change.kind, change.partition, change.old_leader, "->", change.new_leader)
            if change.new_leader == 3:
                return


async def main() -> None:
    with rdmeta.EmbeddedCluster(brokers=3) as cluster:
        cluster.create_topic("orders", partitions=1, replication_factor=3)
        cluster.set_leader("orders", 0, 1)
        async with rdmeta.AsyncClient({"bootstrap.servers": cluster.bootstrap}) as client:
            print("leader of orders[0]:", await client.leader("orders", 0, timeout=5))
            watching = asyncio.create_task(watch(client))
            await asyncio.sleep(0)  # it begins to watch
            for broker in (2, 3):
                cluster.set_leader("orders", 0, broker)
                await client.refresh(["orders"], force=True, timeout=5)
            await asyncio.wait_for(watching, 5)


asyncio.run(main())

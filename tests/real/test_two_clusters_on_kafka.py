"""Bootstrap servers of two real clusters: all clients take the same one, say so, and stay there."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import commands
import pytest
from real_kafka import RealKafka, missing

import rdmeta
from rdmeta import AsyncClient, Client, MetadataCache, WrongClusterError

VERSION = "4.3.0"
CLIENTS = 20

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.skipif(missing(VERSION) is not None, reason=str(missing(VERSION))),
]


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[RealKafka]]:
    """Yields two clusters of one node each, which clients reach by proxies."""
    with ExitStack() as stack:
        found = []
        for name in ("one", "two"):
            directory: Path = tmp_path_factory.mktemp(name)
            kafka = stack.enter_context(RealKafka(VERSION, 1, directory, proxied=True))
            kafka.create("orders", [[1]])
            found.append(kafka)
        yield found


def conf(two: list[RealKafka], **more: object) -> dict[str, object]:
    servers = ",".join(each.client_bootstrap for each in two)
    return {"bootstrap.servers": servers, "reconnect.backoff.max.ms": 500, **more}


def check_names(text: str, two: list[RealKafka]) -> None:
    """Checks that an error names both clusters and both servers."""
    for kafka in two:
        assert repr(kafka.cluster_id) in text
        assert kafka.client_bootstrap in text


def until(holds: Callable[[], object], seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_twenty_clients_take_one_cluster_and_none_moves_when_it_is_cut(
    two: list[RealKafka],
) -> None:
    first, second = two
    problems: list[Any] = []
    with ExitStack() as stack:
        clients = [
            stack.enter_context(
                Client(conf(two, **{"topic.metadata.refresh.interval.ms": 1000}), topics=["orders"])
            )
            for _ in range(CLIENTS)
        ]
        for client in clients:
            client.on_error(problems.extend)
            with pytest.raises(WrongClusterError) as caught:
                client.leader("orders", 0, timeout=30)
            check_names(str(caught.value), two)
            assert client.leader("orders", 0, timeout=30) == 1
        assert {client.cache.cluster_id for client in clients} == {first.cluster_id}
        wrong = {second.client_bootstrap: second.cluster_id}
        assert all(client.stats()["wrong_clusters"] == wrong for client in clients)

        stack.callback(first.proxies[1].heal)
        first.proxies[1].cut()
        until(lambda: all(client.stats()["rebootstraps"] for client in clients))
        refused = len(problems)
        until(lambda: len(problems) > refused + CLIENTS)
        for client in clients:
            assert client.cache.cluster_id == first.cluster_id
            assert [each.port for each in client.cache.brokers] == [first.proxies[1].port]

        first.proxies[1].heal()
        for client in clients:
            client.refresh(force=True, timeout=60)
            assert client.cache.cluster_id == first.cluster_id
    check_names(str(next(p.error for p in problems if isinstance(p.error, WrongClusterError))), two)


def test_the_first_call_of_an_async_client_and_of_the_command_names_both(
    two: list[RealKafka],
) -> None:
    async def ask() -> None:
        async with AsyncClient(conf(two)) as client:
            await client.describe_cluster(timeout=30)

    with pytest.raises(WrongClusterError) as caught:
        asyncio.run(ask())
    check_names(str(caught.value), two)
    done = commands.run("quorum", "-b", str(conf(two)["bootstrap.servers"]))
    assert done.code == 3
    check_names(done.err, two)


def test_check_and_the_command_fail_and_fetch_names_both_ids(two: list[RealKafka]) -> None:
    good, bad = rdmeta.check(conf(two), timeout=30)
    assert (good.failed, bad.failed, type(bad.error)) == (None, "metadata", WrongClusterError)
    check_names(str(bad.error), two)
    servers = str(conf(two)["bootstrap.servers"])
    done = commands.run("config", "--check", "-b", servers, "--json")
    assert done.code != 0
    found = {each["server"]: each["result"] for each in commands.checked_json(done.out)["servers"]}
    assert found == {two[0].client_bootstrap: "ok", two[1].client_bootstrap: "metadata"}
    cache = MetadataCache()
    rdmeta.fetch(cache, two[0].client_bootstrap)
    with pytest.raises(WrongClusterError) as caught:
        rdmeta.fetch(cache, two[1].client_bootstrap)
    assert all(repr(each.cluster_id) in str(caught.value) for each in two)


def test_the_cluster_has_moved_once_all_servers_are_of_the_other_one(two: list[RealKafka]) -> None:
    first, second = two
    with Client(
        {"bootstrap.servers": first.client_bootstrap, "reconnect.backoff.max.ms": 500}
    ) as client:
        client.topic("orders", timeout=30)
        proxy = first.proxies[1]
        try:
            proxy.retarget(second.client_bootstrap)
            proxy.drop()
            until(lambda: client.cache.cluster_id == second.cluster_id, 60)
        finally:
            proxy.retarget(first.address(1, "CLIENT"))
            proxy.drop()

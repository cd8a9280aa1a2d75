"""The values of the metrics, as a scrape of Prometheus reads them."""

from __future__ import annotations

import asyncio
import os
import re
import threading
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from answers import apply_answer
from broker import METADATA, Brokers, Fault
from frames import P, T
from scrape import by_cluster, scraped, scraped_text, single
from shells import QUICK, Maker
from waiting import PROMPT, until

import rdmeta
from rdmeta import ALL, MetadataCache

PAGE = Path(__file__).resolve().parents[2] / "docs/client.md"
Inner = Callable[[Any], Any]

NAMES = {
    "rdmeta_build_info",
    "rdmeta_up",
    "rdmeta_refreshes_total",
    "rdmeta_requests_total",
    "rdmeta_refresh_age_seconds",
    "rdmeta_due_topics",
    "rdmeta_reconnects_total",
    "rdmeta_changes_total",
    "rdmeta_cache_topics",
    "rdmeta_cache_partitions",
    "rdmeta_cache_bytes",
    "rdmeta_brokers",
    "rdmeta_under_replicated_partitions",
    "rdmeta_leaderless_partitions",
    "rdmeta_offline_partitions",
    "rdmeta_non_preferred_partitions",
    "rdmeta_broker_leaders",
    "rdmeta_broker_replicas",
}

MIN_ISR = ("rdmeta_under_min_isr_partitions", "rdmeta_at_min_isr_partitions")


def test_the_output_has_these_metrics_and_no_other(
    make: Maker, brokers: Brokers, inner: Inner
) -> None:
    client = make(brokers.bootstrap)
    client.refresh(ALL)
    found = scraped(inner(client))
    assert found.keys() == NAMES
    assert found["rdmeta_build_info"] == {(rdmeta.__version__,): 1}
    assert set(found["rdmeta_refreshes_total"]) >= {
        ("start", "answered"),
        ("start", "failed"),
        ("start", "hedged"),
        ("start", "sent"),
    }


def test_the_partitions_are_those_of_health_on_a_cluster(
    cluster: rdmeta.EmbeddedCluster, make: Maker, inner: Inner
) -> None:
    cluster.create_topic("orders", partitions=7, replication_factor=3)
    cluster.create_topic("audit", partitions=2, replication_factor=2)
    cluster.set_leader("orders", 1, 3)
    client = make(cluster.bootstrap, topics=ALL)
    client.refresh()
    for leader in (None, 1, 2):
        cluster.set_leader("orders", 0, leader)
        client.refresh(force=True)
        found, health = scraped(inner(client)), client.cache.health()
        assert single(found, "rdmeta_leaderless_partitions") == (leader is None)
        assert single(found, "rdmeta_leaderless_partitions") == health.leaderless
        assert single(found, "rdmeta_non_preferred_partitions") == health.non_preferred
        assert single(found, "rdmeta_cache_topics") == 2
        assert single(found, "rdmeta_cache_partitions") == health.partitions == 9
        assert single(found, "rdmeta_brokers") == 3
        leaders = {int(id): n for (id,), n in found["rdmeta_broker_leaders"].items()}
        replicas = {int(id): n for (id,), n in found["rdmeta_broker_replicas"].items()}
        assert leaders == health.leaders
        assert replicas == health.replicas_on
        size = client.cache.stats()["bytes"]
        assert single(found, "rdmeta_cache_bytes") == pytest.approx(size, rel=0.05)


def test_each_state_of_partitions_is_counted(make: Maker, brokers: Brokers, inner: Inner) -> None:
    rows = [
        P(0, 1, 1, (1, 2, 3)),
        P(1, 2, 1, (1, 2, 3), (2, 3), (1,)),
        P(2, -1, 1, (3,), (), (3,), 5),
        P(3, 2, 1, (2, 9), (2,)),
    ]
    topic = brokers.truth.topics["orders"]
    brokers.truth.topics["orders"] = replace(topic, partitions=rows)
    client = make(brokers.bootstrap)
    client.refresh(ALL)
    assert scraped(inner(client)).keys().isdisjoint(MIN_ISR)
    known = {"orders": 2, "gone": 3}
    found = scraped(
        inner(client), per_topic=["orders", "nope"], min_isr={inner(client): known}.__getitem__
    )
    assert [found[name] for name in MIN_ISR] == [{(): 2}, {(): 1}]
    for prefix, key in (("rdmeta_", ()), ("rdmeta_topic_", ("orders",))):
        assert found[f"{prefix}under_replicated_partitions"] == {key: 3}
        assert found[f"{prefix}leaderless_partitions"] == {key: 1}
        assert found[f"{prefix}offline_partitions"] == {key: 2}
        assert found[f"{prefix}non_preferred_partitions"] == {key: 1}
    assert found["rdmeta_topic_partitions"] == {("orders",): 4}
    assert found["rdmeta_broker_leaders"] == {("1",): 1, ("2",): 2, ("3",): 0, ("9",): 0}
    assert found["rdmeta_broker_replicas"] == {("1",): 2, ("2",): 3, ("3",): 3, ("9",): 1}


def test_topics_have_series_only_if_they_are_named(
    make: Maker, brokers: Brokers, inner: Inner
) -> None:
    for number in range(50):
        brokers.truth.create(f"topic-{number}")
    client = make(brokers.bootstrap)
    client.refresh(ALL)
    assert "topic-7" not in (text := scraped_text(inner(client)))
    assert 'topic="' not in text
    text = scraped_text(inner(client), per_topic=["topic-7", "topic-7", "nope"])
    assert set(re.findall(r'topic="([^"]*)"', text)) == {"topic-7"}


def counts(stats: dict[str, Any]) -> tuple[object, ...]:
    requests = {id: node["requests"] for id, node in stats["nodes"].items()}
    return stats["reconnects"], stats["refreshes"], requests


def test_the_statistics_of_the_client_are_told(make: Maker, brokers: Brokers, inner: Inner) -> None:
    client = make(brokers.bootstrap, topics=["orders"])
    client.refresh()
    client.refresh()
    sent = scraped(inner(client))["rdmeta_requests_total"]
    assert sum(sent.values()) == len(brokers.requests(METADATA))
    client.need("unknown-topic")
    until(lambda: client.stats()["due"] == 1, "a topic is asked for again and again")
    for broker in brokers:
        broker.drop()
    until(lambda: client.stats()["reconnects"] > 0, "the client has connected again")
    client.forget("unknown-topic")
    client.refresh()
    until(lambda: client.stats()["due"] == 0, "no topic is due")
    before, found, stats = client.stats(), scraped(inner(client)), client.stats()
    while counts(before) != counts(stats):  # a connection was made again meanwhile
        before, found, stats = stats, scraped(inner(client)), client.stats()
    requests = {int(node): n for (node,), n in found["rdmeta_requests_total"].items()}
    assert requests == {id: node["requests"] for id, node in stats["nodes"].items()}
    assert sum(requests.values()) >= len(brokers.requests(METADATA))  # some went with a connection
    assert single(found, "rdmeta_up") == 1
    assert single(found, "rdmeta_due_topics") == 0
    assert single(found, "rdmeta_reconnects_total") == stats["reconnects"] >= 1
    assert 0 <= single(found, "rdmeta_refresh_age_seconds") < 60
    refreshes = {
        (reason, result): n
        for reason, results in stats["refreshes"].items()
        for result, n in results.items()
    }
    assert found["rdmeta_refreshes_total"] == refreshes


def test_a_reason_is_a_row_of_the_clients_table(
    make: Maker, brokers: Brokers, inner: Inner
) -> None:
    table = PAGE.read_text(encoding="utf-8").split("| reason |", 1)[1].split("\n\n", 1)[0]
    rows = set(re.findall(r"^\| `([^`]+)` \|", table, re.M))
    client = make(brokers.bootstrap, topics=["orders"])
    client.wait_for_topic("orders")
    client.refresh(["orders"], force=True)
    brokers.truth.lead("orders", 0, -1)
    client.leader_unavailable("orders", 0, 6)
    client.need("missing")

    def reasons() -> set[str]:
        return {reason for reason, _ in scraped(inner(client))["rdmeta_refreshes_total"]}

    until(lambda: {"start", "refresh", "need", "complaint"} <= reasons(), "all were asked for")
    client.subscribe("^ord.*")
    until(lambda: "subscribe" in reasons(), "the pattern was asked for")
    assert reasons() <= rows


def test_changes_are_counted_by_kind_from_zero_on(
    make: Maker, brokers: Brokers, inner: Inner
) -> None:
    client = make(brokers.bootstrap)
    client.refresh(ALL)
    before = scraped(inner(client))["rdmeta_changes_total"]
    assert before["leader_changed",] == before["resync",] == 0
    assert before["topic_added",] == 1
    brokers.truth.lead("orders", 0, 2)
    brokers.truth.lead("orders", 1, 3)
    client.refresh(ALL)
    after = scraped(inner(client))["rdmeta_changes_total"]
    assert after == before | {("leader_changed",): 2}


# ---- clients that do not work -------------------------------------------------------------------


def test_a_client_that_never_connected_is_down_under_its_bootstrap_servers(
    make: Maker, brokers: Brokers, inner: Inner
) -> None:
    client = make("localhost:1,localhost:2")
    found = by_cluster(scraped_text(inner(client)))
    assert found.keys() == {"localhost:1,localhost:2"}
    values = found["localhost:1,localhost:2"]
    assert single(values, "rdmeta_up") == 0
    assert "rdmeta_refresh_age_seconds" not in values
    assert single(values, "rdmeta_cache_topics") == 0
    client.start()
    until(lambda: client.stats()["nodes"][-1]["failures"] > 0, "a connection has failed")
    assert single(scraped(inner(client)), "rdmeta_up") == 0


def test_a_closed_client_is_down_and_its_last_state_stays(
    make: Maker, brokers: Brokers, inner: Inner
) -> None:
    client = make(brokers.bootstrap)
    client.refresh(ALL)
    open_now = scraped(inner(client))
    client.close()
    closed = scraped(inner(client))
    assert (single(open_now, "rdmeta_up"), single(closed, "rdmeta_up")) == (1, 0)
    assert closed["rdmeta_broker_leaders"] == open_now["rdmeta_broker_leaders"]
    assert closed["rdmeta_refreshes_total"] == open_now["rdmeta_refreshes_total"]
    assert single(closed, "rdmeta_refresh_age_seconds") >= single(
        open_now, "rdmeta_refresh_age_seconds"
    )


def test_a_client_without_its_cluster_is_down_and_keeps_what_it_knew(
    make: Maker, brokers: Brokers, inner: Inner
) -> None:
    client = make(brokers.bootstrap, {"topic.metadata.refresh.interval.ms": 100})
    client.refresh(ALL)
    until(lambda: single(scraped(inner(client)), "rdmeta_up") == 1, "the client is up")
    for broker in brokers:
        broker.down()
    until(lambda: single(scraped(inner(client)), "rdmeta_up") == 0, "the client is down")
    found = scraped(inner(client))
    assert single(found, "rdmeta_cache_partitions") == 6
    time.sleep(0.3)
    assert single(scraped(inner(client)), "rdmeta_refresh_age_seconds") >= 0.3


def test_stale_topics_count(make: Maker, brokers: Brokers, inner: Inner) -> None:
    now = 1000.0
    cache = MetadataCache(clock=lambda: now, max_age=10)
    apply_answer(cache, T("orders", [P(0, -1, 3), P(1, 2, 3)]))
    client = make("localhost:1", cache=cache)
    now += 100
    assert cache.names() == []
    found = scraped(inner(client))
    assert single(found, "rdmeta_cache_partitions") == 2
    assert single(found, "rdmeta_leaderless_partitions") == 1


def test_the_child_of_a_fork_says_that_its_parents_client_is_down() -> None:
    client = rdmeta.Client({"bootstrap.servers": "localhost:1"})
    read, write = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # other tests have left threads
        child = os.fork()
    if not child:
        os.write(write, scraped_text(client).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as output:
        text = output.read()
    os.waitpid(child, 0)
    assert scraped(client).keys() > {"rdmeta_up"}
    assert by_cluster(text) == {"localhost:1": {"rdmeta_up": {(): 0}}}


# ---- several clients ----------------------------------------------------------------------------


def test_each_client_has_the_id_of_its_cluster_as_label(
    make: Maker, brokers: Brokers, inner: Inner
) -> None:
    with Brokers(1, "other") as others:
        clients = [make(each.bootstrap) for each in (brokers, others, brokers, brokers)]
        for client in clients:
            client.refresh(ALL)
        found = by_cluster(scraped_text(*map(inner, clients)))
    assert list(found) == ["cluster", "other", "cluster/2", "cluster/3"]
    assert [single(each, "rdmeta_cache_partitions") for each in found.values()] == [6, 0, 6, 6]
    assert [len(each["rdmeta_broker_leaders"]) for each in found.values()] == [3, 1, 3, 3]


def test_one_client_that_cannot_be_read_leaves_the_others(
    make: Maker, brokers: Brokers, inner: Inner, monkeypatch: pytest.MonkeyPatch
) -> None:
    good, bad = inner(make(brokers.bootstrap)), inner(make("localhost:1"))

    def fails() -> dict[str, Any]:
        raise rdmeta.Error("no")

    monkeypatch.setattr(bad, "_stats_anywhere", fails)
    found = by_cluster(scraped_text(bad, good))
    assert found["localhost:1"] == {"rdmeta_up": {(): 0}}
    assert found[brokers.bootstrap].keys() > {"rdmeta_up"}


def test_what_is_no_client_or_no_name_is_refused() -> None:
    client = rdmeta.Client({"bootstrap.servers": "localhost:1"})
    for wrong in (MetadataCache(), "localhost:1", None):
        with pytest.raises(TypeError, match="expected a Client or an AsyncClient"):
            rdmeta.metrics.collector(client, wrong)  # type: ignore[arg-type]
    for names in ("orders", [7]):
        with pytest.raises(TypeError, match="per_topic has names of topics"):
            rdmeta.metrics.collector(client, per_topic=names)  # type: ignore[arg-type]


def test_no_thread_is_started(make: Maker, brokers: Brokers, inner: Inner) -> None:
    client = make(brokers.bootstrap)
    client.refresh(ALL)
    before = set(threading.enumerate())
    scraped(inner(client))
    assert set(threading.enumerate()) <= before


# ---- event loops --------------------------------------------------------------------------------


def test_an_async_client_is_read_in_its_own_loop_and_after_it(brokers: Brokers) -> None:
    async def main() -> tuple[rdmeta.AsyncClient, float]:
        client = rdmeta.AsyncClient({"bootstrap.servers": brokers.bootstrap, **QUICK})
        await client.refresh(ALL)
        inside = single(scraped(client), "rdmeta_up")
        other = await asyncio.to_thread(scraped, client)
        assert single(other, "rdmeta_up") == inside
        await client.close()
        return client, inside

    client, inside = asyncio.run(main())
    assert inside == 1
    assert single(scraped(client), "rdmeta_up") == 0


def test_a_blocked_event_loop_makes_its_client_down_within_seconds(brokers: Brokers) -> None:
    async def main() -> None:
        client = rdmeta.AsyncClient({"bootstrap.servers": brokers.bootstrap, **QUICK})
        await client.refresh(ALL)
        found: list[dict[str, Any]] = []
        thread = threading.Thread(target=lambda: found.append(scraped(client)))
        thread.start()
        thread.join(20)  # this blocks the loop
        assert found == [{"rdmeta_up": {(): 0}}]
        await client.close()

    asyncio.run(main())


def test_a_slow_broker_does_not_slow_a_scrape(make: Maker, brokers: Brokers, inner: Inner) -> None:
    client = make(brokers.bootstrap)
    client.refresh(ALL)
    for broker in brokers:
        broker.fault = Fault(silent=True)
    client.refresh(ALL, wait=False)
    begun = time.monotonic()
    scraped(inner(client))
    assert time.monotonic() - begun < PROMPT

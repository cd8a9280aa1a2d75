"""`rdmeta list` shows brokers, topics and partitions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import commands
import frames
import pytest
from broker import Brokers
from frames import B, P, T
from pyarrow import parquet

import rdmeta
from rdmeta import MetadataCache


@pytest.fixture(scope="module")
def cluster() -> Iterator[rdmeta.EmbeddedCluster]:
    with rdmeta.EmbeddedCluster(brokers=3) as made:
        made.create_topic("orders", partitions=2, replication_factor=3)
        made.create_topic("clicks", partitions=1, replication_factor=1)
        made.set_leader("orders", 0, 2)
        made.set_leader("orders", 1, None)
        made.set_leader("clicks", 0, 1)
        yield made


def listed(cluster: rdmeta.EmbeddedCluster, *words: str) -> commands.Done:
    return commands.run("list", "-b", cluster.bootstrap, *words)


def sections(text: str) -> list[list[dict[str, str]]]:
    """Returns the tables of plain output, each row as a dict."""
    tables = []
    for part in text.split("\n\n"):
        header, *lines = part.splitlines()
        names = header.split("\t")
        tables.append([dict(zip(names, line.split("\t"), strict=True)) for line in lines])
    return tables


def test_a_pipe_gets_brokers_and_partitions(cluster: rdmeta.EmbeddedCluster) -> None:
    done = listed(cluster)
    assert (done.code, done.err) == (0, "")
    brokers, partitions = sections(done.out)
    assert [each["broker"] for each in brokers] == ["1", "2", "3"]
    assert [f"{each['host']}:{each['port']}" for each in brokers] == cluster.bootstrap.split(",")
    found = [(each["topic"], each["partition"], each["leader"]) for each in partitions]
    assert found == [("clicks", "0", "1"), ("orders", "0", "2"), ("orders", "1", "-")]
    assert partitions[1]["replicas"] == partitions[1]["isr"] == "1,2,3"


def test_json_says_the_same_and_obeys_the_schema(cluster: rdmeta.EmbeddedCluster) -> None:
    done = listed(cluster, "--json")
    found = commands.checked_json(done.out)
    assert (done.code, done.err, done.out.count("\n")) == (0, "", 1)
    assert [topic["name"] for topic in found["topics"]] == ["clicks", "orders"]
    assert [each["leader"] for each in found["topics"][1]["partitions"]] == [2, None]
    assert [each["id"] for each in found["brokers"]] == [1, 2, 3]
    assert [each["error"] for each in found["clusters"]] == [None]


@pytest.mark.parametrize(
    ("words", "topics"),
    [
        (["-t", "orders"], ["orders", "orders"]),
        (["-t", "/^o|ks$/"], ["clicks", "orders", "orders"]),
        (["-t", "/rde/", "-t", "clicks"], ["clicks", "orders", "orders"]),
        (["--internal"], []),
        (["--no-internal", "-t", "clicks"], ["clicks"]),
    ],
)
def test_topics_are_chosen_by_name_and_by_regular_expression(
    cluster: rdmeta.EmbeddedCluster, words: list[str], topics: list[str]
) -> None:
    done = listed(cluster, "--table", "partitions", *words)
    assert [each["topic"] for each in sections(done.out)[0]] == topics
    assert (done.code, done.err) == (0, "")


def test_partitions_are_chosen_by_broker(cluster: rdmeta.EmbeddedCluster) -> None:
    brokers, partitions = sections(listed(cluster, "--broker", "3").out)
    assert [each["broker"] for each in brokers] == ["3"]
    assert {each["topic"] for each in partitions} >= {"orders"}
    assert all("3" in each["replicas"].split(",") for each in partitions)


def test_one_table_is_printed_alone(cluster: rdmeta.EmbeddedCluster) -> None:
    (topics,) = sections(listed(cluster, "--table", "topics").out)
    assert [(each["topic"], each["partitions"]) for each in topics] == [
        ("clicks", "1"),
        ("orders", "2"),
    ]
    assert all(len(each["topic_id"]) == 22 for each in topics)


def test_ids_are_a_column_of_partitions(cluster: rdmeta.EmbeddedCluster) -> None:
    with_ids = sections(listed(cluster, "--ids").out)[1]
    (topics,) = sections(listed(cluster, "--table", "topics", "-t", "orders").out)
    assert {each["topic_id"] for each in with_ids if each["topic"] == "orders"} == {
        topics[0]["topic_id"]
    }


def test_a_list_in_a_pipe_imports_no_large_library(cluster: rdmeta.EmbeddedCluster) -> None:
    loaded = commands.modules_of("list", "-b", cluster.bootstrap)
    assert "rdmeta.net.fetch" in loaded
    assert not loaded & {"rich", "pyarrow", "pyspark", "pandas", "asyncio", "ssl", "logging"}


def test_csv_and_parquet_hold_partitions(cluster: rdmeta.EmbeddedCluster, tmp_path: Path) -> None:
    done = listed(cluster, "--csv", "-t", "clicks")
    header, line = done.out.splitlines()
    assert header == "topic,partition,leader,epoch,replicas,isr,offline"
    assert line.startswith("clicks,0,1,")
    file = tmp_path / "list.parquet"
    assert listed(cluster, "--parquet", str(file)) == (0, "", "")
    table = parquet.read_table(file).to_pylist()
    assert [(row["topic"], row["leader"]) for row in table] == [
        ("clicks", 1),
        ("orders", 2),
        ("orders", None),
    ]


def test_an_unknown_topic_is_named_and_not_created(cluster: rdmeta.EmbeddedCluster) -> None:
    done = listed(cluster, "-t", "NOPE", "-t", "clicks", "--table", "partitions")
    assert (done.code, done.err) == (1, "rdmeta: topic NOPE is unknown\n")
    assert [each["topic"] for each in sections(done.out)[0]] == ["clicks"]
    cache = rdmeta.MetadataCache()
    rdmeta.fetch(cache, cluster.bootstrap)
    assert list(cache) == ["clicks", "orders"]


def test_a_saved_state_is_shown_without_a_cluster(
    cluster: rdmeta.EmbeddedCluster, tmp_path: Path
) -> None:
    cache = rdmeta.MetadataCache()
    rdmeta.fetch(cache, cluster.bootstrap)
    file = tmp_path / "state"
    cache.image().save(file)
    brokers = sections(listed(cluster).out)[0]
    done = commands.run("list", "--image", str(file))
    # Metadata names a random broker as KRaft's controller, and a file does not say whether it is.
    assert sections(done.out)[0] == [{**broker, "controller": "-"} for broker in brokers]
    assert sections(done.out)[1:] == sections(listed(cluster).out)[1:]
    assert (done.code, done.err) == (0, "")
    (told,) = commands.checked_json(commands.run("list", "--image", str(file), "--json").out)[
        "clusters"
    ]
    assert told["controller"] is None
    both = listed(cluster, "--image", str(file))
    assert (both.code, both.out) == (2, "")


def test_several_clusters_are_told_apart_and_one_that_fails_is_a_line(
    cluster: rdmeta.EmbeddedCluster, tmp_path: Path
) -> None:
    env = commands.clusters(tmp_path, here=cluster.bootstrap, gone="127.0.0.1:1")
    done = commands.run("list", "-c", "all", env=env)
    brokers, partitions = sections(done.out)
    assert {each["cluster"] for each in brokers + partitions} == {"here"}
    assert done.code == 3
    assert done.err.startswith("rdmeta: gone: 127.0.0.1:1: cannot connect")
    found = commands.checked_json(commands.run("list", "-c", "gone,here", "--json", env=env).out)
    assert [each["cluster"] for each in found["clusters"]] == ["gone", "here"]
    assert [each["error"] is None for each in found["clusters"]] == [False, True]
    assert {each["cluster"] for each in found["topics"]} == {"here"}


def test_only_partitions_that_need_care_are_shown(cluster: rdmeta.EmbeddedCluster) -> None:
    done = listed(cluster, "--leaderless", "--urp")
    ((row,),) = sections(done.out)
    assert (done.code, row["topic"], row["partition"], row["leader"]) == (0, "orders", "1", "-")
    found = commands.checked_json(listed(cluster, "--leaderless", "--json").out)
    assert [topic["name"] for topic in found["topics"]] == ["orders"]
    assert [each["partition"] for each in found["topics"][0]["partitions"]] == [1]


@pytest.mark.parametrize("form", [[], ["--json"], ["--table", "brokers"]])
def test_fail_ends_with_1_if_a_partition_is_found(
    cluster: rdmeta.EmbeddedCluster, form: list[str]
) -> None:
    assert listed(cluster, "--leaderless", "--fail", *form).code == 1
    assert listed(cluster, "--offline", "--fail", *form).code == 0
    assert listed(cluster, "--leaderless", "--fail", "-t", "clicks", *form).code == 0


def test_what_a_broker_would_take_with_it_is_shown(cluster: rdmeta.EmbeddedCluster) -> None:
    (clicks,) = [each for each in sections(listed(cluster).out)[1] if each["topic"] == "clicks"]
    done = listed(cluster, "--if-down", clicks["isr"])
    assert sections(done.out) == [[clicks]]
    everything = listed(cluster, *(word for n in "123" for word in ("--if-down", n)))
    assert len(sections(everything.out)[0]) == 3


def test_skew_is_shown_by_broker(cluster: rdmeta.EmbeddedCluster) -> None:
    racks, brokers = sections(listed(cluster, "--skew").out)
    assert racks == []
    assert [(each["broker"], each["leaders"], each["leaders_above"]) for each in brokers] == [
        ("1", "1", "+50.0%"),
        ("2", "1", "+50.0%"),
        ("3", "0", "-100.0%"),
    ]
    found = commands.checked_json(listed(cluster, "--skew", "--json").out)
    assert [each["leaders_above"] for each in found["skew"]["brokers"]] == [0.5, 0.5, -1.0]
    only = listed(cluster, "--skew", "-t", "clicks", "--csv").out.splitlines()
    assert only[1].startswith("1,,1,2.0,")


def test_skew_is_shown_by_rack(tmp_path: Path) -> None:
    cache = MetadataCache()
    brokers = [B(1, rack="east"), B(2, rack="east"), B(3, rack="west")]
    topics = [T("t", [P(0, 1), P(1, 3)])]
    cache.apply(frames.response(12, topics, brokers=brokers), 12, rdmeta.ALL)
    cache.image().save(tmp_path / "state")
    words = ("list", "--skew", "--image", str(tmp_path / "state"))
    racks, brokers_shown = sections(commands.run(*words).out)
    assert [(each["rack"], each["brokers"], each["replicas_above"]) for each in racks] == [
        ("east", "2", "+33.3%"),
        ("west", "1", "-33.3%"),
    ]
    assert [each["rack"] for each in brokers_shown] == ["east", "east", "west"]
    found = commands.checked_json(commands.run(*words, "--json").out)
    assert [each["leaders"] for each in found["skew"]["racks"]] == [1, 1]
    assert sections(commands.run(*words, "--table", "racks").out) == [racks]


# ---- what only some brokers tell ----------------------------------------------------------------


@pytest.fixture
def brokers() -> Iterator[Brokers]:
    """Yields brokers with topics of min.insync.replicas 2, and what the user may do with them."""
    with Brokers(3) as three:
        for name in ("strict", "secret"):
            topic = three.truth.create(name, partitions=3)
            isrs = [(1, 2, 3), (2, 3), (3,)]
            partitions = [
                replace(p, isr=isr) for p, isr in zip(topic.partitions, isrs, strict=True)
            ]
            bits = 1 << 3 | 1 << 8
            three.truth.topics[name] = replace(topic, partitions=partitions, operations=bits)
            three.truth.configs[name] = {"min.insync.replicas": "2"}
        three.truth.operations = 1 << 5
        yield three


@pytest.mark.parametrize(
    ("words", "numbers"),
    [
        (["--under-min-isr"], ["2"]),
        (["--at-min-isr"], ["1"]),
        (["--under-min-isr", "--at-min-isr"], ["1", "2"]),
        (["--under-min-isr", "--if-down", "2", "--urp", "-t", "strict"], ["1", "2"]),
    ],
)
def test_min_isr_is_that_of_the_topics_configuration(
    brokers: Brokers, words: list[str], numbers: list[str]
) -> None:
    done = commands.run("list", "-b", brokers.bootstrap, "-t", "strict", *words)
    assert (done.code, done.err) == (0, "")
    (rows,) = sections(done.out)
    assert [(each["partition"], each["min_isr"]) for each in rows] == [(n, "2") for n in numbers]


def test_a_min_isr_that_is_denied_is_unknown_and_said(brokers: Brokers) -> None:
    brokers.deny_configs("secret")
    words = ("list", "-b", brokers.bootstrap, "--under-min-isr", "--urp")
    done = commands.run(*words, "--json")
    assert done.code == 0
    assert done.err == (
        "rdmeta: min.insync.replicas is unknown"
        " (TOPIC_AUTHORIZATION_FAILED: it needs DESCRIBE_CONFIGS): secret\n"
    )
    secret, strict = commands.checked_json(done.out)["topics"]
    assert (secret["min_isr"], strict["min_isr"]) == (None, 2)
    assert [len(each["partitions"]) for each in (secret, strict)] == [2, 2]
    assert commands.run("list", "-b", brokers.bootstrap, "--under-min-isr", "--fail").code == 3


def test_of_many_denied_topics_some_are_named(brokers: Brokers) -> None:
    names = [f"t{n}" for n in range(8)]
    for name in names:
        brokers.truth.create(name)
    brokers.deny_configs(*names)
    done = commands.run("list", "-b", brokers.bootstrap, "--at-min-isr")
    assert done.err.endswith(": t0, t1, t2, t3, t4 and 3 more topics\n")


def test_operations_are_shown_by_name(brokers: Brokers) -> None:
    words = ("list", "-b", brokers.bootstrap, "--operations")
    clusters, topics = sections(commands.run(*words).out)
    assert [(each["cluster_id"], each["brokers"]) for each in clusters] == [("cluster", "3")]
    assert clusters[0]["operations"] == "CREATE"
    assert {each["operations"] for each in topics} == {"READ,DESCRIBE"}
    found = commands.checked_json(commands.run(*words, "--json").out)
    assert found["clusters"][0]["operations"] == ["CREATE"]
    assert [each["operations"] for each in found["topics"]] == [["READ", "DESCRIBE"]] * 2
    without = commands.checked_json(commands.run(*words[:-1], "--json").out)
    assert "operations" not in without["topics"][0] | without["clusters"][0]


@pytest.mark.slow
def test_a_parquet_file_that_cannot_be_written_is_named(
    cluster: rdmeta.EmbeddedCluster, tmp_path: Path
) -> None:
    file = tmp_path / "list.parquet"
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\n"
    words = ("list", "-b", cluster.bootstrap, "--parquet", str(file))
    done = commands.run_process(*words, program=limit + commands.PROGRAM)
    assert done == (2, "", f"rdmeta: {file}: File too large\n")
    assert list(tmp_path.iterdir()) == []


def test_operations_are_a_list_in_parquet(brokers: Brokers, tmp_path: Path) -> None:
    file = tmp_path / "topics.parquet"
    words = ("--operations", "--table", "topics", "--parquet", str(file))
    assert commands.run("list", "-b", brokers.bootstrap, *words) == (0, "", "")
    column = parquet.read_table(file).column("operations").to_pylist()
    assert column == [["READ", "DESCRIBE"]] * 2

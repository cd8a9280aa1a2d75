"""`rdmeta publish` feeds the other processes of a host."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import commands
import pytest
from in_process import Running
from waiting import published, until

import rdmeta
from rdmeta.cli import publish
from rdmeta.cli.selection import kept_topics

# On a busy machine the client may warn of slow answers.
OFTEN = ("-q", "--every", "0.02")
MAX_AGE_S = 2.5
AGING = ("-X", f"metadata.max.age.ms={1000 * MAX_AGE_S:g}", "-X", "reconnect.backoff.max.ms=100")

READER = """
import sys, rdmeta
state = rdmeta.attach(sys.argv[1], timeout=10)
print(sorted(state), state.leader("orders", 0, None), len(state.brokers))
"""


@pytest.fixture
def cluster() -> Iterator[rdmeta.EmbeddedCluster]:
    with rdmeta.EmbeddedCluster(brokers=3) as made:
        made.create_topic("orders", partitions=2, replication_factor=3)
        made.create_topic("clicks")
        made.set_leader("orders", 0, 2)
        yield made


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state"


def words(cluster: rdmeta.EmbeddedCluster, path: Path, *more: str) -> tuple[str, ...]:
    return ("publish", str(path), "-b", cluster.bootstrap, *more)


def read_elsewhere(path: Path) -> str:
    """Returns what another process reads."""
    done = subprocess.run(
        [sys.executable, "-c", READER, str(path)],
        env=commands.surroundings(),
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    )
    return done.stdout.strip()


def test_the_file_has_the_mode_that_is_asked_for(
    cluster: rdmeta.EmbeddedCluster, path: Path
) -> None:
    done = commands.run(*words(cluster, path, *OFTEN, "--mode", "606", "--for", "0.1"))
    assert (done.code, path.stat().st_mode & 0o777) == (0, 0o606)


@pytest.mark.proof
def test_another_process_reads_what_the_feeder_keeps_true(
    cluster: rdmeta.EmbeddedCluster, path: Path
) -> None:
    with commands.started(*words(cluster, path, *OFTEN)) as process:
        assert process.next_line() == f"READY {path}"
        assert read_elsewhere(path) == "['clicks', 'orders'] 2 3"
        cluster.set_leader("orders", 0, 3)
        attached = rdmeta.attach(path)
        until(lambda: attached.leader("orders", 0, None) == 3, "the new leader is published")
        assert read_elsewhere(path) == "['clicks', 'orders'] 3 3"
        assert process.ended(signal.SIGTERM) == (-signal.SIGTERM, "", "")
    assert read_elsewhere(path) == "['clicks', 'orders'] 3 3"


def test_json_says_what_the_first_state_has(
    cluster: rdmeta.EmbeddedCluster, path: Path, tmp_path: Path
) -> None:
    env = commands.clusters(tmp_path, prod=cluster.bootstrap)
    more = ("publish", str(path), "-c", "prod", "--for", "0.1", "--json")
    done = commands.run(*more, env=env)
    assert (done.code, done.err) == (0, "")
    found = commands.checked_json(done.out)
    assert (found["cluster"], found["path"]) == ("prod", str(path))
    assert (found["brokers"], found["topics"]) == (3, 2)
    assert found["cluster_id"] == rdmeta.Image.open(path).cluster_id


def test_only_topics_that_are_named_are_published(
    cluster: rdmeta.EmbeddedCluster, path: Path
) -> None:
    assert commands.run(*words(cluster, path, "-t", "orders", "--for", "0.1")).code == 0
    assert list(rdmeta.Image.open(path)) == ["orders"]


@pytest.mark.parametrize(
    ("given", "expected"),
    [(["/^o|ks$/"], 2), (["/rd/"], 1), (["/(?i)^ORD/"], 1), (["/x/", "clicks"], 1)],
)
def test_a_regular_expression_matches_anywhere_in_a_name(
    cluster: rdmeta.EmbeddedCluster, given: list[str], expected: int
) -> None:
    kept = kept_topics(given)
    with rdmeta.Client({"bootstrap.servers": cluster.bootstrap}, topics=kept) as client:
        client.refresh()
        assert client.stats()["needed"] == expected
    assert kept_topics([]) is rdmeta.ALL


def test_a_second_feeder_is_refused_and_told_which_process_feeds(
    cluster: rdmeta.EmbeddedCluster, path: Path
) -> None:
    with published(path):
        done = commands.run_process(*words(cluster, path))
    assert (done.code, done.out) == (2, "")
    assert done.err == (
        f"rdmeta: {path}: another publisher has this path (process {os.getpid()}): close it,"
        " or choose another path\n"
    )


def test_a_feeder_that_was_killed_is_started_again_for_the_same_readers(
    cluster: rdmeta.EmbeddedCluster, path: Path
) -> None:
    attached = None
    for leader in (1, 2):
        cluster.set_leader("orders", 0, leader)
        with commands.started(*words(cluster, path)) as process:
            process.next_line()
            attached = attached or rdmeta.attach(path)
            until(lambda: attached.leader("orders", 0, None) == leader)  # noqa: B023
            process.kill()
            process.wait()
    assert commands.run(*words(cluster, path, "--for", "0.1")).code == 0
    assert sorted(each.name for each in path.parent.iterdir()) == ["state", "state.lock"]


@pytest.mark.slow
def test_readers_see_how_old_a_state_is(cluster: rdmeta.EmbeddedCluster, path: Path) -> None:
    def read(running: Running) -> None:
        running.out.next_line()
        attached = rdmeta.attach(path)
        begin = time.monotonic()
        until(lambda: time.monotonic() > begin + MAX_AGE_S + 0.1, "the state would be old")
        assert attached.leader("orders", 0) == 2
        for broker in cluster.brokers:
            broker.down()
        until(lambda: (attached.age() or 0.0) > MAX_AGE_S, "the state is old")
        with pytest.raises(rdmeta.StaleError):
            attached.leader("orders", 0)
        assert attached.partition("orders", 0, allow_stale=True).leader == 2
        for broker in cluster.brokers:
            broker.up()
        until(lambda: attached.leader("orders", 0, None) == 2, "the state is true again")
        running.interrupt()

    assert commands.run(*words(cluster, path, *OFTEN, *AGING), meanwhile=read).code == 130


def test_ctrl_c_ends_a_feeder(cluster: rdmeta.EmbeddedCluster, path: Path) -> None:
    with commands.started(*words(cluster, path)) as process:
        process.next_line()
        assert process.ended(signal.SIGINT) == (130, "", "")


def test_a_state_that_cannot_be_saved_is_a_line_and_is_tried_again(
    cluster: rdmeta.EmbeddedCluster, path: Path
) -> None:
    """A limit on the size of files stands for a full disk."""
    with commands.started(*words(cluster, path, "--every", "0.02")) as process:
        process.next_line()
        _, hard = resource.prlimit(process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (0, hard))
        assert (
            f"rdmeta: {path}: the state is not published: File too large; readers keep the last"
            " state, and the next attempt follows soon\n"
        ) in iter(process.stderr.readline, "")
        assert read_elsewhere(path) == "['clicks', 'orders'] 2 3"
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (hard, hard))
        again = f"rdmeta: {path}: the state is published again\n"
        assert again in iter(process.stderr.readline, "")


def test_no_state_is_published_before_the_first_answer(path: Path) -> None:
    done = commands.run("publish", str(path), "-b", "127.0.0.1:1", "--timeout", "0.3")
    assert (done.code, done.out, done.err.count("\n")) == (3, "", 1)
    assert "127.0.0.1:1" in done.err
    assert not path.exists()


def test_a_first_answer_that_comes_at_once_is_not_missed(
    cluster: rdmeta.EmbeddedCluster, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    enter = rdmeta.Client.__enter__

    def slow(client: rdmeta.Client) -> rdmeta.Client:
        enter(client)
        until(lambda: client.cache.version, "an answer")
        return client

    monkeypatch.setattr(rdmeta.Client, "__enter__", slow)
    more = ("--every", "60", "--timeout", "5", "--for", "0.1")
    assert commands.run(*words(cluster, path, *more)) == (0, f"READY {path}\n", "")


def test_an_answer_about_brokers_alone_is_no_first_answer(cluster: rdmeta.EmbeddedCluster) -> None:
    """The state would have no topic, and READY would come too early."""
    client = rdmeta.Client({"bootstrap.servers": cluster.bootstrap})
    answered = publish._first_answer(client)
    told = threading.Event()
    client.on_update(lambda answers: told.set())
    with client:
        client.refresh((), timeout=20)
        assert told.wait(20)
        assert not answered.wait(0)
        client.refresh(["orders"], timeout=20)
        assert answered.wait(20)


def test_a_file_that_is_no_state_is_not_replaced(
    cluster: rdmeta.EmbeddedCluster, path: Path
) -> None:
    path.write_text("a list of things to do\n")
    done = commands.run(*words(cluster, path))
    assert (done.code, done.out) == (2, "")
    assert done.err == (
        f"rdmeta: {path}: it is not a published state, and the state would replace it; name"
        " another file, or remove this one\n"
    )
    assert path.read_text() == "a list of things to do\n"


@pytest.mark.parametrize("kept", [0, 100])
def test_a_damaged_state_is_replaced(
    cluster: rdmeta.EmbeddedCluster, path: Path, kept: int
) -> None:
    """A feeder starts again after the host lost power and the end of the file."""
    assert commands.run(*words(cluster, path, "--for", "0.1")).code == 0
    os.truncate(path, kept)
    done = commands.run(*words(cluster, path, "--for", "0.1"))
    assert (done.code, done.err) == (0, "")
    assert "orders" in rdmeta.Image.open(path)


def test_a_path_with_odd_bytes_is_published(
    cluster: rdmeta.EmbeddedCluster, tmp_path: Path
) -> None:
    odd = tmp_path / os.fsdecode(b"st\xff\x1bte")
    done = commands.run(*words(cluster, odd, "--for", "0.1"))
    assert (done.code, done.err) == (0, "")
    assert done.out == f"READY {tmp_path}/st\\udcff\\x1bte\n"
    assert "orders" in rdmeta.Image.open(odd)

"""`rdmeta wait` returns when its conditions hold, and says what is missing when they do not."""

from __future__ import annotations

import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import commands
import pytest
from broker import Brokers
from click.testing import CliRunner, Result
from cluster_answers import answer, feed
from login_server import LoginServer
from secured import Guard

import rdmeta
from rdmeta.cli import wait
from rdmeta.cli.conditions import Wanted
from rdmeta.cli.messages import Messages


@pytest.fixture(scope="module")
def cluster() -> Iterator[rdmeta.EmbeddedCluster]:
    with rdmeta.EmbeddedCluster(brokers=3) as made:
        made.create_topic("orders", partitions=2, replication_factor=3)
        made.set_leader("orders", 0, 2)
        made.set_leader("orders", 1, 2)
        yield made


def waited(cluster: rdmeta.EmbeddedCluster, *words: str) -> commands.Done:
    return commands.run("wait", "-b", cluster.bootstrap, *words)


def result(done: commands.Done) -> Any:
    """Returns the JSON of a run that is met, and printed nothing else."""
    assert (done.code, done.err) == (0, "")
    found = commands.checked_json(done.out)
    assert found["met"]
    return found


@contextmanager
def later(seconds: float, action: Any, *arguments: Any) -> Iterator[None]:
    """Calls `action` after some seconds of the block, or at its end."""
    timer = threading.Timer(seconds, action, arguments)
    timer.start()
    try:
        yield
    finally:
        timer.join()


@pytest.mark.parametrize(
    "words",
    [
        ["-t", "orders"],
        ["-t", "orders", "-p", "1", "--partitions", "2", "--isr", "3", "--leader", "2"],
        ["-t", "NOPE", "--gone"],
        ["--broker", "1", "--broker", "3"],
        ["--no-urp", "-t", "orders", "--broker", "2"],
    ],
)
def test_what_holds_already_ends_the_wait_without_a_word(
    cluster: rdmeta.EmbeddedCluster, words: list[str]
) -> None:
    assert waited(cluster, *words) == (0, "", "")


def test_a_topic_that_is_created_ends_the_wait_once_it_has_leaders(
    cluster: rdmeta.EmbeddedCluster,
) -> None:
    missing = "waiting: topic late does not exist"
    with waiting(cluster, missing, "-t", "late", "--timeout", "30") as process:
        cluster.create_topic("late", partitions=2, replication_factor=3)
        assert process.wait(20) == 0


def test_a_topic_without_leaders_is_not_there_yet(cluster: rdmeta.EmbeddedCluster) -> None:
    cluster.create_topic("young", partitions=1, replication_factor=1)
    cluster.set_leader("young", 0, None)
    done = waited(cluster, "-t", "young", "--timeout", "1")
    assert done == (1, "", "rdmeta: not so after 1 s: young-0 has no leader\n")
    with later(0.5, cluster.set_leader, "young", 0, 3):
        assert waited(cluster, "-t", "young", "--leader", "3") == (0, "", "")


def test_a_topic_that_is_deleted_ends_the_wait_for_its_end(
    cluster: rdmeta.EmbeddedCluster,
) -> None:
    cluster.create_topic("old", partitions=1, replication_factor=1)
    done = waited(cluster, "-t", "old", "--gone", "--timeout", "1")
    assert done == (1, "", "rdmeta: not so after 1 s: topic old exists\n")
    with later(0.5, cluster.delete_topic, "old"):
        assert waited(cluster, "-t", "old", "--gone") == (0, "", "")


def test_nothing_is_created(cluster: rdmeta.EmbeddedCluster) -> None:
    assert waited(cluster, "-t", "NOPE", "--timeout", "1").code == 1
    cache = rdmeta.MetadataCache()
    rdmeta.fetch(cache, cluster.bootstrap)
    assert "NOPE" not in cache


def test_at_the_end_one_line_says_what_is_missing_of_each_condition(
    cluster: rdmeta.EmbeddedCluster,
) -> None:
    words = ["-t", "orders", "--isr", "4", "--leader", "2", "--broker", "9", "--timeout", "1"]
    done = waited(cluster, *words, "--json")
    missing = ["orders-0 has 3 of 4 replicas in sync (1,2,3)", "broker 9 is not listed"]
    assert (done.code, done.err) == (1, f"rdmeta: not so after 1 s: {'; '.join(missing)}\n")
    found = commands.checked_json(done.out)
    assert not found["met"]
    assert [each["missing"] for each in found["conditions"]] == [None, missing[0], None, missing[1]]
    assert [each["present"] for each in found["conditions"]] == [None, 3, 2, None]


def test_a_broker_that_comes_back_ends_the_wait(cluster: rdmeta.EmbeddedCluster) -> None:
    broker = cluster.broker(3)
    broker.down()
    try:
        done = waited(cluster, "--broker", "3", "--timeout", "1")
        assert done == (1, "", "rdmeta: not so after 1 s: broker 3 is not listed\n")
        with later(0.5, broker.up):
            assert waited(cluster, "--broker", "3") == (0, "", "")
    finally:
        broker.up()


@contextmanager
def waiting(
    cluster: rdmeta.EmbeddedCluster, line: str, *words: str
) -> Iterator[subprocess.Popen[str]]:
    """Yields a running wait, with -v, that has said `line`."""
    with commands.started("wait", "-b", cluster.bootstrap, "-v", *words) as process:
        says(process, line)
        yield process


def says(process: subprocess.Popen[str], line: str) -> None:
    """Returns when a wait with -v says `line`."""
    assert process.stderr is not None
    assert any(line in each for each in iter(process.stderr.readline, "")), line


# ---- holds --------------------------------------------------------------------------------------


def test_a_hold_takes_its_time(cluster: rdmeta.EmbeddedCluster) -> None:
    found = result(waited(cluster, "--no-urp", "--hold", "1.5", "--json"))
    assert 1.5 <= found["held"] <= found["seconds"] < 5


def test_a_break_begins_the_hold_anew(cluster: rdmeta.EmbeddedCluster) -> None:
    cluster.create_topic("shaky", partitions=1, replication_factor=1)
    words = ["-t", "shaky", "--hold", "1.2", "--timeout", "30", "--json"]
    with waiting(cluster, "waiting: everything holds", *words) as process:
        cluster.set_leader("shaky", 0, None)
        says(process, "waiting: shaky-0 has no leader")
        cluster.set_leader("shaky", 0, 1)
        says(process, "waiting: everything holds")
        began = time.monotonic()
        out, _ = process.communicate(timeout=30)
        assert time.monotonic() - began > 0.9
        assert commands.checked_json(out)["held"] >= 1.2


def test_a_break_between_two_answers_begins_the_hold_anew(
    cluster: rdmeta.EmbeddedCluster,
) -> None:
    """The client does not ask while the leader changes twice; a later epoch tells of it."""
    cluster.create_topic("quick", partitions=1, replication_factor=1)
    cluster.set_leader("quick", 0, 1)
    words = ["-t", "quick", "--leader", "1", "--hold", "2", "--timeout", "30", "--json"]
    with waiting(cluster, "waiting: everything holds", *words) as process:
        time.sleep(0.8)
        cluster.set_leader("quick", 0, 2)
        cluster.set_leader("quick", 0, 1)
        out, _ = process.communicate(timeout=30)
    found = commands.checked_json(out)
    assert found["met"]
    assert found["seconds"] > 2.7, found


def test_states_that_the_command_has_not_seen_begin_the_hold_anew() -> None:
    """A break may hide between two looks if the cache has had several new states since."""
    cache = rdmeta.MetadataCache()
    told: Any = SimpleNamespace(progress=lambda text: None)
    client: Any = SimpleNamespace(cache=cache)
    waiting = wait._Wait(client, Wanted(no_urp=True), 60.0, 60.0, told)
    whole: Any = SimpleNamespace(request=SimpleNamespace(topics=rdmeta.ALL))
    with rdmeta.EmbeddedCluster(brokers=1) as cluster:
        feed(cache, answer(cluster, 8), 8)
        waiting._look([whole])
        assert waiting._since is not None
        cluster.create_topic("one", partitions=1, replication_factor=1)
        feed(cache, answer(cluster, 8), 8)
        waiting._look([])
        assert waiting._since is not None
        for name in ("two", "three"):
            cluster.create_topic(name, partitions=1, replication_factor=1)
            feed(cache, answer(cluster, 8), 8)
        waiting._look([])
    assert waiting._since is None


def run_here(*words: str) -> Result:
    """Runs the command in this process."""
    return CliRunner().invoke(
        wait.command, words, obj=Messages(), prog_name="rdmeta wait", standalone_mode=False
    )


def test_a_pause_without_answers_begins_the_hold_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wait, "_LEAST_PAUSE_S", 0.5)
    with rdmeta.EmbeddedCluster(brokers=1) as cluster:
        words = [
            "-b",
            cluster.bootstrap,
            "-t",
            "NOPE",
            "--gone",
            "--hold",
            "1.2",
            "--timeout",
            "20",
        ]
        words += ["--json", "-X", "topic.metadata.refresh.interval.ms=100"]
        broker = cluster.broker(1)
        words += ["-X", "reconnect.backoff.max.ms=100"]
        with later(0.6, broker.down), later(1.6, broker.up):
            done = run_here(*words)
    found = commands.checked_json(done.stdout)
    assert (found["met"], found["seconds"] > 2.4) == (True, True), found


def test_a_hold_that_is_not_over_at_the_end_is_told(cluster: rdmeta.EmbeddedCluster) -> None:
    cluster.create_topic("slow", partitions=1, replication_factor=1)
    cluster.set_leader("slow", 0, None)
    words = ["-t", "slow", "--hold", "1.8", "--timeout", "2"]
    with waiting(cluster, "waiting: slow-0 has no leader", *words) as process:
        time.sleep(0.5)
        cluster.set_leader("slow", 0, 1)
        _, err = process.communicate(timeout=30)
    assert process.returncode == 1
    last = err.splitlines()[-1]
    assert last.startswith("rdmeta: not so after 2 s: everything held for ")
    assert last.endswith(" of 1.8 s only")


# ---- no answers, and bad input ------------------------------------------------------------------


def test_without_an_answer_the_exit_code_is_3_and_the_cause_is_told() -> None:
    done = commands.run("wait", "-b", "127.0.0.1:1", "-t", "orders", "--timeout", "1", "--json")
    assert (done.code, done.out, done.err.count("\n")) == (3, "", 1)
    assert "127.0.0.1:1: cannot connect: Connection refused" in done.err


def test_a_wrong_password_ends_the_wait_at_once_with_3() -> None:
    with Brokers(1, guard=Guard(None, LoginServer({"alice": "secret"}))) as brokers:
        words = ["-X", "security.protocol=sasl_plaintext", "-X", "sasl.mechanism=PLAIN"]
        words += ["-X", "sasl.username=alice", "-t", "orders", "--timeout", "30"]
        began = time.monotonic()
        env = {"RDMETA_SASL_PASSWORD": "wrong", "RDMETA_BOOTSTRAP": brokers.bootstrap}
        done = commands.run("wait", *words, env=env)
    assert (done.code, done.err.count("\n")) == (3, 1)
    assert "sasl.password" in done.err
    assert time.monotonic() - began < 15


def test_a_topic_that_may_not_be_described_ends_the_wait_with_3(
    cluster: rdmeta.EmbeddedCluster,
) -> None:
    cluster.create_topic("secret", partitions=1, replication_factor=1)
    cluster.set_topic_error("secret", 29)
    done = waited(cluster, "-t", "secret")
    said = "rdmeta: topic secret: the user may not describe it: grant DESCRIBE on it\n"
    assert done == (3, "", said)


def test_brokers_that_fall_silent_are_told_of_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wait, "_LEAST_PAUSE_S", 0.5)
    with rdmeta.EmbeddedCluster(brokers=1) as cluster:
        words = ["-b", cluster.bootstrap, "-t", "NOPE", "--timeout", "2"]
        words += ["-X", "topic.metadata.refresh.interval.ms=100"]
        with later(0.5, cluster.broker(1).down):
            done = run_here(*words)
    assert done.return_value == 1
    assert "; no broker has answered for " in done.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["-p", "0", "--no-urp"], "-p needs a topic: give -t NAME"),
        (["-t", "a", "--gone", "--no-urp"], "--gone and --no-urp contradict each other"),
        (["-t", "a", "--hold", "-1"], "--hold needs a number of seconds above 0"),
        (["-t", "a", "--isr", "0"], "0 is not in the range x>=1"),
        (["-t", "a b"], "-t 'a b' is no topic's name"),
        (["-t", "a", "-X", "client.idd=x"], "unknown option 'client.idd'"),
    ],
)
def test_bad_input_is_one_line_and_ends_with_2(words: list[str], said: str) -> None:
    done = commands.run("wait", "-b", "127.0.0.1:1", *words)
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert said in done.err


def test_a_cluster_is_named_in_lines_and_in_json(
    cluster: rdmeta.EmbeddedCluster, tmp_path: Path
) -> None:
    file = tmp_path / "clusters.ini"
    file.write_text(f"[here]\nbootstrap.servers={cluster.bootstrap}\n[b]\nbootstrap.servers=b\n")
    env = {"RDMETA_CLUSTERS": str(file)}
    words = ["wait", "-t", "NOPE", "--timeout", "1", "--json"]
    done = commands.run(*words, "-c", "here", env=env)
    assert done.err == "rdmeta: here: not so after 1 s: topic NOPE does not exist\n"
    assert commands.checked_json(done.out)["cluster"] == "here"
    done = commands.run(*words, "-c", "all", env=env)
    assert done.err == "rdmeta: this command asks one cluster: -c takes one name here\n"


# ---- a terminal ---------------------------------------------------------------------------------


def test_a_terminal_shows_what_is_missing_behind_a_spinner(
    cluster: rdmeta.EmbeddedCluster,
) -> None:
    words = ["wait", "-b", cluster.bootstrap, "-t", "NOPE", "--timeout", "60"]
    with commands.Terminal(*words) as terminal:
        terminal.wait_for("/ waiting: topic NOPE does not exist")
        terminal.resize(24, 20)
        terminal.wait_for("| waiting: topic NO")
        terminal.type("\x03")
        assert terminal.end() == 130
        assert terminal.raw.endswith("\r\x1b[2K")  # nothing of it stays


def test_a_wait_that_is_over_leaves_one_line_on_a_terminal(cluster: rdmeta.EmbeddedCluster) -> None:
    words = ["wait", "-b", cluster.bootstrap, "-t", "NOPE", "--timeout", "1"]
    with commands.Terminal(*words) as terminal:
        assert terminal.end() == 1
        last = terminal.raw.rpartition("\x1b[2K")
        said = "rdmeta: not so after 1 s: topic NOPE does not exist\r\n"
        assert said in terminal.raw
        assert last[2] == ""
    with commands.Terminal(*words, "-q") as terminal:
        assert terminal.end() == 1
        assert terminal.raw == said


# ---- how it ends --------------------------------------------------------------------------------


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, -15)])
def test_a_signal_ends_the_wait(cluster: rdmeta.EmbeddedCluster, number: int, code: int) -> None:
    words = ["-t", "NOPE", "--timeout", "60"]
    with waiting(cluster, "waiting: topic NOPE does not exist", *words) as process:
        process.send_signal(number)
        out, err = process.communicate(timeout=10)
        assert (process.returncode, out, err) == (code, "", "")


def test_the_examples_run(cluster: rdmeta.EmbeddedCluster) -> None:
    for words in commands.examples("wait"):
        assert commands.run(*words, env={"RDMETA_BOOTSTRAP": cluster.bootstrap}) == (0, "", "")

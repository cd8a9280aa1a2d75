"""`rdmeta wait` returns when its conditions hold, and says what is missing when they do not."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import commands
import pytest
from answers import apply_answer
from broker import Brokers
from clocks import Clock
from cluster_answers import answer, feed
from frames import P, T
from in_process import Running
from login_server import LoginServer
from secured import Guard
from waiting import until

import rdmeta
from rdmeta.cli import wait
from rdmeta.cli.wait import Conditions

OFTEN = ("-X", "topic.metadata.refresh.interval.ms=20")


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


class Looks(Clock):
    """The command's clock, which stands still, and the number of its looks at the state."""

    count = 0

    def look(self, seconds: float) -> None:
        """Moves the clock on; returns when the command has looked again."""
        self.advance(seconds)
        seen = self.count
        until(lambda: self.count > seen + 1, "looks at the state")

    def pass_time(self, seconds: float) -> None:
        """Moves the clock on without a pause between two answers."""
        while seconds > 4:
            self.look(4)
            seconds -= 4
        self.advance(seconds)


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> Looks:
    looks, look = Looks(), wait._Wait._look

    def counted(self: wait._Wait, batch: Iterable[rdmeta.Updated]) -> str | None:
        denied = look(self, batch)
        looks.count += 1
        return denied

    monkeypatch.setattr(wait, "time", looks)
    monkeypatch.setattr(wait._Wait, "_look", counted)
    return looks


def waited_until(
    cluster: rdmeta.EmbeddedCluster, *words: str, says: str, act: Callable[[], object]
) -> commands.Done:
    """Calls `act` once the command says what it waits for; returns how it ends."""

    def say_and_act(running: Running) -> None:
        until_says(running, says)
        act()

    given = ("wait", "-b", cluster.bootstrap, "-v", *OFTEN, *words)
    return commands.run(*given, meanwhile=say_and_act)


def until_says(running: Running, text: str) -> None:
    """Returns when a wait with -v says that it waits for this."""
    while f"waiting: {text}" not in (line := running.err.next_line()):
        assert line, f"never: {text}"


def unmet(cluster: rdmeta.EmbeddedCluster, now: Looks, *words: str, says: str) -> commands.Done:
    """Lets the time pass once the command says what it waits for; returns how it ends."""
    timed = (*words, "--timeout", "20")
    done = waited_until(cluster, *timed, says=says, act=lambda: now.pass_time(20))
    assert (done.code, done.err.splitlines()[-1]) == (1, f"rdmeta: not so after 20 s: {says}")
    return done


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
    create = partial(cluster.create_topic, "late", partitions=2, replication_factor=3)
    done = waited_until(cluster, "-t", "late", says="topic late does not exist", act=create)
    assert done.code == 0


def test_a_topic_without_leaders_is_not_there_yet(
    cluster: rdmeta.EmbeddedCluster, now: Looks
) -> None:
    cluster.create_topic("young", partitions=1, replication_factor=1)
    cluster.set_leader("young", 0, None)
    unmet(cluster, now, "-t", "young", says="young-0 has no leader")
    lead, words = partial(cluster.set_leader, "young", 0, 3), ("-t", "young", "--leader", "3")
    assert waited_until(cluster, *words, says="young-0 has no leader", act=lead).code == 0


def test_a_topic_that_is_deleted_ends_the_wait_for_its_end(
    cluster: rdmeta.EmbeddedCluster, now: Looks
) -> None:
    cluster.create_topic("old", partitions=1, replication_factor=1)
    words = ("-t", "old", "--gone")
    unmet(cluster, now, *words, says="topic old exists")
    delete = partial(cluster.delete_topic, "old")
    assert waited_until(cluster, *words, says="topic old exists", act=delete).code == 0


def test_nothing_is_created(cluster: rdmeta.EmbeddedCluster, now: Looks) -> None:
    unmet(cluster, now, "-t", "NOPE", says="topic NOPE does not exist")
    cache = rdmeta.MetadataCache()
    rdmeta.fetch(cache, cluster.bootstrap)
    assert "NOPE" not in cache


def test_at_the_end_one_line_says_what_is_missing_of_each_condition(
    cluster: rdmeta.EmbeddedCluster, now: Looks
) -> None:
    words = ["-t", "orders", "--isr", "4", "--leader", "2", "--broker", "9", "--json"]
    missing = ["orders-0 has 3 of 4 replicas in sync (1,2,3)", "broker 9 is not listed"]
    found = commands.checked_json(unmet(cluster, now, *words, says="; ".join(missing)).out)
    assert not found["met"]
    assert [each["missing"] for each in found["conditions"]] == [None, missing[0], None, missing[1]]
    assert [each["present"] for each in found["conditions"]] == [None, 3, 2, None]


def test_a_broker_that_comes_back_ends_the_wait(
    cluster: rdmeta.EmbeddedCluster, now: Looks
) -> None:
    broker, words, says = cluster.broker(3), ("--broker", "3"), "broker 3 is not listed"
    broker.down()
    try:
        unmet(cluster, now, *words, says=says)
        assert waited_until(cluster, *words, says=says, act=broker.up).code == 0
    finally:
        broker.up()


# ---- holds --------------------------------------------------------------------------------------


def held(cluster: rdmeta.EmbeddedCluster, *words: str, act: Callable[[Running], None]) -> Any:
    """Runs a wait of 30 s with a hold of 10 s; returns its JSON."""
    timed = ("--hold", "10", "--timeout", "30", "--json", "-X", "reconnect.backoff.max.ms=100")
    given = ("wait", "-b", cluster.bootstrap, "-v", *OFTEN, *timed, *words)
    done = commands.run(*given, meanwhile=act)
    assert done.code == 0, done.err
    return commands.checked_json(done.out)


def test_a_hold_takes_its_time(cluster: rdmeta.EmbeddedCluster, now: Looks) -> None:
    def pass_time(running: Running) -> None:
        until_says(running, "everything holds; it must stand for 10 s")
        now.pass_time(9.5)
        now.look(0)
        assert not running.has_ended
        now.advance(0.5)

    found = held(cluster, "--no-urp", act=pass_time)
    assert (found["held"], found["seconds"]) == (10.0, 10.0)


def test_a_hold_ends_by_the_clock_of_the_machine_too(cluster: rdmeta.EmbeddedCluster) -> None:
    """Between two answers the command itself asks for the last one."""
    found = result(waited(cluster, "--no-urp", "--hold", "0.3", "--json"))
    assert 0.3 <= found["held"] <= found["seconds"] < 5


def test_a_break_begins_the_hold_anew(cluster: rdmeta.EmbeddedCluster, now: Looks) -> None:
    cluster.create_topic("shaky", partitions=1, replication_factor=1)

    def break_it(running: Running) -> None:
        until_says(running, "everything holds")
        now.look(4)
        cluster.set_leader("shaky", 0, None)
        until_says(running, "shaky-0 has no leader")
        cluster.set_leader("shaky", 0, 1)
        until_says(running, "everything holds")
        now.pass_time(10)

    found = held(cluster, "-t", "shaky", act=break_it)
    assert (found["held"], found["seconds"]) == (10.0, 14.0)


WHOLE: Any = SimpleNamespace(request=SimpleNamespace(topics=rdmeta.ALL))


@pytest.fixture
def looking() -> tuple[wait._Wait, rdmeta.MetadataCache, list[str]]:
    """Returns a wait of a minute for --no-urp, its cache, and the lines that it says."""
    cache, lines = rdmeta.MetadataCache(), list[str]()
    told: Any = SimpleNamespace(progress=lambda text: None, fault=lines.append)
    client: Any = SimpleNamespace(cache=cache)
    return wait._Wait(client, Conditions(no_urp=True), 60.0, 60.0, told), cache, lines


def test_a_break_between_two_answers_begins_the_hold_anew(
    looking: tuple[wait._Wait, rdmeta.MetadataCache, list[str]],
) -> None:
    """The client does not ask while the leader changes twice; a later epoch tells of it."""
    waiting, cache, _ = looking
    for epoch, batch, is_unbroken in ((5, [WHOLE], True), (6, [], True), (8, [], False)):
        apply_answer(cache, T("quick", [P(0, 1, epoch)]))
        waiting._look(batch)
        assert (waiting._since is not None) == is_unbroken


def test_states_that_the_command_has_not_seen_begin_the_hold_anew(
    looking: tuple[wait._Wait, rdmeta.MetadataCache, list[str]],
) -> None:
    """A break may hide between two looks if the cache has had several new states since."""
    waiting, cache, _ = looking
    with rdmeta.EmbeddedCluster(brokers=1) as cluster:
        feed(cache, answer(cluster, 8), 8)
        waiting._look([WHOLE])
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


def test_a_pause_without_answers_begins_the_hold_anew(now: Looks) -> None:
    with rdmeta.EmbeddedCluster(brokers=1) as cluster:

        def fall_silent(running: Running) -> None:
            until_says(running, "everything holds")
            now.look(4)
            cluster.broker(1).down()
            now.advance(6)
            cluster.broker(1).up()
            now.look(0)
            now.pass_time(10)

        found = held(cluster, "-t", "NOPE", "--gone", act=fall_silent)
    assert (found["held"], found["seconds"]) == (10.0, 20.0)


def test_a_hold_that_is_not_over_at_the_end_is_told(
    cluster: rdmeta.EmbeddedCluster, now: Looks
) -> None:
    cluster.create_topic("slow", partitions=1, replication_factor=1)
    cluster.set_leader("slow", 0, None)

    def lead_late(running: Running) -> None:
        until_says(running, "slow-0 has no leader")
        now.look(4)
        cluster.set_leader("slow", 0, 1)
        until_says(running, "everything holds")
        now.pass_time(12)

    words = ["wait", "-b", cluster.bootstrap, "-v", *OFTEN, "-t", "slow"]
    done = commands.run(*words, "--hold", "15", "--timeout", "16", meanwhile=lead_late)
    said = "rdmeta: not so after 16 s: everything held for 12.0 of 15 s only"
    assert (done.code, done.err.splitlines()[-1]) == (1, said)


def test_brokers_that_fall_silent_are_told_of_at_the_end(
    looking: tuple[wait._Wait, rdmeta.MetadataCache, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting, _, lines = looking
    monkeypatch.setattr(wait, "time", SimpleNamespace(monotonic=lambda: waiting._heard + 61))
    assert waiting._unmet(90) == 1
    assert lines[0].endswith("; no broker has answered for 61 s")


# ---- no answers, and bad input ------------------------------------------------------------------


def test_without_an_answer_the_exit_code_is_3_and_the_cause_is_told() -> None:
    done = commands.run("wait", "-b", "127.0.0.1:1", "-t", "orders", "--timeout", "0.3", "--json")
    assert (done.code, done.out, done.err.count("\n")) == (3, "", 1)
    assert "127.0.0.1:1: cannot connect: Connection refused" in done.err


def test_a_wrong_password_ends_the_wait_at_once_with_3() -> None:
    with Brokers(1, guard=Guard(None, LoginServer({"alice": "secret"}))) as brokers:
        words = ["-X", "security.protocol=sasl_plaintext", "-X", "sasl.mechanism=PLAIN"]
        words += ["-X", "sasl.username=alice", "-t", "orders", "--timeout", "30", "-q"]
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


def test_a_cluster_is_named_in_lines_and_in_json(
    cluster: rdmeta.EmbeddedCluster, tmp_path: Path, now: Looks
) -> None:
    env = commands.clusters(tmp_path, here=cluster.bootstrap, b="b")
    words = ["wait", "-t", "NOPE", "--timeout", "20", "--json"]

    def pass_time(running: Running) -> None:
        until_says(running, "topic NOPE does not exist")
        now.pass_time(20)

    done = commands.run(*words, "-c", "here", "-v", *OFTEN, env=env, meanwhile=pass_time)
    said = "rdmeta: here: not so after 20 s: topic NOPE does not exist"
    assert done.err.splitlines()[-1] == said
    assert commands.checked_json(done.out)["cluster"] == "here"
    done = commands.run(*words, "-c", "all", env=env)
    assert done.err == "rdmeta: this command asks one cluster: -c takes one name here\n"


# ---- a terminal ---------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_terminal_shows_what_is_missing_behind_a_spinner(cluster: rdmeta.EmbeddedCluster) -> None:
    words = ["wait", "-b", cluster.bootstrap, "-t", "NOPE", "--timeout", "60"]
    with commands.Terminal(*words) as terminal:
        terminal.wait_for("/ waiting: topic NOPE does not exist")
        terminal.resize(24, 20)
        terminal.wait_for("| waiting: topic NO")
        terminal.type("\x03")
        assert terminal.end() == 130
        assert terminal.raw.endswith("\r\x1b[2K")  # nothing of it stays


@pytest.mark.slow
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
    with commands.started("wait", "-b", cluster.bootstrap, "-v", *words) as process:
        assert any("topic NOPE does not" in each for each in iter(process.stderr.readline, ""))
        assert process.ended(number) == (code, "", "")

"""`rdmeta watch` prints changes as they come, and says when brokers go away and come back."""

from __future__ import annotations

import csv
import json
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import commands
import pytest
from broker import Brokers
from clocks import Clock
from in_process import Running
from waiting import until

import rdmeta
from rdmeta import ALL, Client, MetadataCache
from rdmeta.cli import following, watch
from rdmeta.cli.shared_options import Target
from rdmeta.net.handshake import METADATA

OFTEN = ("-X", "topic.metadata.refresh.interval.ms=20")


@pytest.fixture
def brokers() -> Iterator[Brokers]:
    with Brokers(3) as made:
        made.truth.create("orders", partitions=2)
        made.truth.create("clicks")
        yield made


def answers(brokers: Brokers) -> int:
    """Returns the number of Metadata requests so far."""
    return len(brokers.requests())


def until_begun(brokers: Brokers, since: float = 0) -> None:
    """Returns when a command that began at `since` has surely had its first answer.

    It asks again on a connection only after an answer there. On a busy machine it asks several
    brokers before the first one answers.
    """

    def has_begun() -> bool:
        asked = [
            Counter(each.connection for each in broker.seen(METADATA) if each.at > since)
            for broker in brokers
        ]
        return any(count > 3 for counter in asked for count in counter.values())

    until(has_begun, "some answers")


@contextmanager
def watching(brokers: Brokers, *words: str) -> Iterator[commands.Started]:
    """Yields a running command that has had its first answer."""
    since = time.monotonic()
    with commands.started("watch", "-b", brokers.bootstrap, *OFTEN, *words) as process:
        until_begun(brokers, since)
        yield process


def set_isr(brokers: Brokers, topic: str, partition: int, isr: tuple[int, ...]) -> None:
    found = brokers.truth.topics[topic]
    partitions = list(found.partitions)
    partitions[partition] = replace(partitions[partition], isr=isr)
    brokers.truth.topics[topic] = replace(found, partitions=partitions)


def watched(brokers: Brokers, *words: str, meanwhile: Callable[[Running], object]) -> commands.Done:
    """Runs the command; it has had its first answer when `meanwhile` begins."""
    since = time.monotonic()

    def act(running: Running) -> None:
        until_begun(brokers, since)
        meanwhile(running)

    return commands.run("watch", "-b", brokers.bootstrap, *OFTEN, *words, meanwhile=act)


def cells(running: Running) -> list[str]:
    """Returns the cells of the next line."""
    return running.out.next_line().rstrip("\n").split("\t")


def of_json(running: Running) -> Any:
    """Returns the next line, which is JSON."""
    return commands.checked_json(running.out.next_line())


# ---- what is printed ----------------------------------------------------------------------------


def test_changes_are_lines_and_the_first_state_is_none(brokers: Brokers) -> None:
    def check(running: Running) -> None:
        assert cells(running) == ["time", "topic", "partition", "kind", "change"]
        brokers.truth.lead("orders", 0, 2)
        row = cells(running)
        assert row[1:] == ["orders", "0", "leader_changed", "1 (epoch 0) -> 2 (epoch 1)"]
        assert row[0].endswith("Z")
        set_isr(brokers, "orders", 1, (2, 3))
        assert cells(running)[1:] == ["orders", "1", "isr_changed", "2,3,1 -> 2,3"]
        brokers.truth.lead("clicks", 0, -1)
        row = cells(running)
        assert row[1:] == ["clicks", "0", "leader_changed", "1 (epoch 0) -> none (epoch 1)"]
        running.interrupt()

    assert watched(brokers, meanwhile=check).code == 130


def test_json_is_one_object_per_line(brokers: Brokers) -> None:
    def check(running: Running) -> None:
        del brokers.truth.brokers[3]
        found = of_json(running)
        assert (found["kind"], found["broker"], found["topic"]) == ("broker_removed", 3, None)
        brokers.truth.lead("orders", 0, 2)
        found = of_json(running)
        assert found["old"] == {"leader": 1, "leader_epoch": 0}
        assert found["new"] == {"leader": 2, "leader_epoch": 1}
        assert "cluster" not in found
        set_isr(brokers, "orders", 1, (2, 3))
        assert of_json(running)["new"] == [2, 3]
        running.interrupt()

    watched(brokers, "--json", meanwhile=check)


def test_csv_has_the_old_and_the_new_value_apart(brokers: Brokers) -> None:
    def change(running: Running) -> None:
        set_isr(brokers, "orders", 1, (2, 3))

    done = watched(brokers, "--csv", "--count", "1", meanwhile=change)
    header, row = csv.reader(done.out.splitlines())
    assert header == ["time", "topic", "partition", "kind", "old", "new"]
    assert row[1:] == ["orders", "1", "isr_changed", "2,3,1", "2,3"]


@pytest.mark.parametrize(
    "words", [["-t", "orders"], ["-t", "/rd/"], ["-t", "/^x/", "-t", "orders"]]
)
def test_only_the_wanted_topics_are_shown(brokers: Brokers, words: list[str]) -> None:
    def change(running: Running) -> None:
        brokers.truth.lead("clicks", 0, 2)
        del brokers.truth.brokers[3]
        done = answers(brokers)
        until(lambda: answers(brokers) > done + 2, "answers with these changes")
        brokers.truth.lead("orders", 0, 2)

    done = watched(brokers, *words, "--count", "1", meanwhile=change)
    assert [line.split("\t")[1] for line in done.out.splitlines()] == ["topic", "orders"]
    assert done.code == 0


def test_topics_by_name_are_asked_for_alone(brokers: Brokers) -> None:
    watched(brokers, "-t", "orders", meanwhile=Running.interrupt)
    asked = [seen.asked.body.topics for seen in brokers.requests()]
    assert {topic.name for topics in asked for topic in topics} == {"orders"}


def test_a_topic_that_is_not_there_is_told_and_its_creation_is_a_change(brokers: Brokers) -> None:
    def create(running: Running) -> None:
        assert running.err.next_line() == "rdmeta: topic new does not exist yet\n"
        assert running.err.next_line() == "rdmeta: no topic matches /^other/ yet\n"
        brokers.truth.create("new")

    done = watched(brokers, "-t", "new", "-t", "/^other/", "--count", "1", meanwhile=create)
    header, row = done.out.splitlines()
    assert (header[:4], row.split("\t")[1:4]) == ("time", ["new", "-", "topic_added"])


@pytest.mark.parametrize("words", [(), ("-t", "orders")])
@pytest.mark.parametrize("nodes", [1, 3])
def test_a_deletion_is_told_once_though_a_broker_lags(nodes: int, words: tuple[str, ...]) -> None:
    with Brokers(nodes) as brokers:
        brokers.truth.create("orders")

        def delete(running: Running) -> None:
            if nodes > 1:
                lagging = min(brokers, key=lambda each: each.count())
                lagging.truth = copy(brokers.truth)
                lagging.truth.topics = dict(brokers.truth.topics)
            brokers.truth.delete("orders")
            while json.loads(running.out.next_line())["kind"] != "topic_removed":
                pass
            done = answers(brokers)
            until(lambda: answers(brokers) > done + 10, "answers after the removal")
            brokers.truth.create("orders")
            running.out.next_line()
            running.interrupt()

        out = watched(brokers, "--json", *words, meanwhile=delete).out
    kinds = [json.loads(line)["kind"] for line in out.splitlines()]
    is_sure = nodes == 1 and words  # the only broker says that there is no such topic
    assert kinds == ["topic_absent", "topic_removed", "topic_added"][1 if is_sure else 0 :]


def test_the_time_ends_the_command(brokers: Brokers, monkeypatch: pytest.MonkeyPatch) -> None:
    now = Clock()
    monkeypatch.setattr(watch, "time", now)

    def pass_time(running: Running) -> None:
        running.out.next_line()
        now.advance(59)
        seen = answers(brokers)
        until(lambda: answers(brokers) > seen + 2, "more answers")
        assert not running.has_ended
        now.advance(1)

    done = watched(brokers, "--for", "60", meanwhile=pass_time)
    assert done == (0, "time\ttopic\tpartition\tkind\tchange\n", "")


def test_the_count_ends_the_command_in_the_midst_of_an_answer(brokers: Brokers) -> None:
    def widen(running: Running) -> None:
        brokers.truth.widen("orders", 9)

    done = watched(brokers, "--count", "2", "--json", meanwhile=widen)
    assert (done.code, len(done.out.splitlines())) == (0, 2)


def test_a_terminal_gets_columns(brokers: Brokers) -> None:
    words = ("watch", "-b", brokers.bootstrap, *OFTEN)
    with commands.Terminal(*words) as terminal:
        terminal.wait_for("time")
        brokers.truth.lead("orders", 0, 2)
        terminal.wait_for("  orders          0  leader_changed  1 (epoch 0) -> 2 (epoch 1)\n")
        terminal.resize(10, 20)
        brokers.truth.lead("orders", 1, 3)
        terminal.wait_for("  orders          1  leader_changed  2 (epoch 0) -> 3 (epoch 1)\n")
        assert "\x1b[1mtime" in terminal.raw
        terminal.type("\x03")
        assert terminal.end() == 130
        assert "Traceback" not in terminal.text


def test_a_terminal_gets_no_colors_if_it_wants_none(brokers: Brokers) -> None:
    words = ("watch", "-b", brokers.bootstrap, "--no-color")
    with commands.Terminal(*words) as terminal:
        terminal.wait_for("kind")
        terminal.type("\x03")
        assert terminal.end() == 130
        assert terminal.text.startswith("time  ")
        assert "\x1b" not in terminal.raw


# ---- what goes wrong ----------------------------------------------------------------------------


def test_brokers_that_go_away_and_come_back_are_a_line_each(brokers: Brokers) -> None:
    def fail(running: Running) -> None:
        for each in brokers:
            each.down()
        running.err.next_line()
        for each in brokers:
            each.accept()
        running.err.next_line()
        brokers.truth.lead("orders", 0, 2)
        assert cells(running)[0] == "time"
        assert cells(running)[3] == "leader_changed"
        running.interrupt()

    lines = watched(brokers, meanwhile=fail).err.splitlines()
    assert len(lines) >= 2
    # A connection that the brokers still had in their queue may break once more.
    assert all(line.startswith("rdmeta: no broker answers: 127.0.0.1:") for line in lines[::2])
    assert all(" answers again, after " in line for line in lines[1::2])


def test_several_clusters_are_told_apart_and_one_that_fails_is_a_line(
    brokers: Brokers, tmp_path: Path
) -> None:
    with Brokers(1) as others:
        others.truth.create("other")
        places = {"here": brokers.bootstrap, "gone": "127.0.0.1:1", "there": others.bootstrap}
        env = commands.clusters(tmp_path, **places)
        words = ("watch", "-c", "all", "--timeout", "0.5", "--count", "2", *OFTEN)

        def check(running: Running) -> None:
            until_begun(brokers)
            until_begun(others)
            brokers.truth.lead("orders", 0, 2)
            assert cells(running)[:2] == ["time", "cluster"]
            assert cells(running)[1:3] == ["here", "orders"]
            assert running.err.next_line().startswith("rdmeta: gone: there was no answer in time")
            others.truth.create("another")
            assert cells(running)[1:3] == ["there", "another"]

        assert commands.run(*words, env=env, meanwhile=check).code == 3


def test_a_cluster_that_answers_later_joins_the_others(brokers: Brokers, tmp_path: Path) -> None:
    with Brokers(1) as late:
        late[1].down()
        places = {"here": brokers.bootstrap, "late": late.bootstrap, "wrong": "h:h:h"}
        env = commands.clusters(tmp_path, **places)
        words = ("watch", "-c", "all", "--timeout", "0.5", "--count", "1", *OFTEN)

        def check(running: Running) -> None:
            next_line = running.err.next_line
            assert next_line().startswith("rdmeta: wrong: bootstrap.servers: not a")
            assert next_line().startswith("rdmeta: late: there was no answer in time")
            late[1].accept()
            assert next_line() == "rdmeta: late: broker 1 answers now\n"
            late.truth.create("new")
            assert cells(running)[:2] == ["time", "cluster"]
            assert cells(running)[1:3] == ["late", "new"]

        assert commands.run(*words, env=env, meanwhile=check).code == 2


def test_a_time_that_is_over_before_the_first_answer_ends_with_3(brokers: Brokers) -> None:
    for each in brokers:
        each.freeze()
    done = commands.run("watch", "-b", brokers.bootstrap, "--for", "0.5")
    for each in brokers:
        each.thaw()
    assert (done.code, done.out, done.err.count("\n")) == (3, "", 1)
    assert "there was no answer in 0.5 s" in done.err


def test_changes_that_the_cache_could_not_keep_are_told(
    brokers: Brokers, monkeypatch: pytest.MonkeyPatch
) -> None:
    def small(target: Target, topics: Sequence[str], *, sticky: bool) -> Client:
        conf = {**target.conf, "topic.metadata.refresh.interval.ms": "100"}
        return Client(conf, cache=MetadataCache(ring_bytes=4096), topics=topics or ALL)

    monkeypatch.setattr(following, "following", small)
    for each in range(500):
        brokers.truth.create(f"t{each}")

    def change(running: Running) -> None:
        until_begun(brokers)
        brokers.truth.topics = {
            name: replace(topic, partitions=[replace(p, epoch=9) for p in topic.partitions])
            for name, topic in brokers.truth.topics.items()
        }

    words = ("watch", "-b", brokers.bootstrap, "--json", "--count", "1", "--for", "30")
    done = commands.run(*words, meanwhile=change)
    assert commands.checked_json(done.out)["kind"] == "resync"
    assert "rdmeta: more changes came than the client keeps" in done.err


# ---- how it ends --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "code", "form"), [(signal.SIGINT, 130, "--json"), (signal.SIGTERM, -15, "--csv")]
)
def test_a_signal_ends_the_command_after_whole_lines(
    brokers: Brokers, number: int, code: int, form: str
) -> None:
    with watching(brokers, form) as process:
        brokers.truth.lead("orders", 0, 2)
        first = process.stdout.readline()
        done = process.ended(number)
        assert (done.code, done.err) == (code, "")
        assert (first + done.out).endswith("\n")


def test_a_reader_that_goes_away_ends_the_command_quietly(brokers: Brokers) -> None:
    with watching(brokers) as process:
        process.stdout.close()
        brokers.truth.lead("orders", 0, 2)
        assert process.wait(30) == 0
        assert process.stderr.read() == ""


def test_a_pipe_gets_lines_without_rich(brokers: Brokers) -> None:
    assert "rich" not in commands.modules_of("watch", "-b", brokers.bootstrap, "--for", "0.2")


# ---- the table that redraws ---------------------------------------------------------------------


@pytest.mark.proof
def test_a_live_table_shows_the_state_and_the_last_changes(brokers: Brokers) -> None:
    words = ("watch", "-b", brokers.bootstrap, *OFTEN, "--live")
    with commands.Terminal(*words, columns=120) as terminal:
        terminal.wait_for("3        2       3")
        brokers.truth.lead("orders", 0, 2)
        terminal.wait_for("1 (epoch 0)")
        terminal.resize(12, 90)
        set_isr(brokers, "orders", 1, (2, 3))
        terminal.wait_for("isr_changed")
        terminal.type("\x03")
        assert terminal.end() == 130
        assert terminal.raw.count("\x1b[?1049h") == terminal.raw.count("\x1b[?1049l") == 1
        assert "Traceback" not in terminal.text


def test_lines_about_a_cluster_stay_when_the_live_table_is_gone(brokers: Brokers) -> None:
    words = ("watch", "-b", brokers.bootstrap, *OFTEN, "--live", "-t", "NOPE")
    with commands.Terminal(*words, columns=120) as terminal:
        terminal.wait_for("topic NOPE does not exist yet")
        terminal.process.send_signal(signal.SIGTERM)
        assert terminal.end() == -signal.SIGTERM
        outside = [part.partition("\x1b[?1049l")[2] for part in terminal.raw.split("\x1b[?1049h")]
        assert any("rdmeta: topic NOPE does not exist yet" in each for each in outside)


def test_a_narrow_live_table_without_an_answer_cuts_off_texts_and_ends_with_3() -> None:
    words = ("watch", "-b", "127.0.0.1:1", "--live", "--timeout", "0.5")
    with commands.Terminal(*words, columns=80) as terminal:
        assert terminal.end() == 3
        header = terminal.text.splitlines()[0]
        assert "brokers  topics  partitions  leaderless  urp  offline  nonpreferred" in header
        assert "0        0       0           0           0    0        0" in terminal.text
        assert "waits for …" in terminal.text
        assert "Connection refused" in terminal.raw.rpartition("\x1b[?1049l")[0]


def test_a_lost_connection_is_no_loss_of_the_cluster_while_another_one_is_ready(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    events: following.Events = SimpleQueue()
    followed = following.Feed(Target(None, {"bootstrap.servers": "127.0.0.1:1"}), (), events)
    lost = rdmeta.errors.TransportError("the broker closed the connection")
    problem = rdmeta.Problem(lost, rdmeta.Node(1, "127.0.0.1", 1), "the connection broke")
    nodes = {1: {"state": "disconnected"}, 2: {"state": "ready"}}
    monkeypatch.setattr(followed.client, "stats", lambda: {"nodes": nodes})
    followed._failed((problem,))
    assert events.empty()
    nodes[2]["state"] = "disconnected"
    followed._failed((problem,))
    assert events.get_nowait().kind == "away"
    followed.client.close()


def test_a_live_table_without_rich_says_what_to_install() -> None:
    program = "import sys; sys.modules['rich.console'] = None\n" + commands.PROGRAM
    words = ("watch", "-b", "127.0.0.1:1", "--live")
    with commands.Terminal(*words, program=program) as terminal:
        assert terminal.end() == 2
        assert terminal.text == "rdmeta: --live needs more packages: pip install -e '.[cli]'\n"


def test_a_dumb_terminal_gets_no_live_table(brokers: Brokers) -> None:
    words = ("watch", "-b", brokers.bootstrap, "--live")
    with commands.Terminal(*words, env={"TERM": "dumb"}) as terminal:
        assert terminal.end() == 2
        said = "rdmeta: --live needs a terminal that can redraw: set TERM, or leave it out\n"
        assert terminal.text == said

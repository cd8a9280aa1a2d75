"""`rdmeta record` writes the history of clusters to Parquet."""

from __future__ import annotations

import random
import re
import resource
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta, timezone, tzinfo
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import commands
import pyarrow.parquet as pq
import pytest
from broker import DESCRIBE_CONFIGS, Brokers
from clocks import Clock
from in_process import Running
from small_disk import filled, small_disk
from waiting import until

import rdmeta
from rdmeta import history
from rdmeta.cli import cluster_recording as recording_module
from rdmeta.cli import record
from rdmeta.cli.cluster_recording import ClusterRecording
from rdmeta.cli.messages import FINE, NO_ANSWER, Messages
from rdmeta.cli.min_isr_asker import Asker, KnownMinIsrs
from rdmeta.cli.shared_options import Target
from rdmeta.cli.status import Status
from rdmeta.health import MIN_ISR
from rdmeta.history.schema import Footer
from rdmeta.net.handshake import METADATA

FAST = ("--every", "0.05", "--flush-every", "0.05")
UNKNOWN = (
    "min.insync.replicas is unknown: the broker speaks no version of DescribeConfigs, this client"
    " speaks 1-4"
)


@pytest.fixture(autouse=True)
def looks_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets a command in the process look for files often: one wait counts as a test's sleep."""
    monkeypatch.setattr(record, "_TICK_S", 0.05)


@pytest.fixture
def cluster() -> Iterator[rdmeta.EmbeddedCluster]:
    with rdmeta.EmbeddedCluster(brokers=3) as made:
        made.create_topic("orders", partitions=2, replication_factor=3)
        yield made


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "history"


def words(cluster: rdmeta.EmbeddedCluster, directory: Path, *more: str) -> tuple[str, ...]:
    return ("record", "-b", cluster.bootstrap, "-o", str(directory), *more)


def other_lines(err: str) -> str:
    """Returns what a command said, without the line that the brokers of a test cause.

    They have no DescribeConfigs. A command that ends early may not have noticed that.
    """
    return re.sub(rf"rdmeta: (\w+: )?{re.escape(UNKNOWN)}\n", "", err)


def until_seen(cluster: rdmeta.EmbeddedCluster) -> None:
    """Returns when a recorder has seen the cluster as it is now.

    A broker that gets a third request has answered two. Requests to several brokers tell nothing,
    as a slow answer is asked for at another broker, too.
    """

    def is_seen() -> bool:
        asked = Counter(each.broker for each in cluster.requests() if each.api_key == METADATA)
        return any(number > 2 for number in asked.values())

    cluster.track_requests()
    until(is_seen, "an answer")


def kinds(directory: Path, topic: str | None = None) -> list[str]:
    """Returns the kinds of the changes in a directory, or of those of one topic."""
    return [each.kind for each in history.changes(directory) if topic in (None, each.topic)]


def test_changes_of_a_cluster_are_recorded_until_the_time_is_over(
    cluster: rdmeta.EmbeddedCluster, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = Clock()

    def change(running: Running) -> None:
        running.out.next_line()
        cluster.create_topic("clicks")
        cluster.set_leader("orders", 1, None)
        until_seen(cluster)
        now.advance(60)

    monkeypatch.setattr("rdmeta.cli.record.time", now)
    timed = ("-q", "--for", "60", "--json")  # a busy machine makes the client warn
    done = commands.run(*words(cluster, directory, *FAST, *timed), meanwhile=change)
    assert (done.code, done.err) == (0, "")
    told = [*map(commands.checked_json, done.out.splitlines())]
    written = sorted(directory.rglob("*.parquet"))
    assert sorted(Path(each["file"]) for each in told) == written
    assert {each.path for each in history.files(directory)} <= set(written)
    (recording,) = history.recordings(directory)
    assert {each["session"] for each in told} == {recording.session}
    assert {each["cluster_id"] for each in told} == {recording.cluster_id}
    found = kinds(directory)
    assert (found[0], found[-1]) == ("observed_from", "observed_to")
    assert "topic_added" in kinds(directory, "clicks")
    assert "leader_changed" in kinds(directory, "orders")


def test_files_are_lines_of_output(cluster: rdmeta.EmbeddedCluster, directory: Path) -> None:
    done = commands.run(*words(cluster, directory, "--for", "0.1"))
    assert (done.code, other_lines(done.err)) == (0, "")
    assert done.out.splitlines() == [str(each.path) for each in history.files(directory)]


@pytest.mark.proof
def test_sigterm_ends_a_recording_whole(cluster: rdmeta.EmbeddedCluster, directory: Path) -> None:
    with commands.started(*words(cluster, directory, "-q", "--every", "0.1")) as process:
        process.next_line()
        cluster.create_topic("clicks")
        until_seen(cluster)
        assert process.ended(signal.SIGTERM)[::2] == (-signal.SIGTERM, "")
    assert kinds(directory)[-1] == "observed_to"
    assert "topic_added" in kinds(directory, "clicks")


@pytest.mark.proof
def test_ctrl_c_ends_a_recording_whole(cluster: rdmeta.EmbeddedCluster, directory: Path) -> None:
    with commands.started(*words(cluster, directory, "-q", "--every", "0.1")) as process:
        process.next_line()
        assert process.ended(signal.SIGINT)[::2] == (130, "")
    assert kinds(directory)[-1] == "observed_to"


@pytest.mark.slow
def test_a_recorder_that_is_killed_leaves_whole_files(
    cluster: rdmeta.EmbeddedCluster, directory: Path
) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed={seed}")
    chance = random.Random(seed)
    fast = ("--every", "0.005", "--flush-every", "0.005")
    for number in range(4):
        with commands.started(*words(cluster, directory, *fast)) as process:
            process.next_line()
            cluster.create_topic(f"clicks-{number}")
            seen = len(history.files(directory))
            until(lambda: len(history.files(directory)) > seen, "another file")  # noqa: B023
            time.sleep(chance.uniform(0, 0.05))
            process.kill()
            process.wait()
    found = history.recordings(directory)
    assert len(found) == 4
    assert all(each.observed_to > each.observed_from for each in found)
    assert "observed_to" not in kinds(directory)
    added = {each.topic for each in history.changes(directory) if each.kind == "topic_added"}
    assert added >= {f"clicks-{number}" for number in range(3)}
    assert commands.run(*words(cluster, directory, "--for", "0.5")).code == 0
    assert len(history.recordings(directory)) == 5


@pytest.mark.slow
def test_rows_that_no_file_can_take_wait_for_one(
    cluster: rdmeta.EmbeddedCluster, directory: Path
) -> None:
    """A limit on the size of files stands for a full disk."""
    with commands.started(*words(cluster, directory, *FAST)) as process:
        process.next_line()
        _, hard = resource.prlimit(process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (0, hard))
        cluster.create_topic("clicks")
        said = filter(other_lines, iter(process.stderr.readline, ""))
        assert next(said) == (
            f"rdmeta: {directory}: a file cannot be written: File too large; the rows stay in"
            " memory, and each answer brings another attempt\n"
        )
        until_seen(cluster)
        cluster.delete_topic("clicks")
        until_seen(cluster)
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (hard, hard))
        assert "rdmeta: recording goes on\n" in said
        process.ended(signal.SIGTERM)
    assert len(history.recordings(directory)) == 1
    found = [kind for kind in kinds(directory, "clicks") if kind in ("topic_added", "topic_absent")]
    assert (found[0], found[-1]) == ("topic_added", "topic_absent")


@pytest.mark.slow
def test_rows_of_a_full_disk_wait_for_space(
    cluster: rdmeta.EmbeddedCluster, tmp_path: Path
) -> None:
    with small_disk(tmp_path / "disk") as directory:
        with commands.started(*words(cluster, directory, *FAST)) as process:
            process.next_line()
            said = filter(other_lines, iter(process.stderr.readline, ""))
            with filled(directory):
                cluster.create_topic("clicks")
                assert next(said) == (
                    f"rdmeta: {directory}: a file cannot be written: No space left on device; the"
                    " rows stay in memory, and each answer brings another attempt\n"
                )
                assert not history.look(directory).quarantined
                until_seen(cluster)
            assert "rdmeta: recording goes on\n" in said
            process.ended(signal.SIGTERM)
        assert len(history.recordings(directory)) == 1
        assert "topic_added" in kinds(directory, "clicks")
        with filled(directory):
            done = commands.run(*words(cluster, directory, *FAST, "--for", "0.5"))
        assert done.code == 2
        assert "No space left on device; its rows are lost\n" in done.err
        assert "Traceback" not in done.err


@pytest.mark.slow
def test_rows_that_are_lost_at_the_end_are_told(
    cluster: rdmeta.EmbeddedCluster, directory: Path
) -> None:
    slow = ("--every", "0.1", "--for", "1")
    with commands.started(*words(cluster, directory, *slow)) as process:
        process.next_line()
        _, hard = resource.prlimit(process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (0, hard))
        done = process.ended()
    said = f"rdmeta: {directory}: a file cannot be written: File too large; its rows are lost\n"
    assert (done.code, other_lines(done.err)) == (2, said)
    assert len(list(directory.rglob("*.parquet"))) == 1


def test_clusters_are_recorded_side_by_side_in_one_directory(
    cluster: rdmeta.EmbeddedCluster, directory: Path, tmp_path: Path
) -> None:
    with rdmeta.EmbeddedCluster(brokers=1) as other:
        other.create_topic("other")
        env = commands.clusters(tmp_path, here=cluster.bootstrap, there=other.bootstrap)
        more = ("--for", "0.1", "--json", "--timeout", "5")
        done = commands.run("record", "-c", "all", "-o", str(directory), *more, env=env)
    assert (done.code, other_lines(done.err)) == (0, "")
    told = [commands.checked_json(line) for line in done.out.splitlines()]
    assert {each["cluster"] for each in told} == {"here", "there"}
    found = history.recordings(directory)
    assert {each.cluster_id for each in found} == {each["cluster_id"] for each in told}
    assert len(found) == 2


def test_a_cluster_that_fails_is_a_line_and_is_asked_further(
    cluster: rdmeta.EmbeddedCluster, directory: Path, tmp_path: Path
) -> None:
    with rdmeta.EmbeddedCluster(brokers=1) as other:
        other.broker(1).down()
        env = commands.clusters(tmp_path, here=cluster.bootstrap, late=other.bootstrap)
        soon = ("-X", "reconnect.backoff.max.ms=100")
        more = ("--every", "0.1", "--timeout", "1", "--json", "-q", *soon)

        def check(running: Running) -> None:
            assert commands.checked_json(running.out.next_line())["cluster"] == "here"
            assert running.err.next_line().startswith("rdmeta: late: ")
            other.broker(1).up()
            assert commands.checked_json(running.out.next_line())["cluster"] == "late"
            running.interrupt()

        given = ("record", "-c", "all", "-o", str(directory), *more)
        assert commands.run(*given, env=env, meanwhile=check).code == 130
    assert len(history.recordings(directory)) == 2


def test_one_cluster_of_two_that_never_answers_makes_the_exit_code_3(
    cluster: rdmeta.EmbeddedCluster, directory: Path, tmp_path: Path
) -> None:
    env = commands.clusters(tmp_path, here=cluster.bootstrap, gone="127.0.0.1:1")
    more = ("--for", "0.2", "--timeout", "0.5")
    done = commands.run("record", "-c", "here,gone", "-o", str(directory), *more, env=env)
    assert (done.code, len(history.recordings(directory))) == (3, 1)
    assert "rdmeta: gone: " in done.err
    assert "127.0.0.1:1" in done.err


def test_a_cluster_that_does_not_answer_ends_with_3(directory: Path) -> None:
    more = ("-o", str(directory), "--timeout", "0.5")
    done = commands.run("record", "-b", "127.0.0.1:1", *more)
    assert (done.code, done.out, done.err.count("\n")) == (3, "", 1)
    assert "127.0.0.1:1" in done.err
    assert list(directory.iterdir()) == []


def test_another_broker_answers_when_the_first_one_fails(
    cluster: rdmeta.EmbeddedCluster, directory: Path
) -> None:
    first = None

    def fail(running: Running) -> None:
        nonlocal first
        running.out.next_line()
        until(lambda: len(history.files(directory)) > 1, "a second answer")
        sources = [each.source_broker for each in history.changes(directory)]
        cluster.create_topic("clicks")
        until(lambda: "topic_added" in kinds(directory, "clicks"), "the topic is recorded")
        (first,) = {
            each.source_broker for each in history.changes(directory) if each.topic == "clicks"
        }
        assert first is not None
        assert set(sources) <= {None, first}
        cluster.broker(first).down()
        cluster.create_topic("payments")
        until(lambda: "topic_added" in kinds(directory, "payments"), "another broker answers")
        running.interrupt()

    err = commands.run(*words(cluster, directory, *FAST), meanwhile=fail).err
    (second,) = {
        each.source_broker for each in history.changes(directory) if each.topic == "payments"
    }
    assert second != first
    assert f"rdmeta: broker {second} answers now, after broker {first}\n" in err
    assert len(history.recordings(directory)) == 1


@pytest.mark.slow
def test_a_terminal_has_a_line_that_says_how_things_stand(
    cluster: rdmeta.EmbeddedCluster, directory: Path
) -> None:
    with commands.Terminal(*words(cluster, directory, *FAST), columns=60) as terminal:
        terminal.wait_for("answered 0 s ago")
        terminal.wait_for(".parquet\n")
        terminal.resize(24, 20)
        cluster.create_topic("clicks")
        terminal.wait_for("rows, ")
        terminal.type("\x03")
        assert terminal.end() == 130
    drawn = [part.partition("\r")[0] for part in terminal.raw.split("\r\x1b[2K")[1:]]
    assert max(map(len, (each for each in drawn if "rows, " in each))) < 60
    for file in history.files(directory):
        assert terminal.text.count(f"{file.path}\n") == 1


def test_a_failure_is_no_success_for_a_moment(
    cluster: rdmeta.EmbeddedCluster, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def observe(recorder: history.Recorder) -> int:
        codes.append(made.code)
        raise history.HistoryError("no")

    codes: list[int] = []
    monkeypatch.setattr(history.Recorder, "observe", observe)
    made = recording(cluster, directory, every=0.05)
    made.begin(10)
    until(lambda: len(codes) > 2, "more answers")
    made.close()
    assert set(codes) == {NO_ANSWER}


def test_a_failure_at_the_end_counts_and_the_other_clusters_are_ended_too(
    cluster: rdmeta.EmbeddedCluster,
    directory: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(recorder: history.Recorder) -> None:
        closed.add(recorder)
        raise history.HistoryError("no")

    closed = set[history.Recorder]()
    monkeypatch.setattr(history.Recorder, "close", fail)
    env = commands.clusters(tmp_path, one=cluster.bootstrap, two=cluster.bootstrap)
    given = ("record", "-c", "all", "-o", str(directory), "--for", "0.1", "-q")
    done = commands.run(*given, env=env)
    assert (done.code, done.err) == (NO_ANSWER, "rdmeta: one: no\nrdmeta: two: no\n")
    assert len(closed) == 2


def recording(
    cluster: rdmeta.EmbeddedCluster | Brokers,
    directory: Path,
    every: float = 60.0,
    max_age: str = "",
) -> ClusterRecording:
    """Returns a recording in this process."""
    conf = {"metadata.max.age.ms": max_age} if max_age else {}
    soon = {"retry.backoff.ms": "10", "retry.backoff.max.ms": "10"}
    target = Target(None, {"bootstrap.servers": cluster.bootstrap, **soon, **conf})
    return ClusterRecording(
        target, str(directory), every, 300.0, Status(Messages()), lambda *_: None
    )


def test_only_answers_about_all_topics_are_observed(
    cluster: rdmeta.EmbeddedCluster, directory: Path
) -> None:
    made = recording(cluster, directory)
    answers: list[Any] = []

    def seen(batch: Sequence[Any]) -> None:
        answers.extend(each.request.topics for each in batch)

    made.client.on_update(seen)
    made.begin(10)
    assert (made.code, made.observations) == (FINE, 1)
    made.client.refresh(["orders"], force=True)
    until(lambda: ("orders",) in map(tuple_of, answers), "the answer about one topic is told")
    assert made.observations == 1
    made.client.refresh(rdmeta.ALL, force=True)
    until(lambda: made.observations == 2, "the answer about all topics is observed")
    made.close()


def tuple_of(topics: Any) -> Any:
    return topics if topics is rdmeta.ALL else tuple(topics)


def test_one_broker_answers_while_another_one_is_connected_too(directory: Path) -> None:
    with Brokers(2) as brokers:
        brokers.truth.create("orders")
        made = recording(brokers, directory)
        answers: list[int] = []
        made.client.on_update(lambda batch: answers.extend(each.node.id for each in batch))
        made.begin(10)
        first = next(each for each in brokers if each.open)
        first.freeze()
        made.client.refresh(rdmeta.ALL, force=True, timeout=10)
        first.thaw()
        assert all(each.open for each in brokers)
        answers.clear()
        for _ in range(7):
            made.client.refresh(rdmeta.ALL, force=True, timeout=10)
        until(lambda: len(answers) >= 7, "the answers are told")
        assert len(set(answers[2:])) == 1, answers  # a late answer may come first
        made.close()


def test_a_gap_is_three_intervals_and_at_least_a_minute(
    cluster: rdmeta.EmbeddedCluster, directory: Path
) -> None:
    for every, gap in ((0.5, 60.0), (20.0, 60.0), (30.0, 90.0), (3600.0, 10800.0)):
        made = recording(cluster, directory, every)
        assert (made.max_gap, made.client._config.max_age) == (gap, gap)
        made.close()
    made = recording(cluster, directory, max_age="5000")
    assert made.client._config.max_age == 5.0
    made.close()


def test_a_gap_is_said_once(
    cluster: rdmeta.EmbeddedCluster, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    passed = 0.0

    class Moved(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Moved:
            return super().now(tz) + timedelta(seconds=passed)

    def pause(running: Running) -> None:
        nonlocal passed
        running.out.next_line()
        for count in (2, 3):
            passed += 100.0
            until(lambda: len(history.recordings(directory)) >= count, "another one")  # noqa: B023
        running.interrupt()

    monkeypatch.setattr(recording_module, "datetime", Moved)
    now = SimpleNamespace(monotonic=lambda: time.monotonic() + passed)
    monkeypatch.setattr(recording_module, "time", now)
    done = commands.run(*words(cluster, directory, *FAST), meanwhile=pause)
    assert done.err.count("no observation for") == 1


def test_an_observation_has_the_time_of_its_answer(
    cluster: rdmeta.EmbeddedCluster, directory: Path
) -> None:
    """A disk that blocks for a while does not make the history claim that time."""
    made = recording(cluster, directory)
    made.begin(10)
    begun = datetime.now(timezone.utc)
    made._updated((rdmeta.Updated(rdmeta.Request(), Any, None, rdmeta.Node(1, "", 1)),))  # type: ignore[arg-type]
    made.close()
    (found,) = history.recordings(directory)
    assert found.observed_to <= begun


def test_a_cluster_without_a_name_needs_one(
    cluster: rdmeta.EmbeddedCluster, directory: Path, tmp_path: Path
) -> None:
    cluster.set_api_version(3, 0, 1)
    done = commands.run(*words(cluster, directory, "--for", "0.3", "--every", "0.05"))
    assert (done.code, done.out) == (3, "")
    assert "rdmeta: the brokers do not name their cluster" in done.err
    assert done.err.count("name their cluster") == 1
    env = commands.clusters(tmp_path, prod=cluster.bootstrap)
    done = commands.run("record", "-c", "prod", "-o", str(directory), "--for", "0.1", env=env)
    assert done.code == 0
    assert [each.cluster_id for each in history.recordings(directory)] == ["prod"]


def test_a_directory_that_cannot_be_written_ends_with_2(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root can write to every directory, and may run the tests."""
    directory.mkdir()
    monkeypatch.setattr("os.access", lambda *_: False)
    done = commands.run("record", "-b", "127.0.0.1:1", "-o", str(directory))
    assert (done.code, done.err) == (2, f"rdmeta: {directory}: Permission denied\n")


def test_nothing_is_imported_early() -> None:
    """Its help is there without pyarrow, too."""
    loaded = commands.modules_of("record", "--help")
    assert not {"pyarrow", "rich", "asyncio", "ssl"} & loaded


@pytest.fixture
def brokers() -> Iterator[Brokers]:
    """Brokers that tell configurations."""
    with Brokers(2) as two:
        for name in ("orders", "secret"):
            two.truth.create(name, partitions=2)
            two.truth.configs[name] = {MIN_ISR: "2"}
        yield two


def min_isrs(directory: Path) -> list[tuple[str | None, str | None]]:
    """Returns the recorded topics and their min ISR, in the order of the rows."""
    rows = (row for row in history.changes(directory) if row.kind == "config_changed")
    return [(row.topic, row.detail) for row in rows]


def footers(directory: Path) -> list[Footer]:
    """Returns the footers of all files."""
    files = history.files(directory)
    return [Footer.parse(pq.read_schema(each.path).metadata) for each in files]


def test_min_isr_is_recorded_of_all_topics_and_of_new_ones(
    brokers: Brokers, directory: Path
) -> None:
    words = ("record", "-b", brokers.bootstrap, "-o", str(directory), *FAST)

    def create(running: Running) -> None:
        running.out.next_line()
        until(lambda: len(min_isrs(directory)) == 2, "the topics' min ISR is recorded")
        brokers.truth.create("clicks")
        until(lambda: len(min_isrs(directory)) == 3, "that of the new topic, too")
        running.interrupt()

    assert commands.run(*words, meanwhile=create).err == ""
    assert min_isrs(directory) == [
        ("orders", f"{MIN_ISR}=2"),
        ("secret", f"{MIN_ISR}=2"),
        ("clicks", f"{MIN_ISR}=1"),
    ]
    asked = [len(seen.asked.body.resources) for seen in brokers.requests(DESCRIBE_CONFIGS)]
    assert asked == [2, 1]
    assert {each.min_isr for each in footers(directory)} == {None, "known"}


@pytest.mark.parametrize(
    ("denied", "answer", "known"), [(("secret",), "known", 1), (("orders", "secret"), "denied", 0)]
)
def test_a_min_isr_that_is_denied_is_unknown_and_said_once(
    brokers: Brokers, directory: Path, denied: tuple[str, ...], answer: str, known: int
) -> None:
    brokers.deny_configs(*denied, "secret-2")
    words = ("record", "-b", brokers.bootstrap, "-o", str(directory), *FAST)

    def create(running: Running) -> None:
        running.out.next_line()
        until(lambda: answer in {each.min_isr for each in footers(directory)}, "the footer says it")
        brokers.truth.create("secret-2")
        until(lambda: len(brokers.requests(DESCRIBE_CONFIGS)) == 2, "the new topic is asked for")
        running.interrupt()

    assert commands.run(*words, meanwhile=create).err == (
        "rdmeta: min.insync.replicas is unknown (TOPIC_AUTHORIZATION_FAILED: it needs"
        f" DESCRIBE_CONFIGS): {', '.join(denied)}\n"
    )
    assert len(min_isrs(directory)) == known


def test_brokers_that_tell_no_configurations_are_a_line_once(
    cluster: rdmeta.EmbeddedCluster, directory: Path
) -> None:
    def create(running: Running) -> None:
        running.out.next_line()
        until(lambda: {each.min_isr for each in footers(directory)} > {None}, "the footer says it")
        cluster.create_topic("clicks")
        until(lambda: "topic_added" in kinds(directory, "clicks"), "the topic is recorded")
        running.interrupt()

    done = commands.run(*words(cluster, directory, *FAST), meanwhile=create)
    assert done.err.count(UNKNOWN) == 1
    assert footers(directory)[-1].min_isr == "unsupported"
    assert min_isrs(directory) == []


def test_a_question_for_the_min_isr_that_stays_unanswered_delays_nothing(
    brokers: Brokers, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, answered = threading.Event(), threading.Event()

    def wait(_: Asker, names: Iterable[str]) -> KnownMinIsrs:
        asked.set()
        answered.wait(30)
        return KnownMinIsrs(dict.fromkeys(names, 1), {})

    monkeypatch.setattr(Asker, "_answer", wait)
    made = recording(brokers, directory, every=0.05)
    made.begin(10)
    assert asked.wait(10)
    seen = made.observations
    until(lambda: made.observations > seen + 5, "more answers are observed")
    answered.set()
    made.close()
    assert len(history.recordings(directory)) == 1


def test_footers_have_the_name_of_the_cluster(
    cluster: rdmeta.EmbeddedCluster, directory: Path, tmp_path: Path
) -> None:
    env = commands.clusters(tmp_path, prod=cluster.bootstrap)
    done = commands.run("record", "-c", "prod", "-o", str(directory), "--for", "0.1", env=env)
    assert done.code == 0
    assert {each.name for each in footers(directory)} == {"prod"}


@pytest.mark.slow
def test_each_day_is_a_recording_in_a_folder_of_its_own(
    cluster: rdmeta.EmbeddedCluster, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = datetime(2026, 3, 28, 23, 59, 59, tzinfo=timezone.utc)
    begin = datetime.now(timezone.utc)

    class Moved:
        @staticmethod
        def now(_: timezone) -> datetime:
            return late + (datetime.now(timezone.utc) - begin)

    monkeypatch.setattr("rdmeta.cli.cluster_recording.datetime", Moved)
    made = recording(cluster, directory, every=0.1)
    made.begin(10)
    until(lambda: made.file_count >= 3, "midnight has passed")
    made.close()
    old, new = history.recordings(directory)
    assert old.observed_to == new.observed_from == datetime(2026, 3, 29, tzinfo=timezone.utc)
    days = [each.name for each in sorted(directory.glob("*/*"))]
    assert days == ["day=2026-03-28", "day=2026-03-29"]

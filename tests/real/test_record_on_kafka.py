"""`rdmeta record`, `publish` and `image` on Apache Kafka while brokers are killed."""

from __future__ import annotations

import functools
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

import commands
import pytest
from commanded import Commanded
from waiting import until

import rdmeta
from rdmeta import history
from rdmeta.model import Change

pytestmark = [pytest.mark.slow, pytest.mark.kills, pytest.mark.timeout(200)]

TOPIC = "recorded"


@pytest.fixture(scope="module")
def cluster(commanded: Commanded) -> Commanded:
    """Returns the cluster with a topic of which each node leads a partition."""
    commanded.kafka.create(TOPIC, [[1, 2, 3], [2, 3, 1], [3, 1, 2]])
    return commanded


def source(cluster: Commanded) -> tuple[str, ...]:
    """Returns the options that name the cluster, by SASL_SSL."""
    return ("-F", str(cluster.secured))


def first_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().rstrip("\n")


def recorded(directory: Path, kind: str, topic: str | None = None) -> list[Change]:
    """Returns the changes of a kind that are on the disk, of one topic if it is given."""
    found = [each for each in history.changes(directory) if each.kind == kind]
    return [each for each in found if topic in (None, each.topic)]


def has_returned(directory: Path, topic: str, broker: int) -> bool:
    """Returns whether the history says that a broker is in each ISR of a topic again."""
    isrs = {each.partition: each.new_isr for each in recorded(directory, "isr_changed", topic)}
    return len(isrs) == 3 and all(broker in (isr or ()) for isr in isrs.values())


def test_another_broker_goes_on_when_the_recorders_one_is_killed(
    cluster: Commanded, tmp_path: Path
) -> None:
    topic = "told"
    words = ("record", "-o", str(tmp_path), "--every", "0.5", "--flush-every", "0.5")
    with commands.started(*words, *source(cluster)) as process:
        first_line(process)
        cluster.kafka.until(lambda: len(history.files(tmp_path)) > 1, "a second answer")
        cluster.kafka.create(topic, [[1, 2, 3], [2, 3, 1], [3, 1, 2]])
        added = functools.partial(recorded, tmp_path, "topic_added", topic)
        until(added, "the topic is recorded")
        until(lambda: recorded(tmp_path, "config_changed", topic), "its min ISR is recorded")
        asked = {each.source_broker for each in added()}
        dead = asked.pop()
        assert dead is not None
        assert not asked
        cluster.kafka.kill(dead)
        until(lambda: recorded(tmp_path, "broker_removed"), "the loss is recorded")
        until(lambda: recorded(tmp_path, "leader_changed", topic), "the election is recorded")
        cluster.kafka.recover()
        until(lambda: has_returned(tmp_path, topic, dead), "the return is recorded")
        process.terminate()
        _, err = process.communicate(timeout=30)
    assert process.returncode == -signal.SIGTERM
    assert f"answers now, after broker {dead}\n" in err
    (recording,) = history.recordings(tmp_path)
    assert recording.cluster_id == cluster.kafka.cluster_id
    check(list(history.changes(tmp_path)), topic, dead)


def check(found: list[Change], topic: str, dead: int) -> None:
    """Checks what a history says about a broker that was killed and came back."""
    assert (found[0].kind, found[-1].kind) == ("observed_from", "observed_to")
    times = [each.observed_at for each in found]
    assert times == sorted(times)
    removed = [each for each in found if each.kind == "broker_removed"]
    assert [each.broker for each in removed] == [dead]
    # A broker that is dead tells nothing, and the history has one view at a time.
    tellers = {each.source_broker for each in found if each.observed_at > removed[0].observed_at}
    assert dead not in tellers
    assert len(tellers - {None}) == 1
    added = [each for each in found if each.kind == "broker_added" and each.source_broker]
    assert [each.broker for each in added] == [dead]
    of_topic = [each for each in found if each.topic == topic]
    assert {each.partition for each in of_topic if each.kind == "isr_changed"} == {0, 1, 2}
    assert {each.old_leader for each in of_topic if each.kind == "leader_changed"} == {dead}
    offline = [each for each in of_topic if each.kind == "offline_changed"]
    assert {each.new_offline for each in offline} == {(), (dead,)}
    assert {each.partition for each in offline} == {0, 1, 2}
    configs = [each for each in of_topic if each.kind == "config_changed"]
    assert [each.detail for each in configs] == ["min.insync.replicas=1"]


def agree(saved: Path, published: Path, source: Sequence[str]) -> bool:
    """Saves the state anew; returns whether nothing differs from the published one.

    Brokers lag behind each other for a moment after an earlier test.
    """
    assert commands.run("image", "save", str(saved), *source).code == 0
    return commands.run("image", "diff", str(saved), str(published)).code == 0


def test_a_saved_and_a_published_state_differ_by_a_broker_that_is_killed(
    cluster: Commanded, tmp_path: Path
) -> None:
    saved, published = tmp_path / "saved", tmp_path / "published"
    secured = source(cluster)
    done = commands.run("image", "save", str(saved), *secured, "--json")
    assert (done.code, done.err) == (0, "")
    assert commands.checked_json(done.out)["brokers"] == 3
    assert commands.run("image", "verify", str(saved)).code == 0
    with commands.started("publish", str(published), *secured, "--every", "0.5") as process:
        assert first_line(process) == f"READY {published}"
        attached = rdmeta.attach(published)
        until(lambda: agree(saved, published, secured), "a state of now is the published one")
        dead = attached.leader(TOPIC, 2)
        cluster.kafka.kill(dead)
        until(lambda: dead not in {each.id for each in attached.brokers}, "the loss is published")
        until(lambda: attached.leader(TOPIC, 2, dead) != dead, "the election is published")
        done = commands.run("image", "diff", str(saved), str(published), "--json")
        assert done.code == 1
        changes = commands.checked_json(done.out)["changes"]
        kinds = {(each["kind"], each["topic"], each["partition"]) for each in changes}
        assert ("leader_changed", TOPIC, 2) in kinds
        assert ("broker_removed", None, None) in kinds
        process.terminate()
        process.communicate(timeout=30)
    now = commands.run("image", "diff", str(saved), *secured)
    assert now.code == 1
    assert f"\n{TOPIC}\t2\tleader_changed\t{dead} (epoch " in now.out

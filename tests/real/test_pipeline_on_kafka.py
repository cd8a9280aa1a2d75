"""Silver says what happened to Apache Kafka: a broker is killed and comes back, topics come and go.

Two recorders see it. Bounds are times that the test has measured, and the recorders' own gaps.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import commands
import pyarrow.parquet as pq
import pytest
from agreement import Row, Told, compare, rows, told
from commanded import Commanded
from confluent_kafka import ElectionType, TopicPartition
from gold_model import with_times
from kraft_logs import copy_node
from recorded import tree
from waiting import until

from rdmeta import MetadataCache, fetch, history, report
from rdmeta._change_table import END_KINDS
from rdmeta._moments import microseconds, parse_moment
from rdmeta.model import Partition
from rdmeta.pipeline.gold.measures import MEASURES

pytestmark = [pytest.mark.slow, pytest.mark.kills, pytest.mark.timeout(240)]

# Two topics that stay, with their min ISR; one that comes again; one that comes while 2 is away.
STAYING = {"silver-strict": 2, "silver-lenient": 1}
AGAIN, LATE = "silver-again", "silver-late"
TOPICS = (*STAYING, AGAIN, LATE)
REPLICAS = [[1, 2, 3], [2, 3, 1], [3, 1, 2]]
DEAD = 2
LED = 1  # the partition whose preferred leader dies
EVERY = ("0.5", "0.8")
# `make nightly` leaves the broker away for a minute.
AWAY_SECONDS = float(os.environ.get("RDMETA_AWAY_SECONDS", "0"))


class Moment(NamedTuple):
    """When something was not so yet, and when the first and the last broker said so, in us."""

    before: int
    first: int
    last: int

    @property
    def lag(self) -> int:
        return self.last - self.first


class Outage(NamedTuple):
    """The moments that the test saw, the topics' ids, and the recordings' directories.

    A recorder with only two looks, before and after, has a directory of its own.
    """

    lost: Moment
    back: Moment
    led: Moment
    ids: dict[str, list[str | None]]  # of each topic, in turn
    recordings: list[Path]
    seldom: Path


def now() -> int:
    return time.time_ns() // 1000


def partitions(cluster: Commanded, node: int, topic: str) -> Sequence[Partition]:
    return cluster.kafka.asked(node, [topic]).topic(topic).partitions


def topic_id(cluster: Commanded, topic: str) -> str | None:
    return cluster.kafka.asked(1, [topic]).topic(topic).topic_id


def moment(cluster: Commanded, before: int, holds: Callable[[Partition], bool]) -> Moment:
    """Waits until each running broker says that all partitions of the topics that stay are so."""

    def says(node: int) -> bool:
        return all(holds(p) for topic in STAYING for p in partitions(cluster, node, topic))

    waiting, times = sorted(cluster.kafka.running), list[int]()
    while waiting:
        cluster.kafka.until(lambda: any(map(says, waiting)), f"brokers {waiting} say so")
        for node in [node for node in waiting if says(node)]:
            waiting.remove(node)
            times.append(now())
    return Moment(before, times[0], times[-1])


def has_lost(p: Partition) -> bool:
    return p.leader not in (DEAD, None) and DEAD not in (p.isr or ())


def is_back(p: Partition) -> bool:
    return set(p.isr or ()) == {1, 2, 3}


def is_led(p: Partition) -> bool:
    return is_back(p) and p.leader == p.replicas[0]


def created(cluster: Commanded, topic: str, replicas: list[list[int]], min_isr: int) -> str | None:
    """Creates a topic on brokers that run; returns its id."""
    cluster.kafka.create(topic, replicas, {"min.insync.replicas": str(min_isr)})
    return topic_id(cluster, topic)


def said(directory: Path, kind: str, topic: str) -> list[Any]:
    found = history.changes(directory)
    return [each for each in found if (each.kind, each.topic) == (kind, topic)]


def has_all(directory: Path) -> bool:
    """Returns whether a recording has the last that happened: the preferred leaders."""
    led = [said(directory, "leader_changed", topic) for topic in STAYING]
    return all(each and each[-1].new_leader == DEAD for each in led)


def has_begun(directory: Path) -> bool:
    return directory.exists() and all(said(directory, "config_changed", t) for t in STAYING)


def has_ended(directory: Path, topic: str) -> bool:
    return any(said(directory, kind, topic) for kind in END_KINDS)


def reaches(directory: Path, when: datetime) -> bool:
    (recording,) = history.recordings(directory)
    return recording.observed_to > when


def is_told(directory: Path, topic: str, topic_id: str | None) -> bool:
    """Returns whether a recording has the min ISR of this very topic."""
    return any(each.topic_id == topic_id for each in said(directory, "config_changed", topic))


def elect(cluster: Commanded) -> None:
    wanted = [TopicPartition(topic, p) for topic in STAYING for p in range(3)]
    admin = cluster.kafka.admin
    admin.elect_leaders(ElectionType.PREFERRED, wanted).result(30)


def happen(cluster: Commanded, directories: list[Path], seldom: Path) -> Outage:
    """Kills the broker and starts it again; meanwhile topics come and go."""
    kafka, ids = cluster.kafka, {t: [topic_id(cluster, t)] for t in (*STAYING, AGAIN)}
    recorder = history.Recorder(cache := MetadataCache(), seldom, max_gap=3600.0)
    look(cluster, cache, recorder)
    before = now()
    kafka.kill(DEAD)
    lost = moment(cluster, before, has_lost)
    time.sleep(AWAY_SECONDS)
    admin = cluster.kafka.admin
    admin.delete_topics([AGAIN])[AGAIN].result(30)
    for each in directories:
        until(partial(has_ended, each, AGAIN), "the end is recorded")
    ids[AGAIN].append(created(cluster, AGAIN, [[1, 3]], 1))
    ids[LATE] = [created(cluster, LATE, [[3, 1]], 2)]
    for each in directories:
        for topic in (AGAIN, LATE):
            until(partial(is_told, each, topic, ids[topic][-1]), "its min ISR is recorded")
    before = now()
    kafka.start(DEAD)
    back = moment(cluster, before, is_back)
    before = now()
    elect(cluster)
    led = moment(cluster, before, is_led)
    for each in directories:
        until(partial(has_all, each), "the last change is recorded")
    # One recording ends before the other, which tells of the rest: it must know all by then.
    end = datetime.now(timezone.utc)
    for each in directories:
        until(partial(reaches, each, end), "both have the last state")
    look(cluster, cache, recorder)
    recorder.close()
    return Outage(lost, back, led, ids, directories, seldom)


def look(cluster: Commanded, cache: MetadataCache, recorder: history.Recorder) -> None:
    fetch(cache, cluster.kafka.address(1), timeout=5)
    recorder.observe()


@pytest.fixture(scope="module")
def outage(
    commanded: Commanded, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Commanded, Outage]:
    """Returns the cluster and what happened to it, as two recorders saw it."""
    for topic, min_isr in {**STAYING, AGAIN: 2}.items():
        created(commanded, topic, REPLICAS, min_isr)
    directories = [tmp_path_factory.mktemp("recorded") / every for every in EVERY]
    with ExitStack() as stack:
        recorders = [
            stack.enter_context(
                commands.started(
                    "record", "-o", str(directory), "--every", every, "--flush-every", "0.2",
                    "-F", str(commanded.secured),
                )
            )
            for directory, every in zip(directories, EVERY, strict=True)
        ]  # fmt: skip
        for each in directories:
            until(partial(has_begun, each), "the min ISRs are recorded")
        found = happen(commanded, directories, tmp_path_factory.mktemp("seldom"))
        recorders[0].send_signal(signal.SIGINT)
        recorders[1].terminate()
        for recorder in recorders:
            recorder.communicate(timeout=30)
        assert [each.returncode for each in recorders] == [130, -signal.SIGTERM]
    return commanded, found


def pipelined(*paths: Path) -> dict[str, Any]:
    """Runs the pipeline over directories into the last path; returns what it says."""
    done = commands.run("pipeline", "all", *map(str, paths), "--engine", "local", "--json")
    assert done.code == 0, done.err
    told: dict[str, Any] = commands.checked_json(done.out)
    assert (told["quarantined"], told["holes"], told["faults"]) == (0, 0, [])
    assert told["rows_in"] == told["rows_out"]
    return told


def of(found: list[Row], **wanted: Any) -> list[Row]:
    return [row for row in found if all(row[name] == value for name, value in wanted.items())]


def spans(found: list[Row]) -> list[tuple[int, int]]:
    return sorted((row["began_at"], row["ended_at"]) for row in found)


def check_times(out: Path) -> tuple[int, int]:
    """Checks that pieces lie end to end, and sum up; returns from when to when was observed."""
    observed = [row for row in rows(out, "observation") if row["counts_from"] is not None]
    begin, end = min(r["counts_from"] for r in observed), max(r["counts_to"] for r in observed)
    pieces = rows(out, "partition_interval")
    assert all(row["us"] == row["ended_at"] - row["began_at"] for row in pieces)
    assert not [row for row in pieces if row["partial"]]
    for key in {(row["topic"], row["partition"]) for row in pieces}:
        found = spans(of(pieces, topic=key[0], partition=key[1]))
        ends = [(before[1], after[0]) for before, after in zip(found, found[1:], strict=False)]
        if key[0] in STAYING:
            assert (found[0][0], found[-1][1]) == (begin, end), key
            assert all(ended == began for ended, began in ends), key
        assert all(ended <= began for ended, began in ends), key
    return begin, end


def check_moment(row: Row, when: Moment, gap: int, column: str = "began_at") -> None:
    """Checks that a row's time lies where the test has seen it, and says how late it may be."""
    assert 0 < row["unseen_us"] <= gap + 100_000
    assert row[column] > when.before
    assert row[column] - row["unseen_us"] <= when.last + gap


def check_partitions(out: Path, found: Outage, gap: int) -> None:
    pieces = rows(out, "partition_interval")
    for topic, min_isr in STAYING.items():
        for p, replicas in enumerate(REPLICAS):
            states = of(pieces, topic=topic, partition=p)
            states.sort(key=lambda row: (row["began_at"], row["ended_at"]))
            assert [row["replicas"] for row in states] == [replicas] * len(states)
            assert {row["racks"] for row in states} == {3}
            assert {row["topic_id"] for row in states} == set(found.ids[topic])
            # The brokers tell the min ISR a moment after the recording has begun.
            known = [row["min_isr"] for row in states]
            assert set(known[1:]) == {min_isr}
            assert known[0] in (None, min_isr)
            isrs = [row["isr"] for row in states]
            lost = isrs.index([1, 3])
            back = isrs.index([1, 2, 3], lost)
            assert all(isr == [1, 2, 3] for isr in (*isrs[:lost], *isrs[back:]))
            assert all(isr == [1, 3] for isr in isrs[lost:back])
            check_moment(states[lost], found.lost, gap)
            check_moment(states[back], found.back, gap)
            offline = [row["offline"] for row in states[lost:back]]
            assert [DEAD] in offline
            assert all(row["offline"] == [] for row in (*states[:lost], *states[back:]))
            leaders = [row["leader"] for row in states]
            if p == LED:
                assert set(leaders[:lost]) == {DEAD} == {leaders[-1]}
                assert DEAD not in leaders[lost:back]
                assert states[lost]["began_by"] == "leader_changed"
            else:
                assert set(leaders) == {replicas[0]}


def check_brokers(out: Path, found: Outage, gap: int) -> None:
    before, after = sorted(
        of(rows(out, "broker_interval"), broker=DEAD), key=lambda row: row["began_at"]
    )[:2]
    assert (before["ended_by"], after["began_by"]) == ("broker_removed", "broker_added")
    assert found.lost.before < before["ended_at"] < after["began_at"]
    check_moment(after, Moment(found.lost.last, 0, found.back.last), gap)
    assert before["rack"] == after["rack"] == f"rack-{DEAD}"
    others = [r for r in rows(out, "broker_interval") if r["broker"] != DEAD]
    assert {row["ended_by"] for row in others} == {"gap"}


def check_leaders(out: Path, found: Outage, gap: int, recordings: int) -> None:
    changes = [row for row in rows(out, "leader_change") if row["topic"] in STAYING]
    assert {row["partition"] for row in changes} == {LED}
    for topic in STAYING:
        away, home = sorted(of(changes, topic=topic), key=lambda row: row["new_leader_epoch"])
        assert (away["old_leader"], home["new_leader"]) == (DEAD, DEAD)
        assert away["new_leader"] == home["old_leader"] in (1, 3)
        assert away["new_leader_epoch"] == home["old_leader_epoch"]
        for row, when in ((away, found.lost), (home, Moment(*found.back[:2], found.led.last))):
            assert row["elections"] == row["new_leader_epoch"] - row["old_leader_epoch"] == 1
            assert (row["recordings"], row["source"]) == (recordings, "poll")
            check_moment(row, when, gap, "observed_at")


def check_topics(out: Path, found: Outage) -> None:
    topics = rows(out, "topic_interval")
    old, new = (of(topics, topic=AGAIN, topic_id=each) for each in found.ids[AGAIN])
    assert (len(old), old[0]["partitions"]) == (1, 3)
    # A broker leaves it out, or says that it does not know it. Perhaps only once.
    assert old[0]["ended_by"] in END_KINDS
    assert new[0]["began_by"] in ("topic_added", "topic_recreated")
    assert new[0]["partitions"] == 1
    assert spans(old)[0][1] < spans(new)[0][0]
    (late,) = {row["topic_id"] for row in topics if row["topic"] == LATE}
    assert [late] == found.ids[LATE]
    configs = rows(out, "config_interval")
    assert {row["key"] for row in configs} == {"min.insync.replicas"}
    values = {t: {row["value"] for row in of(configs, resource=t)} for t in TOPICS}
    assert values == {**{t: {str(n)} for t, n in STAYING.items()}, AGAIN: {"1", "2"}, LATE: {"2"}}
    pieces = rows(out, "partition_interval")
    assert {row["min_isr"] for row in of(pieces, topic_id=found.ids[AGAIN][1])} == {None, 1}
    assert {row["min_isr"] for row in of(pieces, topic=LATE)} == {None, 2}


def check_changes(out: Path) -> None:
    changes = rows(out, "change")
    removed, added = (of(changes, kind=f"broker_{end}") for end in ("removed", "added"))
    assert [row["broker"] for row in (*removed, *added)] == [DEAD, DEAD]
    for topic in STAYING:
        shrunk = of(changes, kind="isr_changed", topic=topic, partition=LED)
        assert set(shrunk[0]["new_isr"]) == {1, 3}
        assert set(shrunk[-1]["new_isr"]) == {1, 2, 3}
        offline = of(changes, kind="offline_changed", topic=topic, partition=LED)
        assert [row["new_offline"] for row in offline] == [[DEAD], []]
    assert of(changes, kind="topic_added", topic=LATE)
    assert any(of(changes, kind=kind, topic=AGAIN) for kind in END_KINDS)


def tell(out: Path) -> Told:
    """Returns what the one recording in a folder tells."""
    (seen,) = rows(out, "observation")
    assert (seen["ended_by"], seen["counts_from"]) == ("closed", seen["seen_from"])
    pieces = [row for row in rows(out, "partition_interval") if row["topic"] in TOPICS]
    return told(pieces, seen["seen_to"], seen["longest_gap_us"])


def test_silver_says_what_happened_when_a_broker_was_killed(
    outage: tuple[Commanded, Outage], tmp_path: Path
) -> None:
    _, found = outage
    out = tmp_path / "tables"
    assert pipelined(*found.recordings, out)["made"] == 8 + len(MEASURES)
    seen = rows(out, "observation")
    gap = max(row["longest_gap_us"] for row in seen)
    assert [row["ended_by"] for row in seen] == ["closed", "closed"]
    begin, end = check_times(out)
    assert begin < found.lost.before < found.led.first < end + gap
    check_partitions(out, found, gap)
    check_brokers(out, found, gap)
    check_leaders(out, found, gap, recordings=2)
    check_topics(out, found)
    check_changes(out)
    assert commands.run("pipeline", "check", str(out)).code == 0
    before = tree(out)
    assert pipelined(*found.recordings, out)["made"] == 0
    assert tree(out) == before


def test_the_leader_that_a_recorder_missed_is_told_by_another_one(
    outage: tuple[Commanded, Outage], tmp_path: Path
) -> None:
    _, found = outage
    for others, elections in (([], [2]), (found.recordings[:1], [1, 1])):
        out = tmp_path / str(len(others))
        pipelined(found.seldom, *others, out)
        changes = rows(out, "leader_change")
        for topic in STAYING:
            mine = sorted(of(changes, topic=topic), key=lambda row: row["new_leader_epoch"])
            assert [row["elections"] for row in mine] == elections
            assert (mine[0]["old_leader"], mine[-1]["new_leader"]) == (DEAD, DEAD)


def gold(out: Path, name: str, **wanted: Any) -> list[Row]:
    """Returns rows of a measure, with times in microseconds since 1970."""
    paths = sorted((out / "gold/v1" / name).rglob("*.parquet"))
    assert paths
    found = [row for path in paths for row in pq.ParquetFile(path).read().to_pylist()]
    return of(with_times(found), **wanted)


def summed(found: list[Row], column: str) -> float:
    return float(sum(row[column] for row in found))


class Away(NamedTuple):
    """The least and the most seconds for which replicas can have been missing."""

    least: float
    most: float

    @classmethod
    def of(cls, found: Outage, gap: int) -> Away:
        # The brokers bring the replica back between its start and the last sight of it.
        least = found.back.before - found.lost.last - gap
        return cls(max(0, least) / 1e6, (found.back.last + gap - found.lost.before) / 1e6)

    def holds(self, seconds: float) -> bool:
        return self.least <= seconds <= self.most


def check_risk(out: Path, away: Away) -> None:
    """Checks that each minute at risk is one of the outage, and that the others are not."""
    for topic, min_isr in STAYING.items():
        hours = gold(out, "risk_hour", topic=topic)
        minutes = {kind: summed(hours, kind) for kind in ("under_replicated", "single_copy")}
        assert away.holds(minutes["under_replicated"] * 60 / len(REPLICAS))
        assert minutes["single_copy"] == summed(hours, "under_min_isr") == 0
        # Two of three replicas are in sync: that is the min ISR of the strict topic alone.
        at_min = minutes["under_replicated"] if min_isr == 2 else 0
        assert summed(hours, "at_min_isr") == pytest.approx(at_min)
        assert {row["reassigning"] for row in hours} == {None}
        assert summed(hours, "unknown_reassigning") == summed(hours, "observed")
        assert not any(row["eff_is_exact"] for row in hours)
        assert summed(hours, "rack_unsafe") == summed(hours, "unknown_racks") == 0
        assert away.least <= summed(hours, "not_preferred") * 60


def check_incidents(out: Path, found: Outage, away: Away, gap: int) -> None:
    (incident,) = gold(out, "incident", kind="under_replicated")
    assert not incident["censored"]
    assert found.lost.before < incident["began_at"] <= found.lost.last + gap
    assert found.back.before < incident["ended_at"] <= found.back.last + gap
    assert incident["broker"] == DEAD
    assert incident["most"] >= len(STAYING) * len(REPLICAS)
    assert away.holds((incident["ended_at"] - incident["began_at"]) / 1e6)
    assert gold(out, "incident", kind="under_min_isr") == []
    for topic in STAYING:
        rows_of = gold(out, "recovery", topic=topic)
        assert {row["partition"] for row in rows_of} == {0, 1, 2}
        for row in rows_of:
            assert away.holds(row["seconds"])
            assert (row["brokers"], row["censored"]) == ([DEAD], False)
            # The other partitions were not led by the broker that died.
            assert row["leader_changed"] is (row["partition"] == LED)
        flaps = gold(out, "isr_flap_day", topic=topic)
        assert [(row["broker"], row["times"]) for row in flaps] == [(DEAD, len(REPLICAS))]
        assert away.holds(flaps[0]["median_seconds"])


def check_churn(out: Path) -> None:
    for topic in STAYING:
        (churn,) = gold(out, "churn_day", kind="topic", topic=topic)
        names = ("gained", "lost", "kept", "elections", "unseen_elections", "unclean")
        assert [churn[name] for name in names] == [2, 2, 0, 2, 0, None]
    (dead,) = gold(out, "churn_day", kind="broker", broker=DEAD)
    # The topic that came again loses its leader with its partitions, which is no election.
    assert dead["gained"] == len(STAYING)
    assert dead["lost"] in (len(STAYING), len(STAYING) + 1)
    for hour in gold(out, "balance_hour", kind="broker"):
        assert hour["replicas"] >= hour["preferred"] > 0
        assert (hour["skew"] < 0) == (hour["broker"] == DEAD) or hour["broker"] != DEAD


def check_lives(out: Path, found: Outage, away: Away) -> None:
    for row in gold(out, "broker_day"):
        if row["broker"] == DEAD:
            assert row["restarts"] == 1
            assert 0 < row["away"] * 60 <= away.most
            assert row["up"] + row["away"] == pytest.approx(row["observed"])
            assert len(row["preferred_seconds"]) == 1
        else:
            assert (row["restarts"], row["away"]) == (0, 0)
            assert row["up"] == pytest.approx(row["observed"])
        assert (row["fenced"], row["unclean_restarts"]) == (None, None)
    old, new = (gold(out, "topic_life", topic_id=each) for each in found.ids[AGAIN])
    assert [(row["begin_seen"], row["end_seen"]) for row in old] == [(False, True)]
    assert [(row["begin_seen"], row["end_seen"]) for row in new] == [(True, False)]
    assert old[0]["ended_at"] < new[0]["began_at"]
    assert [row["begin_seen"] for row in gold(out, "topic_life", topic=LATE)] == [True]
    assert {row["key"] for row in gold(out, "config_change")} <= {"min.insync.replicas"}


def page_of(out: Path) -> dict[str, Any]:
    sections = json.loads(report.make(out).json)["sections"]
    return {each["name"]: each["parts"] for each in sections}


def is_outage(incident: dict[str, Any], found: Outage, gap: int) -> bool:
    """Returns whether an incident began with the outage; checks that it names all that was seen."""
    began, ended = (microseconds(parse_moment(incident[at])) for at in ("began_at", "ended_at"))
    if not found.lost.before - 1000 < began <= found.lost.last + gap:
        return False
    assert (incident["kind"], incident["broker"]) == ("under_replicated", DEAD)
    assert f"Broker {DEAD} was out of the ISR for longest." in incident["text"]
    assert set(STAYING) & set(incident["topics_named"])
    assert found.back.before - 1000 < ended <= found.back.last + gap
    return True


def check_page(out: Path, found: Outage, gap: int) -> None:
    """Checks that the report names the broker, the topics and the moments that the test saw."""
    page = page_of(out)
    assert is_outage(page["incidents"][1]["rows"][0], found, gap)
    (away,) = (row for row in page["brokers"][0]["rows"] if row["away"])
    assert (away["broker"], away["restarts"]) == (DEAD, 1)
    assert {row["topic"] for row in page["topics"][-1]["rows"]} >= set(STAYING)


def test_gold_says_just_that(outage: tuple[Commanded, Outage], tmp_path: Path) -> None:
    _, found = outage
    out = tmp_path / "tables"
    pipelined(*found.recordings, out)
    seen = rows(out, "observation")
    gap = max(row["longest_gap_us"] for row in seen)
    begin, end = check_times(out)
    hours = gold(out, "coverage_hour")
    assert summed(hours, "observed") == pytest.approx((end - begin) / 60e6)
    assert summed(hours, "hole") == 0
    assert all(row["holes"] == [] for row in hours)
    away = Away.of(found, gap)
    check_risk(out, away)
    check_incidents(out, found, away, gap)
    check_churn(out)
    check_lives(out, found, away)
    check_page(out, found, gap)
    (quality,) = gold(out, "data_quality")
    names = ("observations", "partial", "holes", "files_aside", "clocks_back")
    assert [quality[name] for name in names] == [2, 0, 0, 0, 0]
    # Both recorders saw the two changes of each topic, at times that differ by their polls.
    assert 0 < quality["epochs_disagreeing"] <= 2 * len(STAYING) + 1
    assert 0 < quality["disagreement_seconds"] * 1e6 <= 2 * gap + found.lost.lag + found.led.lag
    assert gold(out, "reassignment") == gold(out, "controller") == []


def test_the_page_of_the_log_says_it_too(outage: tuple[Commanded, Outage], tmp_path: Path) -> None:
    cluster, found = outage
    for node in cluster.kafka.nodes:
        copy_node(cluster.kafka.directory / f"n{node}", tmp_path / "logs" / f"n{node}")
    pipelined(tmp_path / "logs", tmp_path / "tables")
    page = page_of(tmp_path / "tables")
    # The log also has what other tests did to this cluster before.
    assert any(is_outage(each, found, gap=0) for each in page["incidents"][1]["rows"])
    assert DEAD in {row["broker"] for row in page["brokers"][0]["rows"] if row["away"]}
    assert {row["topic"] for row in page["topics"][-1]["rows"]} >= set(STAYING)


def test_two_recordings_of_a_real_cluster_agree(
    outage: tuple[Commanded, Outage], tmp_path: Path
) -> None:
    _, found = outage
    outs = [tmp_path / each.name for each in found.recordings]
    for recording, out in zip(found.recordings, outs, strict=True):
        pipelined(recording, out)
        check_times(out)
        check_leaders(out, found, tell(out).longest_gap, recordings=1)
    one, other = map(tell, outs)
    lag = max(when.lag for when in (found.lost, found.back, found.led))
    agreed, wrong = compare(one, other, lag)
    assert wrong == []
    # Each of the six partitions was lost, as both have seen.
    assert agreed >= 12
    late = other.shifted(2 * (one.longest_gap + other.longest_gap + lag))
    assert len(compare(one, late, lag)[1]) >= 12

"""Scenarios on Apache Kafka: leaders are killed, stopped, rolled and frozen."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from queue import Queue

import pytest
from both_shells import Shell, both
from broker import METADATA
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from first_word import FirstWord, Word
from real_kafka import RealKafka
from scenario_run import ALONE, LED, Seen, beyond_budget
from ways import WAYS, Way

from rdmeta import Error, MetadataCache, NotCachedError, StaleError, UnknownTopicError, Updated
from rdmeta.client.retry_schedule import ELECTION_S

pytestmark = [pytest.mark.real, pytest.mark.timeout(900)]
each_way = pytest.mark.parametrize("way", WAYS, indirect=True)

# Kafka's codes that a producer gets from a broker that is gone, and from one that leads no more.
NETWORK_EXCEPTION, NOT_LEADER = 13, 6


def words_of(kafka: RealKafka) -> FirstWord:
    """Returns the recorder of what the brokers say about the topics of the scenarios."""
    return FirstWord({node: kafka.address(node) for node in kafka.nodes}, [LED, ALONE])


def led(word: Word, topic: str, partition: int) -> tuple[int, int]:
    """Returns leader and epoch of a partition in a word, -1 if the topic is missing."""
    rows = word.topics.get(topic, [])
    return rows[partition][:2] if partition < len(rows) else (-1, -1)


def after(epoch: int) -> Callable[[Word], bool]:
    """Returns whether a word has a later epoch of partition 0 of LED."""
    return lambda word: led(word, LED, 0)[1] > epoch


def back(partition: int, leader: int) -> Callable[[Word], bool]:
    """Returns whether a word has that leader of a partition of ALONE."""
    return lambda word: led(word, ALONE, partition)[0] == leader


def is_leaderless(partition: int) -> Callable[[MetadataCache], bool]:
    """Returns whether a cache knows that a partition of ALONE has no leader."""
    return lambda cache: cache.partition(ALONE, partition).leader is None


def now_led(kafka: RealKafka, partition: int = 0) -> tuple[int, int]:
    """Returns leader and epoch of a partition of LED, as a running broker says."""
    found = kafka.asked(min(kafka.running), [LED]).partition(LED, partition)
    assert found.leader is not None
    assert found.leader_epoch is not None
    return found.leader, found.leader_epoch


@contextmanager
def watching(way: Way, victim: int) -> Iterator[tuple[list[Shell], list[Shell], list[Shell]]]:
    """Yields clients that are told, that have a connection to the victim, and without either."""
    rarely = {"topic.metadata.refresh.interval.ms": 5000}
    other, itself = way.conf(way.other_than(victim)), way.conf(way.address(victim))
    with (
        both(other, "told", [LED], sticky=True) as told,
        both(itself, "broke", [LED], sticky=True) as broke,
        both({**other, **rarely}, "idle", [LED], sticky=True) as idle,
    ):
        yield told, broke, idle


def lag(shells: list[Shell], word: Word, epoch: int, since: dict[str, int]) -> dict[str, float]:
    """Returns the seconds from a word to each client's change of partition 0 of LED."""
    return {
        shell.kind: shell.knows_epoch(LED, 0, epoch, since[shell.client_id]) - word.at
        for shell in shells
    }


def versions(*groups: list[Shell]) -> dict[str, int]:
    """Returns the version of each client's cache."""
    return {shell.client_id: shell.cache.version for group in groups for shell in group}


@each_way
def test_a_leader_is_killed(
    kafka: RealKafka, way: Way, brokers_name: str, rounds: range, seen: Seen
) -> None:
    for _ in rounds:
        victim, epoch = now_led(kafka)
        with words_of(kafka) as words, watching(way, victim) as (told, broke, idle):
            words.wait(lambda word: LED in word.topics)
            since = versions(told, broke, idle)
            begin = time.time()
            kafka.kill(victim)
            for shell in told:
                shell.call("leader_unavailable", LED, 0, NETWORK_EXCEPTION)
            word = words.wait(after(epoch), begin)
            kafka.start(victim)
            new = led(word, LED, 0)[1]
            for key, shells in (("killed-told", told), ("killed-broke", broke)):
                for kind, seconds in lag(shells, word, new, since).items():
                    seen.add(key, brokers_name, kind, seconds)
            for kind, seconds in lag(idle, word, new, since).items():
                seen.add("killed-idle", brokers_name, kind, seconds)
        kafka.recover()
    seen.check("killed-told", "killed-broke", "killed-idle")


def test_a_leader_is_stopped(
    kafka: RealKafka, way: Way, brokers_name: str, rounds: range, seen: Seen
) -> None:
    for _ in rounds:
        victim, epoch = now_led(kafka)
        alone = victim - 1
        with words_of(kafka) as words, watching(way, victim) as (told, broke, _idle):
            words.wait(lambda word: LED in word.topics)
            for shell in (*told, *broke):
                shell.call("wait_for_topic", ALONE, timeout=30)
            since, begin = versions(told, broke), time.time()
            kafka.terminate(victim)
            word = words.wait(after(epoch), begin)
            for shell in told:
                shell.call("leader_unavailable", LED, 0, NOT_LEADER)
                shell.call("leader_unavailable", ALONE, alone, NOT_LEADER)
            new = led(word, LED, 0)[1]
            for key, shells in (("stopped-told", told), ("stopped-broke", broke)):
                for kind, seconds in lag(shells, word, new, since).items():
                    seen.add(key, brokers_name, kind, seconds)
            for shell in (*told, *broke):
                shell.until(is_leaderless(alone))
                partition = shell.cache.partition(ALONE, alone)
                assert (partition.leaderless, partition.error) == (True, 5)
                assert shell.cache.last_leader(ALONE, alone) == victim
            kafka.stop(victim)
            begin = time.time()
            since = versions(told, broke)
            kafka.start(victim)
            word = words.wait(back(alone, victim), begin)
            for shell in (*told, *broke):
                at = shell.knows_epoch(
                    ALONE, alone, led(word, ALONE, alone)[1], since[shell.client_id]
                )
                assert shell.cache.leader(ALONE, alone) == victim
                if shell in told:
                    seen.add("stopped-alone", brokers_name, shell.kind, at - word.at)
        kafka.recover()
    seen.check("stopped-told", "stopped-broke", "stopped-alone")


class Lookups:
    """An application that looks up 1 000 leaders per second, in a thread; it counts faults."""

    def __init__(self, shell: Shell, partitions: int) -> None:
        self.shell = shell
        self.done = 0
        self.seconds = 0.0
        self.faults: list[str] = []
        self._partitions = partitions
        self._epochs = [-1] * partitions
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Lookups:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(30)

    def _run(self) -> None:
        begin = time.monotonic()
        while not self._stop.wait(0.01):
            while self.done < 1000 * (time.monotonic() - begin):
                self._look(self.done % self._partitions)
                self.done += 1
            self.seconds = time.monotonic() - begin

    def _look(self, partition: int) -> None:
        cache = self.shell.cache
        try:
            cache.leader(LED, partition, None)
            epoch = cache.partition(LED, partition).leader_epoch
        except (NotCachedError, StaleError, UnknownTopicError) as error:
            self.faults.append(repr(error))
            return
        except Error:
            return  # no leader now
        if epoch is None or epoch < self._epochs[partition]:
            self.faults.append(f"epoch {epoch} after {self._epochs[partition]}")
        else:
            self._epochs[partition] = epoch


def longest_staleness(shell: Shell, words: list[Word], since: int) -> float:
    """Returns the longest time from a broker's first word of an epoch to the client's record."""
    first: dict[tuple[int, int], float] = {}
    for word in words:
        for partition in range(len(word.topics.get(LED, []))):
            first.setdefault((partition, led(word, LED, partition)[1]), word.at)
    begin = min(word.at for word in words)
    return max(
        shell.knows_epoch(LED, partition, epoch, since) - at
        for (partition, epoch), at in first.items()
        if at > begin + 1 and epoch > 0
    )


@each_way
def test_three_nodes_are_rolled(
    kafka: RealKafka, way: Way, brokers_name: str, rounds: range, seen: Seen
) -> None:
    for _ in rounds:
        partitions = len(kafka.nodes)
        conf = way.conf(way.bootstrap)
        reader_conf = {**conf, "topic.metadata.refresh.interval.ms": 5000}
        with (
            words_of(kafka) as words,
            both(conf, "roll", [LED]) as told,
            both(reader_conf, "read", [LED]) as readers,
            ExitStack() as stack,
        ):
            words.wait(lambda word: LED in word.topics)
            since = versions(told, readers)
            time.sleep(1.1)  # words from here on are of the roll
            lookups = [stack.enter_context(Lookups(s, partitions)) for s in (*told, *readers)]
            with Producer(told, words, partitions):
                for node in kafka.nodes:
                    kafka.stop(node)
                    kafka.start(node)
                    kafka.until_in_sync(LED)
            for key, shells in (("rolled-told", told), ("rolled-reader", readers)):
                for shell in shells:
                    seconds = longest_staleness(shell, words.words, since[shell.client_id])
                    seen.add(key, brokers_name, shell.kind, seconds)
            stack.close()
            for each in lookups:
                assert each.seconds > 1
                assert each.done > 990 * each.seconds
                assert each.faults == [], each.shell.client_id
        kafka.recover()
    seen.check("rolled-told", "rolled-reader")


class Producer:
    """An application that reports what it would get from an old leader: NOT_LEADER_OR_FOLLOWER."""

    def __init__(self, shells: list[Shell], words: FirstWord, partitions: int) -> None:
        self._shells, self._words, self._partitions = shells, words, partitions
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(30)

    def _run(self) -> None:
        reported = {
            (shell.client_id, p): led(word, LED, p)[1]
            for shell in self._shells
            for word in self._words.words
            for p in range(self._partitions)
        }
        while not self._stop.wait(0.02):
            for word in self._words.words:
                for partition in range(self._partitions):
                    epoch = led(word, LED, partition)[1]
                    for shell in self._shells:
                        place = (shell.client_id, partition)
                        if epoch > reported[place]:
                            reported[place] = epoch
                            shell.call("leader_unavailable", LED, partition, NOT_LEADER)


def hedge_of(shell: Shell) -> float:
    """Returns the seconds without an answer after which a client asks another node: 1 to 10."""
    nodes = shell.call("stats")["nodes"].values()
    slowest = max(node.get("longest_round_trip") or 0.0 for node in nodes)
    return float(min(10.0, max(1.0, 10 * slowest)))


def answering_node(shell: Shell) -> int:
    """Refreshes; returns the id of the broker that answered."""
    batches: Queue[tuple[Updated, ...]] = Queue()
    remove = shell.call("on_update", batches.put)
    shell.call("refresh", timeout=30)
    found = batches.get(timeout=30)[-1].node.id
    remove()
    return found


@each_way
def test_the_node_in_use_is_frozen(
    kafka: RealKafka, way: Way, brokers_name: str, rounds: range, seen: Seen
) -> None:
    for _ in rounds:
        victim, epoch = now_led(kafka)
        conf = way.conf(way.address(victim))
        with words_of(kafka) as words, both(conf, "frozen", [LED], sticky=True) as shells:
            words.wait(lambda word: LED in word.topics)
            for shell in shells:
                assert answering_node(shell) == victim, "another node is in use"
            hedge = {shell.client_id: hedge_of(shell) for shell in shells}
            since, frozen = versions(shells), time.time()
            kafka.freeze(victim)
            timed = [(shell, shell.timed("refresh", timeout=20)) for shell in shells]
            for shell, seconds in timed:
                hedges = seconds.result(60) / hedge[shell.client_id]
                seen.add("frozen", brokers_name, shell.kind, hedges)
            word = words.wait(after(epoch), frozen)
            for shell in shells:
                shell.call("leader_unavailable", LED, 0, NOT_LEADER)
                shell.knows_epoch(LED, 0, led(word, LED, 0)[1], since[shell.client_id])
            kafka.thaw(victim)
            kafka.until_in_sync(LED)
            time.sleep(1)  # the late answer has arrived by then
            truth = now_led(kafka)
            for shell in shells:
                shell.call("refresh", timeout=30)
                partition = shell.cache.partition(LED, 0)
                assert (partition.leader, partition.leader_epoch) == truth
                epochs = [
                    change.new_leader_epoch or 0
                    for change in shell.cache.changes(since[shell.client_id]).records
                    if change.kind == "leader_changed" and change.partition == 0
                ]
                assert epochs == sorted(epochs), "an epoch went back"
        kafka.recover()
    seen.check("frozen")


MANY = [f"many-{i:04}" for i in range(1000)]
LEADERLESS_S = 20
# A busy proxy sees a request so much later than it was sent.
ON_THE_WAY_S = 0.1


def test_a_thousand_topics_lose_their_leader(
    kafka: RealKafka, admin: AdminClient, brokers_name: str, rounds: range, seen: Seen
) -> None:
    victim = kafka.nodes[-1]
    new = [NewTopic(name, 1, replica_assignment=[[victim]]) for name in MANY]
    for created in admin.create_topics(new).values():
        created.result(120)
    kafka.until_in_sync(*MANY)
    conf = {"bootstrap.servers": kafka.client_bootstrap}
    for _ in rounds:
        with both(conf, "storm", MANY) as shells:
            begin = time.monotonic()
            kafka.kill(victim)
            for shell in shells:
                shell.call("leader_unavailable", MANY[0], 0, NETWORK_EXCEPTION)
                shell.until(leaderless_everywhere)
            calm = time.monotonic() + ELECTION_S + 1
            time.sleep(calm + LEADERLESS_S - time.monotonic())
            end = time.monotonic()
            for shell in shells:
                times = [
                    passed.at
                    for proxy in kafka.proxies.values()
                    for passed in proxy.passed(METADATA, shell.client_id, begin)
                    if passed.at < end
                ]
                hurried = [at for at in times if at < calm]
                assert 0 < len(hurried) < (calm - begin) / 0.06
                rest = sorted(at for at in times if at >= calm)
                assert rest, "nothing was asked"
                beyond = beyond_budget(rest, 1.0, ON_THE_WAY_S)
                seen.add("storm", brokers_name, shell.kind, beyond)
            kafka.start(victim)
            for shell in shells:
                shell.until(lambda cache: all(cache.leader(t, 0, None) == victim for t in MANY))
        kafka.recover()
    for deleted in admin.delete_topics(MANY).values():
        deleted.result(120)
    seen.check("storm")


def leaderless_everywhere(cache: MetadataCache) -> bool:
    """Returns whether a cache knows no leader of MANY."""
    return all(cache.leader(topic, 0, None) is None for topic in MANY)

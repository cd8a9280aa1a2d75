"""The embedded cluster: how clients see it, and that it leaves nothing behind."""

from __future__ import annotations

import gc
import importlib
import io
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from kafka.protocol.metadata import MetadataRequest, MetadataResponse

from rdmeta import embedded
from rdmeta.config.address import parse_bootstrap
from rdmeta.embedded import DISCONNECT, EmbeddedCluster
from rdmeta.errors import (
    Error,
    InvalidTopicError,
    MissingExtraError,
    NoSuchPartitionError,
    RequestTimedOutError,
    TransportError,
    UnknownTopicError,
    UnsupportedVersionError,
)
from rdmeta.net.blocking_session import Connection, Deadline
from rdmeta.net.handshake import METADATA

ROOT = Path(__file__).resolve().parent.parent
VERSION = 12


def connect(cluster: EmbeddedCluster, broker: int = 1) -> Connection:
    address = parse_bootstrap(cluster.bootstrap)[broker - 1]
    return Connection(address, Deadline(20), "tester", 1 << 24)


def ask(
    cluster: EmbeddedCluster, topics: list[str] | None = None, *, broker: int = 1, wait: float = 20
) -> MetadataResponse:
    """Returns a broker's answer about `topics`, all if None, as kafka-python decodes it."""
    wanted = None
    if topics is not None:
        wanted = [MetadataRequest.MetadataRequestTopic(name=name) for name in topics]
    request = MetadataRequest(topics=wanted, allow_auto_topic_creation=False)
    with connect(cluster, broker) as connection:
        version = connection.session.version_for(METADATA, 0, VERSION)
        body = connection.request(
            METADATA, version, request.encode(version=version), Deadline(wait)
        )
    return MetadataResponse.decode(io.BytesIO(body), version=version)


def run_python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


def test_a_topic_has_the_partitions_and_replicas_it_was_created_with(
    cluster: EmbeddedCluster,
) -> None:
    cluster.create_topic("orders", partitions=5, replication_factor=2)
    answer = ask(cluster)
    (topic,) = answer.topics
    assert topic.name == "orders"
    assert sorted(p.partition_index for p in topic.partitions) == [0, 1, 2, 3, 4]
    for partition in topic.partitions:
        assert len(set(partition.replica_nodes)) == 2
        assert partition.leader_id in partition.replica_nodes


def test_every_broker_of_the_bootstrap_list_answers_the_same(cluster: EmbeddedCluster) -> None:
    cluster.create_topic("orders", partitions=3)
    answers = [ask(cluster, broker=n).to_dict() for n in (1, 2, 3)]
    assert answers[0] == answers[1] == answers[2]
    addresses = [f"{b['host']}:{b['port']}" for b in answers[0]["brokers"]]
    assert addresses == cluster.bootstrap.split(",")


def test_a_set_leader_leads_at_the_next_epoch(cluster: EmbeddedCluster) -> None:
    cluster.create_topic("orders", partitions=2, replication_factor=3)
    before = {p.partition_index: p for p in ask(cluster).topics[0].partitions}
    other = before[1].leader_id % 3 + 1
    cluster.set_leader("orders", 1, other)
    after = {p.partition_index: p for p in ask(cluster).topics[0].partitions}
    assert (after[1].leader_id, after[1].leader_epoch) == (other, before[1].leader_epoch + 1)
    assert after[0] == before[0]


def test_a_partition_can_be_leaderless(cluster: EmbeddedCluster) -> None:
    cluster.create_topic("orders")
    cluster.set_leader("orders", 0, None)
    assert ask(cluster).topics[0].partitions[0].leader_id == -1


def test_a_pushed_leader_is_named_in_one_answer_only(cluster: EmbeddedCluster) -> None:
    cluster.create_topic("orders", replication_factor=3)
    before = ask(cluster).topics[0].partitions[0]
    cluster.push_leader("orders", 0, before.leader_id % 3 + 1, 77)
    pushed, then = (ask(cluster).topics[0].partitions[0] for _ in range(2))
    assert (pushed.leader_id, pushed.leader_epoch) == (before.leader_id % 3 + 1, 77)
    assert then == before


def test_a_deleted_topic_is_unknown_and_comes_back_as_another(cluster: EmbeddedCluster) -> None:
    cluster.create_topic("orders", partitions=5)
    (old,) = ask(cluster, ["orders"]).topics
    cluster.delete_topic("orders")
    (gone,) = ask(cluster, ["orders"]).topics
    assert (gone.error_code, list(gone.partitions)) == (3, [])
    cluster.create_topic("orders", partitions=2)
    (new,) = ask(cluster, ["orders"]).topics
    assert (new.error_code, len(new.partitions)) == (0, 2)
    assert new.topic_id != old.topic_id


def test_a_topic_error_is_answered_until_it_is_cleared(cluster: EmbeddedCluster) -> None:
    cluster.create_topic("orders")
    cluster.set_topic_error("orders", 29)
    assert ask(cluster, ["orders"]).topics[0].error_code == 29
    cluster.set_topic_error("orders", 0)
    assert ask(cluster, ["orders"]).topics[0].error_code == 0


def test_a_broker_that_is_down_is_not_listed_and_not_reached_until_it_is_up(
    cluster: EmbeddedCluster,
) -> None:
    cluster.broker(1).down()
    is_listed = embedded._function("broker_add") is None  # before 2.10
    assert [b.node_id for b in ask(cluster, broker=2).brokers] == [1, 2, 3][not is_listed :]
    with pytest.raises(TransportError):
        ask(cluster, broker=1)
    cluster.broker(1).up()
    assert [b.node_id for b in ask(cluster, broker=1).brokers] == [1, 2, 3]


def test_a_broker_that_is_down_keeps_its_partitions(cluster: EmbeddedCluster) -> None:
    cluster.create_topic("orders", replication_factor=3)
    cluster.set_leader("orders", 0, 2)
    cluster.broker(2).down()
    assert ask(cluster).topics[0].partitions[0].leader_id == 2


def test_commands_work_while_every_broker_is_down(cluster: EmbeddedCluster) -> None:
    for broker in cluster.brokers:
        broker.down()
    cluster.create_topic("orders")
    for broker in cluster.brokers:
        broker.up()
    assert [topic.name for topic in ask(cluster).topics] == ["orders"]


def test_a_rack_is_advertised(cluster: EmbeddedCluster) -> None:
    assert cluster.broker(2).rack is None
    cluster.broker(2).rack = "zone-b"
    assert cluster.broker(2).rack == "zone-b"
    assert [b.rack for b in ask(cluster).brokers] == [None, "zone-b", None]


def test_a_delayed_broker_answers_after_the_deadline_and_the_others_before(
    cluster: EmbeddedCluster,
) -> None:
    with connect(cluster, 1) as connection:
        cluster.broker(1).delay(30)
        request = MetadataRequest(topics=None, allow_auto_topic_creation=False).encode(version=1)
        with pytest.raises(RequestTimedOutError):
            connection.request(METADATA, 1, request, Deadline(0.1))
    assert len(ask(cluster, broker=2).brokers) == 3
    cluster.broker(1).delay(0)
    assert len(ask(cluster, broker=1).brokers) == 3


def test_a_new_broker_is_listed_and_can_lead(cluster: EmbeddedCluster) -> None:
    cluster.create_topic("orders", partitions=4, replication_factor=3)
    broker = cluster.add_broker()
    assert broker.id == 4
    assert [b.id for b in cluster.brokers] == [1, 2, 3, 4]
    cluster.set_leader("orders", 0, 4)
    answer = ask(cluster)
    assert [b.node_id for b in answer.brokers] == [1, 2, 3, 4]
    leaders = {p.partition_index: p.leader_id for p in answer.topics[0].partitions}
    assert leaders[0] == 4


def test_a_decommissioned_broker_is_gone_and_its_replicas_move(cluster: EmbeddedCluster) -> None:
    cluster.create_topic("orders", partitions=6, replication_factor=2)
    gone = cluster.broker(3)
    gone.decommission()
    answer = ask(cluster)
    assert [b.node_id for b in answer.brokers] == [1, 2]
    for partition in answer.topics[0].partitions:
        assert sorted(partition.replica_nodes) == [1, 2]
    with pytest.raises(Error, match="no broker 3"):
        cluster.broker(3)
    with pytest.raises(Error):
        gone.up()


def test_a_pushed_disconnect_hits_one_request(cluster: EmbeddedCluster) -> None:
    cluster.push_errors(METADATA, [DISCONNECT])
    with pytest.raises(TransportError):
        ask(cluster)
    assert len(ask(cluster).brokers) == 3


def test_a_pushed_disconnect_of_one_broker_spares_the_others(cluster: EmbeddedCluster) -> None:
    cluster.broker(2).push_errors(METADATA, [DISCONNECT])
    assert len(ask(cluster, broker=1).brokers) == 3
    with pytest.raises(TransportError):
        ask(cluster, broker=2)


def test_one_slow_answer_can_be_pushed(cluster: EmbeddedCluster) -> None:
    cluster.broker(1).push_errors(METADATA, [0], delay=30)
    with pytest.raises(RequestTimedOutError):
        ask(cluster, wait=0.2)
    assert len(ask(cluster).brokers) == 3


def test_tracked_requests_name_broker_api_and_time(cluster: EmbeddedCluster) -> None:
    ask(cluster, broker=1)
    cluster.track_requests()
    assert cluster.requests() == []
    before = time.monotonic()
    ask(cluster, broker=2)
    after = time.monotonic()
    requests = cluster.requests()
    # The session's two ApiVersions requests, then the Metadata request; none of the kicker's.
    assert [(r.broker, r.api_key) for r in requests] == [(2, 18), (2, 18), (2, METADATA)]
    assert all(before <= r.at <= after for r in requests)
    cluster.track_requests()
    assert cluster.requests() == []


def test_versions_can_be_narrowed_and_withdrawn(cluster: EmbeddedCluster) -> None:
    cluster.set_api_version(METADATA, 2, 4)
    with connect(cluster) as connection:
        assert connection.session.version_for(METADATA, 0, 13) == 4
    cluster.set_api_version(METADATA, -1, -1)
    with pytest.raises(UnsupportedVersionError, match="no version of Metadata"):
        connect(cluster)


def test_the_controller_is_broker_1_until_it_is_set(cluster: EmbeddedCluster) -> None:
    first = 0 if embedded._function("set_controller_id") is None else 1
    assert (cluster.controller, ask(cluster).controller_id) == (first, first)
    cluster.controller = 3
    assert (cluster.controller, ask(cluster).controller_id) == (3, 3)


def test_what_an_older_librdkafka_lacks_is_named_with_its_release(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ffi, library = embedded._library()

    class Older:
        def __getattr__(self, name: str) -> Any:
            if name.removeprefix("rd_kafka_mock_") in embedded._RELEASES:
                raise AttributeError(name)
            return getattr(library, name)

    monkeypatch.setattr(embedded, "_library", lambda: (ffi, Older()))
    with EmbeddedCluster(brokers=2) as cluster:
        cluster.create_topic("orders", replication_factor=2)
        cluster.set_leader("orders", 0, 2)
        assert ask(cluster).topics[0].partitions[0].leader_id == 2
        for use, release in (
            (lambda: cluster.delete_topic("orders"), "2.15"),
            (cluster.add_broker, "2.10"),
            (cluster.broker(1).decommission, "2.10"),
            (lambda: setattr(cluster, "controller", 2), "2.16"),
            (lambda: cluster.push_errors(METADATA, [DISCONNECT]), "2.15"),
            (lambda: cluster.broker(1).push_errors(METADATA, [0], delay=1), "2.15"),
        ):
            with pytest.raises(Error, match=f"needs confluent-kafka {release} or newer"):
                use()


def test_each_mistake_has_its_own_error(cluster: EmbeddedCluster) -> None:
    cluster.create_topic("orders", partitions=2)
    with pytest.raises(Error, match="orders") as caught:
        cluster.create_topic("orders")
    assert caught.value.code == 36
    with pytest.raises(Error) as caught:
        cluster.create_topic("payments", partitions=0)
    assert caught.value.code == 37
    with pytest.raises(Error) as caught:
        cluster.create_topic("payments", replication_factor=4)
    assert caught.value.code == 38
    with pytest.raises(InvalidTopicError):
        cluster.create_topic("")
    with pytest.raises(InvalidTopicError):
        cluster.create_topic("a\0b")
    with pytest.raises(UnknownTopicError):
        cluster.delete_topic("payments")
    with pytest.raises(UnknownTopicError, match=r"'nope': create_topic\(\) makes it"):
        cluster.set_leader("nope", 0, 1)
    with pytest.raises(NoSuchPartitionError):
        cluster.set_leader("orders", 2, 1)
    with pytest.raises(NoSuchPartitionError):
        cluster.push_leader("orders", 2, 1, 7)
    with pytest.raises(Error) as caught:
        cluster.set_leader("orders", 0, 9)
    assert caught.value.code == 8
    with pytest.raises(ValueError, match="is negative or in use"):
        cluster.add_broker(2)
    for number in (0, 1001, 2**31):
        with pytest.raises(ValueError, match="at least one broker, at most 1000"):
            EmbeddedCluster(brokers=number)
    for wrong in ("3", 1.5, None):
        with pytest.raises(TypeError, match="brokers must be an int"):
            EmbeddedCluster(brokers=wrong)  # type: ignore[arg-type]
    assert [topic.name for topic in ask(cluster).topics] == ["orders"]


def test_a_partition_below_zero_is_refused_and_creates_no_topic(cluster: EmbeddedCluster) -> None:
    with pytest.raises(NoSuchPartitionError):
        cluster.set_leader("orders", -1, 1)
    with pytest.raises(NoSuchPartitionError):
        cluster.push_leader("orders", -1, 1, 7)
    assert ask(cluster).topics == []


def test_too_few_file_descriptors_are_an_error_and_not_the_end_of_the_process() -> None:
    done = run_python(
        "import resource\n"
        "from rdmeta.embedded import EmbeddedCluster\n"
        "from rdmeta.errors import Error\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (80, 80))\n"
        "try: EmbeddedCluster(brokers=100)\n"
        "except Error as error: print(error)\n"
        "with EmbeddedCluster(brokers=2) as cluster: cluster.create_topic('orders')\n"
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "need 132 file descriptors" in done.stdout


def test_several_clusters_are_independent(cluster: EmbeddedCluster) -> None:
    with EmbeddedCluster(brokers=1) as other:
        cluster.create_topic("ours")
        other.create_topic("theirs")
        assert [topic.name for topic in ask(cluster).topics] == ["ours"]
        assert [topic.name for topic in ask(other).topics] == ["theirs"]
        assert ask(cluster).cluster_id != ask(other).cluster_id


def test_threads_may_share_a_cluster(cluster: EmbeddedCluster) -> None:
    def create(worker: int) -> None:
        for n in range(20):
            cluster.create_topic(f"topic-{worker}-{n}")

    threads = [threading.Thread(target=create, args=(worker,)) for worker in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(50)
    assert len(ask(cluster).topics) == 80


def test_after_close_every_use_is_refused_and_no_thread_is_left() -> None:
    threads = set(threading.enumerate())
    cluster = EmbeddedCluster(brokers=2)
    broker = cluster.broker(1)
    address = parse_bootstrap(cluster.bootstrap)[0]
    cluster.close()
    cluster.close()
    assert set(threading.enumerate()) <= threads
    assert "closed" in repr(cluster)
    for use in (
        lambda: cluster.bootstrap,
        lambda: cluster.brokers,
        lambda: cluster.controller,
        lambda: cluster.create_topic("orders"),
        lambda: cluster.add_broker(),
        lambda: cluster.requests(),
        lambda: broker.rack,
        lambda: broker.down(),
        lambda: broker.decommission(),
    ):
        with pytest.raises(Error, match="closed"):
            use()
    with pytest.raises(TransportError):
        Connection(address, Deadline(20), "tester", 1 << 20)


def test_a_cluster_without_references_ends() -> None:
    threads = set(threading.enumerate())
    cluster = EmbeddedCluster(brokers=1)
    address = parse_bootstrap(cluster.bootstrap)[0]
    del cluster
    gc.collect()
    assert set(threading.enumerate()) <= threads
    with pytest.raises(TransportError):
        Connection(address, Deadline(20), "tester", 1 << 20)


def test_an_exception_in_the_block_ends_the_cluster_and_is_passed_on() -> None:
    with pytest.raises(ZeroDivisionError), EmbeddedCluster(brokers=1) as cluster:
        _ = 1 / 0
    with pytest.raises(Error, match="closed"):
        _ = cluster.bootstrap


def test_an_interpreter_exits_although_a_cluster_is_open() -> None:
    done = run_python(
        "from rdmeta.embedded import EmbeddedCluster\n"
        "cluster = EmbeddedCluster(); cluster.create_topic('orders'); print('made')"
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "made\n", "")


def test_librdkafka_stays_loaded_as_its_threads_may_outlive_a_cluster() -> None:
    done = run_python(
        "import gc\n"
        "from pathlib import Path\n"
        "from rdmeta import embedded\n"
        "embedded.EmbeddedCluster(brokers=1).close()\n"
        "embedded._library.cache_clear()\n"
        "gc.collect()\n"
        "print('librdkafka' in Path('/proc/self/maps').read_text())"
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "True\n", "")


def test_ctrl_c_ends_the_cluster_and_the_program() -> None:
    program = (
        "import sys, time\n"
        "from rdmeta.embedded import EmbeddedCluster\n"
        "try:\n"
        "    with EmbeddedCluster() as cluster:\n"
        "        print(cluster.bootstrap, flush=True)\n"
        "        time.sleep(60)\n"
        "except KeyboardInterrupt:\n"
        "    print(cluster)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        assert "127.0.0.1" in child.stdout.readline()
        child.send_signal(signal.SIGINT)
        assert child.stdout.read() == "<EmbeddedCluster closed>\n"
        assert child.wait(30) == 0


def test_a_forks_child_can_reach_the_brokers_but_not_command_or_end_them(
    cluster: EmbeddedCluster,
) -> None:
    cluster.create_topic("orders")
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        outcome = b"nothing"
        try:
            assert [topic.name for topic in ask(cluster).topics] == ["orders"]
            for use in (
                lambda: cluster.create_topic("payments"),
                lambda: cluster.add_broker(),
                lambda: cluster.brokers,
                lambda: cluster.broker(1),
            ):
                with pytest.raises(Error, match="belongs to process"):
                    use()
            cluster.close()
            cluster._finalizer()
            outcome = b"fine"
        except BaseException as error:
            outcome = repr(error).encode()
        finally:
            os.write(writer, outcome)
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        assert pipe.read() == b"fine"
    os.waitpid(child, 0)
    cluster.create_topic("payments")
    assert sorted(topic.name for topic in ask(cluster).topics) == ["orders", "payments"]


def test_a_forks_child_ends_by_itself_with_a_cluster_of_its_parent() -> None:
    done = run_python(
        "import os\n"
        "from rdmeta.embedded import EmbeddedCluster\n"
        "cluster = EmbeddedCluster(brokers=1)\n"
        "child = os.fork()\n"
        "if child:\n"
        "    _, status = os.waitpid(child, 0)\n"
        "    cluster.create_topic('orders')\n"
        "    print('child', os.waitstatus_to_exitcode(status))\n"
    )
    assert (done.returncode, done.stdout) == (0, "child 0\n"), done.stderr


def test_confluent_kafka_itself_is_not_imported() -> None:
    done = run_python(
        "import sys\n"
        "from rdmeta.embedded import EmbeddedCluster\n"
        "with EmbeddedCluster(): print('confluent_kafka' in sys.modules)"
    )
    assert done.stdout == "False\n", done.stderr


@pytest.mark.parametrize("missing", ["cffi", "confluent-kafka"])
def test_a_missing_package_is_named_by_its_extra(
    missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedded = importlib.import_module("rdmeta.embedded")
    if missing == "cffi":
        monkeypatch.setitem(sys.modules, "cffi", None)
    else:
        monkeypatch.setattr(embedded.metadata, "distribution", _not_installed)
    embedded._library.cache_clear()
    try:
        with pytest.raises(MissingExtraError, match=r"\[kafka,cffi\]"):
            EmbeddedCluster()
    finally:
        embedded._library.cache_clear()


def _not_installed(name: str) -> None:
    raise importlib.metadata.PackageNotFoundError(name)

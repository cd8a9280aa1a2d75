"""A Kafka cluster inside this process: librdkafka's mock brokers on 127.0.0.1, without a JVM.

They are real listeners that speak Kafka's protocol, so any client can use them. The library is the
one that the confluent-kafka wheel brings; it is loaded through cffi and confluent_kafka itself is
never imported. What such brokers are not: there is no failover (a broker that is down stays leader
and in the ISR until `set_leader` says otherwise), no TLS, no SASL, no CreateTopics, and the ISR
always equals the replicas.
"""

from __future__ import annotations

import os
import re
import resource
import signal
import socket
import struct
import threading
import time
import weakref
from collections.abc import Sequence
from functools import cache
from importlib import metadata
from types import TracebackType
from typing import Any, NamedTuple

from rdmeta.errors import Error, MissingExtraError, NoSuchPartitionError, from_code

__all__ = ["DISCONNECT", "EmbeddedBroker", "EmbeddedCluster", "EmbeddedRequest"]

DISCONNECT = -195
"""In place of an error code: the broker closes the connection (librdkafka's ERR__TRANSPORT)."""

_ALL_BROKERS = -1
_MOST_BROKERS = 1000
# File descriptors of a cluster besides one a broker: librdkafka's pipes, some connections.
_DESCRIPTORS = 32
_DESTROY_IMMEDIATELY = 4

_DECLARATIONS = """
typedef struct rd_kafka_s rd_kafka_t;
typedef struct rd_kafka_conf_s rd_kafka_conf_t;
typedef struct rd_kafka_mock_cluster_s rd_kafka_mock_cluster_t;
typedef struct rd_kafka_mock_request_s rd_kafka_mock_request_t;

const char *rd_kafka_err2str(int);
rd_kafka_conf_t *rd_kafka_conf_new(void);
int rd_kafka_conf_set(rd_kafka_conf_t *, const char *, const char *, char *, size_t);
rd_kafka_t *rd_kafka_new(int, rd_kafka_conf_t *, char *, size_t);
void rd_kafka_destroy_flags(rd_kafka_t *, int);

rd_kafka_mock_cluster_t *rd_kafka_mock_cluster_new(rd_kafka_t *, int);
void rd_kafka_mock_cluster_destroy(rd_kafka_mock_cluster_t *);
const char *rd_kafka_mock_cluster_bootstraps(const rd_kafka_mock_cluster_t *);
int rd_kafka_mock_set_controller_id(rd_kafka_mock_cluster_t *, int32_t);
int rd_kafka_mock_set_apiversion(rd_kafka_mock_cluster_t *, int16_t, int16_t, int16_t);

int rd_kafka_mock_topic_create(rd_kafka_mock_cluster_t *, const char *, int, int);
int rd_kafka_mock_topic_delete(rd_kafka_mock_cluster_t *, const char *);
void rd_kafka_mock_topic_set_error(rd_kafka_mock_cluster_t *, const char *, int);
int rd_kafka_mock_partition_set_leader(rd_kafka_mock_cluster_t *, const char *, int32_t, int32_t);
int rd_kafka_mock_partition_push_leader_response(
    rd_kafka_mock_cluster_t *, const char *, int, int32_t, int32_t);

int rd_kafka_mock_broker_set_down(rd_kafka_mock_cluster_t *, int32_t);
int rd_kafka_mock_broker_set_up(rd_kafka_mock_cluster_t *, int32_t);
int rd_kafka_mock_broker_set_rtt(rd_kafka_mock_cluster_t *, int32_t, int);
int rd_kafka_mock_broker_set_rack(rd_kafka_mock_cluster_t *, int32_t, const char *);
int rd_kafka_mock_broker_add(rd_kafka_mock_cluster_t *, int32_t);
int rd_kafka_mock_broker_decommission(rd_kafka_mock_cluster_t *, int32_t);

void rd_kafka_mock_push_request_errors_array(
    rd_kafka_mock_cluster_t *, int16_t, size_t, const int *);
int rd_kafka_mock_broker_push_request_error_rtts(
    rd_kafka_mock_cluster_t *, int32_t, int16_t, size_t, ...);

void rd_kafka_mock_start_request_tracking(rd_kafka_mock_cluster_t *);
void rd_kafka_mock_stop_request_tracking(rd_kafka_mock_cluster_t *);
void rd_kafka_mock_clear_requests(rd_kafka_mock_cluster_t *);
rd_kafka_mock_request_t **rd_kafka_mock_get_requests(rd_kafka_mock_cluster_t *, size_t *);
void rd_kafka_mock_request_destroy_array(rd_kafka_mock_request_t **, size_t);
int32_t rd_kafka_mock_request_id(rd_kafka_mock_request_t *);
int16_t rd_kafka_mock_request_api_key(rd_kafka_mock_request_t *);
int64_t rd_kafka_mock_request_timestamp(rd_kafka_mock_request_t *);
"""


class EmbeddedRequest(NamedTuple):
    """A request that a broker received; `at` is on `time.monotonic()`'s clock, in seconds."""

    broker: int
    api_key: int
    at: float


@cache
def _library() -> tuple[Any, Any]:
    """(ffi, library) of the librdkafka that the confluent-kafka wheel brings.

    MissingExtraError if cffi or the wheel is not installed.
    """
    try:
        import cffi

        files = metadata.distribution("confluent-kafka").files or []
    except (ImportError, metadata.PackageNotFoundError) as error:
        raise MissingExtraError.of("EmbeddedCluster", "kafka", "cffi") from error
    bundled = [f for f in files if re.match(r"librdkafka.*\.(so|dylib)\b", f.name)]
    if not bundled:
        raise Error("this confluent-kafka brings no librdkafka of its own: install it as a wheel")
    ffi = cffi.FFI()
    ffi.cdef(_DECLARATIONS)
    return ffi, ffi.dlopen(str(bundled[0].locate()))


class _Kicker:
    """Bounds how long librdkafka's mock thread sleeps through a command that it was sent.

    Its poll loop serves the queue of commands and then drains the wake-up pipe, so a command that
    arrives in between waits until the poll times out after 1 s: some 6 % of those given back to
    back. While a command is under way, a byte on a socket every 2 ms makes the poll return. The
    bytes are those of one request that never ends, so no broker answers or counts it.
    """

    PERIOD = 0.002
    ENDLESS = 1 << 20

    def __init__(self, bootstrap: str) -> None:
        self._addresses = [(h, int(p)) for h, p in (a.split(":") for a in bootstrap.split(","))]
        self._socket: socket.socket | None = None
        self._left = 0
        self._stopped = False
        self._armed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="rdmeta-kicker", daemon=True)
        self._thread.start()

    def __enter__(self) -> None:
        self._armed.set()

    def __exit__(self, *_: object) -> None:
        self._armed.clear()

    def stop(self) -> None:
        """End the thread and wait for it."""
        self._stopped = True
        self._armed.set()
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def _run(self) -> None:
        while not self._stopped:
            self._armed.wait()
            time.sleep(self.PERIOD)
            if self._armed.is_set():
                self._kick()
        self._disconnect()

    def _kick(self) -> None:
        try:
            if self._socket is None:
                self._socket = socket.create_connection(self._addresses[0], timeout=0.1)
                self._socket.sendall(struct.pack(">ihhi", self.ENDLESS, 18, 0, 0))
                self._left = self.ENDLESS // 2
            self._socket.send(b"\0")
            self._left -= 1
            if not self._left:
                self._disconnect()
        except OSError:  # This broker is down: the next one.
            self._addresses.append(self._addresses.pop(0))
            self._disconnect()

    def _disconnect(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None


def _end(pid: int, lock: threading.RLock, rk: Any, mock: Any, kicker: _Kicker) -> None:
    """End the brokers; nothing in a fork's child, where their thread does not exist."""
    if os.getpid() != pid:
        return
    _, lib = _library()
    with lock, kicker:
        lib.rd_kafka_mock_cluster_destroy(mock)
        lib.rd_kafka_destroy_flags(rk, _DESTROY_IMMEDIATELY)
    kicker.stop()


class EmbeddedCluster:
    """A cluster of brokers 1..n on free ports of 127.0.0.1, gone with the `with` block.

    It ends on `close()`, at the end of the block (Ctrl-C included), when it is garbage, and with
    the interpreter. Afterwards every method raises Error. In a fork's child `bootstrap` works, as
    the parent's brokers can be reached from there; everything else raises Error. Any thread may
    use it. At most 1000 brokers, each of which takes a file descriptor; Error if there are too
    few of those. MissingExtraError without the extras `kafka` and `cffi`.
    """

    def __init__(self, brokers: int = 3) -> None:
        if not isinstance(brokers, int):
            raise TypeError(f"brokers must be an int, not {type(brokers).__name__}")
        if not 1 <= brokers <= _MOST_BROKERS:
            raise ValueError(f"a cluster has at least one broker, at most {_MOST_BROKERS}")
        ffi, lib = _library()
        _check_descriptors(brokers + _DESCRIPTORS)
        message = ffi.new("char[512]")
        conf = lib.rd_kafka_conf_new()
        lib.rd_kafka_conf_set(conf, b"log_level", b"0", message, len(message))
        rk = lib.rd_kafka_new(0, conf, message, len(message))
        if rk == ffi.NULL:
            raise Error(f"librdkafka: {_text(message)}")
        # The brokers' thread inherits this: signals are for Python's main thread.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:
            mock = lib.rd_kafka_mock_cluster_new(rk, brokers)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        if mock == ffi.NULL:
            lib.rd_kafka_destroy_flags(rk, _DESTROY_IMMEDIATELY)
            raise Error(f"librdkafka could not start {brokers} brokers")
        self._pid = os.getpid()
        self._lock = threading.RLock()
        self._mock = mock
        self._bootstrap = _text(lib.rd_kafka_mock_cluster_bootstraps(mock))
        self._kicker = _Kicker(self._bootstrap)
        self._finalizer = weakref.finalize(
            self, _end, self._pid, self._lock, rk, mock, self._kicker
        )
        self._racks: dict[int, str | None] = dict.fromkeys(range(1, brokers + 1))
        self._controller = 0
        self.controller = 1

    def __enter__(self) -> EmbeddedCluster:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        state = self._bootstrap if self._finalizer.alive else "closed"
        return f"<EmbeddedCluster {state}>"

    def close(self) -> None:
        """End the brokers and their threads. A second time, or in a fork's child: nothing."""
        if os.getpid() == self._pid:
            self._finalizer()

    @property
    def bootstrap(self) -> str:
        """Where to connect: "127.0.0.1:port,...", the brokers that the cluster began with."""
        self._check_open()
        return self._bootstrap

    @property
    def brokers(self) -> tuple[EmbeddedBroker, ...]:
        """The brokers in the order of their ids, those that are down included."""
        self._check_ours()
        return tuple(EmbeddedBroker(self, id) for id in sorted(self._racks))

    def broker(self, id: int) -> EmbeddedBroker:
        """One broker. Error if there is none of that id."""
        self._check_ours()
        if id not in self._racks:
            raise Error(f"no broker {id}: the cluster has {sorted(self._racks)}")
        return EmbeddedBroker(self, id)

    def add_broker(self, id: int | None = None) -> EmbeddedBroker:
        """Start one more broker, by default with the next id; replicas are assigned anew."""
        self._check_ours()
        with self._lock:
            number = max(self._racks, default=0) + 1 if id is None else id
            if number < 0 or number in self._racks:
                raise ValueError(f"{number} cannot be the id of one more broker")
            self._command("broker_add", number)
            self._racks[number] = None
        return EmbeddedBroker(self, number)

    @property
    def controller(self) -> int:
        """The id that Metadata answers name as controller; 1 until set."""
        self._check_ours()
        return self._controller

    @controller.setter
    def controller(self, id: int) -> None:
        self._command("set_controller_id", id)
        self._controller = id

    def create_topic(self, name: str, partitions: int = 1, replication_factor: int = 1) -> None:
        """Create a topic with partitions 0..n-1 and a random leader for each of them.

        Error with Kafka's code: 36 it exists, 37 no partitions, 38 more replicas than brokers.
        """
        if partitions < 1:
            raise from_code(37, f"{partitions} partitions")
        self._check_ours()
        if not 1 <= replication_factor <= len(self._racks):
            raise from_code(38, f"{replication_factor} replicas on {len(self._racks)} brokers")
        self._command("topic_create", _name(name), partitions, replication_factor)

    def delete_topic(self, name: str) -> None:
        """Delete a topic; created again it gets another topic id. UnknownTopicError."""
        self._command("topic_delete", _name(name))

    def set_topic_error(self, name: str, code: int) -> None:
        """Answer Metadata for this topic with Kafka's error `code` from now on; 0 ends that.

        A topic that does not exist is created with 4 partitions, as librdkafka does.
        """
        self._command("topic_set_error", _name(name), code)

    def set_leader(self, topic: str, partition: int, broker: int | None) -> None:
        """Make `broker` the leader, or nobody (None); the leader epoch goes up by one.

        A topic that does not exist is created with 4 partitions, as librdkafka does. Replicas stay
        as they are. NoSuchPartitionError; Error with code 8 if there is no such broker.
        """
        leader = -1 if broker is None else broker
        self._of_partition("partition_set_leader", topic, partition, leader)

    def push_leader(
        self, topic: str, partition: int, broker: int | None, leader_epoch: int
    ) -> None:
        """Let one Metadata answer, the next that has none waiting, name this leader and epoch.

        What is true does not change: so speaks a broker that is behind, or ahead. Topics as with
        `set_leader`. NoSuchPartitionError.
        """
        leader = -1 if broker is None else broker
        self._of_partition("partition_push_leader_response", topic, partition, leader, leader_epoch)

    def set_api_version(self, api_key: int, lowest: int, highest: int) -> None:
        """Speak only these versions of an API; -1 and -1: not at all.

        `highest` must not be above what the brokers implement, which nobody checks.
        """
        self._command("set_apiversion", api_key, lowest, highest)

    def push_errors(self, api_key: int, errors: Sequence[int]) -> None:
        """Fail the next requests of an API, on whichever broker, each with one of `errors`.

        Kafka's codes, or DISCONNECT. Metadata answers heed nothing but DISCONNECT: see
        `set_topic_error`.
        """
        codes = _library()[0].new("int[]", list(errors))
        self._command("push_request_errors_array", api_key, len(errors), codes)

    def track_requests(self) -> None:
        """Forget the requests tracked so far and note each one from now on."""
        self._command("start_request_tracking")
        self._command("clear_requests")

    def requests(self) -> list[EmbeddedRequest]:
        """The requests received since `track_requests()`, oldest first."""
        ffi, lib = _library()
        count = ffi.new("size_t *")
        rows = self._command("get_requests", count)
        if rows == ffi.NULL:
            return []
        try:
            return [
                EmbeddedRequest(
                    lib.rd_kafka_mock_request_id(row),
                    lib.rd_kafka_mock_request_api_key(row),
                    lib.rd_kafka_mock_request_timestamp(row) / 1e6,
                )
                for row in ffi.unpack(rows, count[0])
            ]
        finally:
            lib.rd_kafka_mock_request_destroy_array(rows, count[0])

    def _check_open(self) -> None:
        if not self._finalizer.alive:
            raise Error("this embedded cluster is closed")

    def _check_ours(self) -> None:
        self._check_open()
        if os.getpid() != self._pid:
            raise Error(f"this embedded cluster belongs to process {self._pid}")

    def _of_partition(self, name: str, topic: str, partition: int, *arguments: int) -> None:
        """A command about one partition; NoSuchPartitionError."""
        missing = NoSuchPartitionError(f"{topic} [{partition}]")
        if partition < 0:  # librdkafka would write in front of its partitions.
            raise missing
        try:
            self._command(name, _name(topic), partition, *arguments)
        except Error as error:
            if error.code == 3:
                raise missing from None
            raise

    def _command(self, name: str, *arguments: Any) -> Any:
        """Call rd_kafka_mock_<name>; an error that it returns is raised."""
        self._check_ours()
        with self._lock:
            self._check_open()
            with self._kicker:
                result = getattr(_library()[1], f"rd_kafka_mock_{name}")(self._mock, *arguments)
        if isinstance(result, int) and result:
            _raise(name, arguments, result)
        return result


class EmbeddedBroker:
    """One broker of an embedded cluster: a name for it, which holds nothing itself."""

    def __init__(self, cluster: EmbeddedCluster, id: int) -> None:
        self._cluster = cluster
        self.id = id

    def __repr__(self) -> str:
        return f"<EmbeddedBroker {self.id} of {self._cluster!r}>"

    def down(self) -> None:
        """Close its connections and its port. It leaves the broker list, and stays leader."""
        self._cluster._command("broker_set_down", self.id)

    def up(self) -> None:
        """Listen again, on the same port."""
        self._cluster._command("broker_set_up", self.id)

    def delay(self, seconds: float) -> None:
        """Answer so much later, rounded to milliseconds; 0 ends that."""
        if seconds < 0:
            raise ValueError("a delay is not negative")
        self._cluster._command("broker_set_rtt", self.id, round(seconds * 1000))

    @property
    def rack(self) -> str | None:
        """The rack it advertises, None until set; there is no way back to None."""
        self._cluster.broker(self.id)
        return self._cluster._racks[self.id]

    @rack.setter
    def rack(self, rack: str) -> None:
        self._cluster._command("broker_set_rack", self.id, rack.encode())
        self._cluster._racks[self.id] = rack

    def decommission(self) -> None:
        """End this broker for good; its replicas and leaders go to the others."""
        self._cluster._check_ours()
        with self._cluster._lock:
            self._cluster._command("broker_decommission", self.id)
            del self._cluster._racks[self.id]

    def push_errors(self, api_key: int, errors: Sequence[int], delay: float = 0.0) -> None:
        """As the cluster's, on this broker alone and before the cluster's.

        Each is answered `delay` seconds late, and code 0 is no error: so one request can be slow.
        """
        ffi = _library()[0]
        milliseconds = round(delay * 1000)
        pairs = [ffi.cast("int", n) for code in errors for n in (code, milliseconds)]
        self._cluster._command(
            "broker_push_request_error_rtts", self.id, api_key, len(errors), *pairs
        )


def _check_descriptors(needed: int) -> None:
    """Error if so many files cannot be opened: librdkafka aborts the process when it runs out."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    left = limit - len(os.listdir("/dev/fd"))
    if limit != resource.RLIM_INFINITY and left < needed:
        raise Error(f"so many brokers need {needed} file descriptors, and {left} are left")


def _name(topic: str) -> bytes:
    if not topic or "\0" in topic:
        raise from_code(17, repr(topic))
    return topic.encode()


def _text(pointer: Any) -> str:
    data: bytes = _library()[0].string(pointer)
    return data.decode()


def _raise(command: str, arguments: Sequence[Any], code: int) -> None:
    """Raise what a command returned: Kafka's codes are positive, librdkafka's own negative."""
    shown = (a.decode() if isinstance(a, bytes) else a for a in arguments)
    call = " ".join([command, *map(str, shown)])
    if code > 0:
        raise from_code(code, call)
    raise Error(f"{call}: {_text(_library()[1].rd_kafka_err2str(code))}")

"""A Kafka cluster inside this process: librdkafka's mock brokers on 127.0.0.1, without a JVM.

The brokers are real listeners that speak Kafka's protocol, so any client can use them. The library
is the one in the confluent-kafka wheel. It is loaded through cffi; confluent_kafka itself is never
imported. These brokers have no failover: a broker that is down stays leader and in the ISR until
`set_leader` changes that. They have no TLS, no SASL and no CreateTopics, and the ISR always equals
the replicas. An older confluent-kafka lacks some commands, and an error names the release that has
them; there set_leader() makes a topic that does not exist.
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
from typing import Any, NamedTuple

from rdmeta.errors import (
    Error,
    MissingExtraError,
    NoSuchPartitionError,
    UnknownTopicError,
    from_code,
)

__all__ = ["DISCONNECT", "EmbeddedBroker", "EmbeddedCluster", "EmbeddedRequest"]

DISCONNECT = -195
"""Stands for an error code: the broker closes the connection (librdkafka's ERR__TRANSPORT)."""

# The first release of confluent-kafka whose librdkafka has a command, if it is not the oldest.
_RELEASES = {
    "broker_add": "2.10",
    "broker_decommission": "2.10",
    "topic_delete": "2.15",
    "set_controller_id": "2.16",
}
_METADATA = 3
_MOST_BROKERS = 1000
# A cluster needs one file descriptor per broker and these: librdkafka's pipes, some connections.
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
    """Returns (ffi, library) of the librdkafka in the confluent-kafka wheel.

    Raises MissingExtraError if cffi or the wheel is not installed.
    """
    try:
        import cffi

        files = metadata.distribution("confluent-kafka").files or []
    except (ImportError, metadata.PackageNotFoundError) as error:
        raise MissingExtraError.of("EmbeddedCluster", "kafka", "cffi") from error
    bundled = [f for f in files if re.match(r"librdkafka.*\.(so|dylib)\b", f.name)]
    if not bundled:
        raise Error("this confluent-kafka contains no librdkafka: install it from a wheel")
    ffi = cffi.FFI()
    ffi.cdef(_DECLARATIONS)
    # Its threads may outlive rd_kafka_destroy_flags(): the library stays until the process ends.
    return ffi, ffi.dlopen(str(bundled[0].locate()), ffi.RTLD_NOW | os.RTLD_NODELETE)


def _function(name: str) -> Any:
    """Returns rd_kafka_mock_<name>; None if this librdkafka is too old to have it."""
    library, symbol = _library()[1], f"rd_kafka_mock_{name}"
    return getattr(library, symbol, None) if name in _RELEASES else getattr(library, symbol)


class OlderConfluentError(Error):
    """The confluent-kafka of this process is too old for `what`, which needs `command`."""

    def __init__(self, what: str, command: str) -> None:
        super().__init__(f"{what} needs confluent-kafka {_RELEASES[command]} or newer: upgrade it")


class _Kicker:
    """Bounds the time for which librdkafka's mock thread overlooks a command.

    The thread's poll loop serves the queue of commands and then drains the wake-up pipe. A command
    that arrives in between waits until the poll times out after 1 s. That happens to some 6 % of
    the commands that are sent back to back. While a command is under way, the kicker sends one
    byte to a socket every 2 ms, which makes the poll return. The bytes belong to one request that
    never ends, so no broker answers or counts it.
    """

    PERIOD = 0.002
    ENDLESS = 1 << 20

    def __init__(self, bootstrap: str) -> None:
        self._addresses = [(h, int(p)) for h, p in (a.split(":") for a in bootstrap.split(","))]
        self._socket: socket.socket | None = None
        self._unsent = 0
        self._stopped = False
        self._armed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="rdmeta-kicker", daemon=True)
        self._thread.start()

    def __enter__(self) -> None:
        self._armed.set()

    def __exit__(self, *_: object) -> None:
        self._armed.clear()

    def stop(self) -> None:
        """Ends the thread and waits for it."""
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
                self._unsent = self.ENDLESS // 2
            self._socket.send(b"\0")
            self._unsent -= 1
            if not self._unsent:
                self._disconnect()
        except OSError:  # this broker is down: the next kick uses the next one
            self._addresses.append(self._addresses.pop(0))
            self._disconnect()

    def _disconnect(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None


def _end(pid: int, lock: threading.RLock, rk: Any, mock: Any, kicker: _Kicker) -> None:
    """Ends the brokers. Does nothing in the child of a fork, which does not have their thread."""
    if os.getpid() != pid:
        return
    _, lib = _library()
    with lock, kicker:
        lib.rd_kafka_mock_cluster_destroy(mock)
        lib.rd_kafka_destroy_flags(rk, _DESTROY_IMMEDIATELY)
    kicker.stop()


class EmbeddedCluster:
    """A cluster of brokers 1..n on free ports of 127.0.0.1, which ends with its `with` block.

    It ends on `close()`, at the end of the block (also after Ctrl-C), when it is garbage-collected,
    and when the interpreter exits. Afterwards every method raises Error. In the child of a fork
    `bootstrap` works, as the child can reach the parent's brokers; everything else raises Error.
    Any thread may use the cluster. It has at most 1000 brokers, each of which needs a file
    descriptor; Error is raised if too few are free. Raises MissingExtraError without the extras
    `kafka` and `cffi`.
    """

    def __init__(self, brokers: int = 3) -> None:
        if not isinstance(brokers, int):
            raise TypeError(f"brokers must be an int, not {type(brokers).__name__}")
        if not 1 <= brokers <= _MOST_BROKERS:
            raise ValueError(
                f"a cluster has at least one broker, at most {_MOST_BROKERS}, not {brokers}"
            )
        ffi, lib = _library()
        _check_descriptors(brokers + _DESCRIPTORS)
        message = ffi.new("char[512]")
        conf = lib.rd_kafka_conf_new()
        lib.rd_kafka_conf_set(conf, b"log_level", b"0", message, len(message))
        rk = lib.rd_kafka_new(0, conf, message, len(message))
        if rk == ffi.NULL:
            raise Error(f"librdkafka: {_text(message)}")
        # The brokers' thread inherits this mask, so signals reach Python's main thread.
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
        if _function("set_controller_id") is not None:
            self.controller = 1

    def __enter__(self) -> EmbeddedCluster:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def __repr__(self) -> str:
        state = self._bootstrap if self._finalizer.alive else "closed"
        return f"<EmbeddedCluster {state}>"

    def close(self) -> None:
        """Ends the brokers and their threads.

        A second call does nothing, nor does a call in the child of a fork.
        """
        if os.getpid() == self._pid:
            self._finalizer()

    @property
    def bootstrap(self) -> str:
        """The addresses of the brokers that the cluster began with: "127.0.0.1:port,..."."""
        self._check_open()
        return self._bootstrap

    @property
    def brokers(self) -> tuple[EmbeddedBroker, ...]:
        """The brokers in the order of their ids, including brokers that are down."""
        self._check_ours()
        return tuple(EmbeddedBroker(self, id) for id in sorted(self._racks))

    def broker(self, id: int) -> EmbeddedBroker:
        """Returns the broker with that id; raises Error if there is none."""
        self._check_ours()
        if id not in self._racks:
            raise Error(f"there is no broker {id}: the cluster has {sorted(self._racks)}")
        return EmbeddedBroker(self, id)

    def add_broker(self, id: int | None = None) -> EmbeddedBroker:
        """Starts one more broker, by default with the next id; replicas are assigned anew.

        Raises ValueError for an id that is negative or in use.
        """
        self._check_ours()
        with self._lock:
            number = max(self._racks, default=0) + 1 if id is None else id
            if number < 0 or number in self._racks:
                raise ValueError(f"broker id {number} is negative or in use: choose another one")
            self._command("broker_add", number)
            self._racks[number] = None
        return EmbeddedBroker(self, number)

    @property
    def controller(self) -> int:
        """The id that Metadata answers name as controller; 1 until set.

        It is 0, and cannot be set, with a confluent-kafka before 2.16.
        """
        self._check_ours()
        return self._controller

    @controller.setter
    def controller(self, id: int) -> None:
        self._command("set_controller_id", id)
        self._controller = id

    def create_topic(self, name: str, partitions: int = 1, replication_factor: int = 1) -> None:
        """Creates a topic with partitions 0..n-1 and a random leader for each of them.

        Raises Error with Kafka's code: 36 the topic exists, 37 too few partitions, 38 more replicas
        than brokers.
        """
        if partitions < 1:
            raise from_code(37, f"{partitions} partitions")
        self._check_ours()
        if not 1 <= replication_factor <= len(self._racks):
            raise from_code(38, f"{replication_factor} replicas on {len(self._racks)} brokers")
        self._command("topic_create", _name(name), partitions, replication_factor)

    def delete_topic(self, name: str) -> None:
        """Deletes a topic; if it is created again, it gets another topic id.

        Raises UnknownTopicError.
        """
        self._command("topic_delete", _name(name))

    def set_topic_error(self, name: str, code: int) -> None:
        """Makes Metadata answers give this topic Kafka's error `code`, until a call with 0.

        A topic that does not exist is created with 4 partitions, as librdkafka does.
        """
        self._command("topic_set_error", _name(name), code)

    def set_leader(self, topic: str, partition: int, broker: int | None) -> None:
        """Makes `broker` the leader and raises the leader epoch by one; None: no broker leads.

        Replicas stay as they are. Raises UnknownTopicError, NoSuchPartitionError, and Error with
        code 8 for an unknown broker.
        """
        leader = -1 if broker is None else broker
        self._of_partition("partition_set_leader", topic, partition, leader)

    def push_leader(
        self, topic: str, partition: int, broker: int | None, leader_epoch: int
    ) -> None:
        """Queues a leader and epoch for one Metadata answer, after those that are queued already.

        The true leader does not change, so this acts like a broker that is behind, or ahead. Raises
        UnknownTopicError and NoSuchPartitionError.
        """
        leader = -1 if broker is None else broker
        self._of_partition("partition_push_leader_response", topic, partition, leader, leader_epoch)

    def set_api_version(self, api_key: int, lowest: int, highest: int) -> None:
        """Limits an API to these versions; -1 and -1 remove it.

        `highest` must not be above the versions that the brokers implement: no check is made.
        """
        self._command("set_apiversion", api_key, lowest, highest)

    def push_errors(self, api_key: int, errors: Sequence[int]) -> None:
        """Makes the next requests of an API fail, on any broker, each with one of `errors`.

        These are Kafka's codes, or DISCONNECT. Metadata answers obey only DISCONNECT: see
        `set_topic_error`.
        """
        codes = _library()[0].new("int[]", list(errors))
        self._check_pushed(api_key)
        self._command("push_request_errors_array", api_key, len(errors), codes)

    def track_requests(self) -> None:
        """Forgets the requests tracked so far and tracks each one from now on."""
        self._command("start_request_tracking")
        self._command("clear_requests")

    def requests(self) -> list[EmbeddedRequest]:
        """Returns the requests received since `track_requests()`, oldest first."""
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
            raise Error("this embedded cluster is closed: make a new one")

    def _check_ours(self) -> None:
        self._check_open()
        if os.getpid() != self._pid:
            raise Error(f"this embedded cluster belongs to process {self._pid}: use it there")

    def _check_pushed(self, api_key: int) -> None:
        """Raises Error if answers of this API would ignore errors that are pushed."""
        if api_key == _METADATA and _function("topic_delete") is None:
            raise OlderConfluentError("push_errors() of Metadata", "topic_delete")

    def _of_partition(self, name: str, topic: str, partition: int, *arguments: int) -> None:
        """Runs a command about one partition; raises NoSuchPartitionError."""
        missing = NoSuchPartitionError(f"{topic} [{partition}]")
        if partition < 0:  # librdkafka would write before the start of its array
            raise missing
        self._check_exists(topic)
        try:
            self._command(name, _name(topic), partition, *arguments)
        except Error as error:
            if error.code == 3:
                raise missing from None
            raise

    def _check_exists(self, topic: str) -> None:
        """Raises UnknownTopicError for a topic that librdkafka would create; it has no look-up."""
        if _function("topic_delete") is None:
            return
        with self._lock:
            try:
                self._command("topic_create", _name(topic), 1, 1)
            except Error as error:
                if error.code == 36:  # it exists
                    return
                raise
            self._command("topic_delete", _name(topic))
        raise UnknownTopicError(f"there is no topic {topic!r}: create_topic() makes it")

    def _command(self, name: str, *arguments: Any) -> Any:
        """Calls rd_kafka_mock_<name> and raises the error that it returns."""
        self._check_ours()
        function = _function(name)
        if function is None:
            raise OlderConfluentError(name, name)
        with self._lock:
            self._check_open()
            with self._kicker:
                result = function(self._mock, *arguments)
        if isinstance(result, int) and result:
            _raise(name, arguments, result)
        return result


class EmbeddedBroker:
    """One broker of an embedded cluster: a handle, which has no state of its own."""

    def __init__(self, cluster: EmbeddedCluster, id: int) -> None:
        self._cluster = cluster
        self.id = id

    def __repr__(self) -> str:
        return f"<EmbeddedBroker {self.id} of {self._cluster!r}>"

    def down(self) -> None:
        """Closes the broker's connections and port; it leaves the broker list but stays leader.

        It stays in the list, too, with a confluent-kafka before 2.10.
        """
        self._cluster._command("broker_set_down", self.id)

    def up(self) -> None:
        """Makes the broker listen again, on the same port."""
        self._cluster._command("broker_set_up", self.id)

    def delay(self, seconds: float) -> None:
        """Delays each answer by `seconds`, rounded to milliseconds; 0 ends the delay."""
        if seconds < 0:
            raise ValueError(f"delay must be seconds >= 0, not {seconds!r}")
        self._cluster._command("broker_set_rtt", self.id, round(seconds * 1000))

    @property
    def rack(self) -> str | None:
        """The rack that the broker advertises, None until set; it cannot be set back to None."""
        self._cluster.broker(self.id)
        return self._cluster._racks[self.id]

    @rack.setter
    def rack(self, rack: str) -> None:
        self._cluster._command("broker_set_rack", self.id, rack.encode())
        self._cluster._racks[self.id] = rack

    def decommission(self) -> None:
        """Ends this broker for good; its replicas and leaders go to the others."""
        self._cluster._check_ours()
        with self._cluster._lock:
            self._cluster._command("broker_decommission", self.id)
            del self._cluster._racks[self.id]

    def push_errors(self, api_key: int, errors: Sequence[int], delay: float = 0.0) -> None:
        """Makes the next requests to this broker fail, before the cluster's push_errors() applies.

        Each answer is `delay` seconds late. Code 0 is no error: it makes one request slow.
        """
        ffi = _library()[0]
        milliseconds = round(delay * 1000)
        pairs = [ffi.cast("int", n) for code in errors for n in (code, milliseconds)]
        self._cluster._check_pushed(api_key)
        self._cluster._command(
            "broker_push_request_error_rtts", self.id, api_key, len(errors), *pairs
        )


def _check_descriptors(needed: int) -> None:
    """Raises Error if too few file descriptors are free: librdkafka would abort the process."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = limit - len(os.listdir("/dev/fd"))
    if limit != resource.RLIM_INFINITY and free < needed:
        raise Error(
            f"so many brokers need {needed} file descriptors, and {free} are free:"
            " start fewer brokers, or raise the limit (ulimit -n)"
        )


def _name(topic: str) -> bytes:
    if not topic or "\0" in topic:
        raise from_code(17, repr(topic))
    return topic.encode()


def _text(pointer: Any) -> str:
    data: bytes = _library()[0].string(pointer)
    return data.decode()


def _raise(command: str, arguments: Sequence[Any], code: int) -> None:
    """Raises a command's error: Kafka's codes are positive, librdkafka's own are negative."""
    shown = (a.decode() if isinstance(a, bytes) else a for a in arguments)
    call = " ".join([command, *map(str, shown)])
    if code > 0:
        raise from_code(code, call)
    raise Error(f"{call}: {_text(_library()[1].rd_kafka_err2str(code))}")

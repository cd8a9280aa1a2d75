"""Brokers of canned answers with scripted faults, in a thread of their own. They need no Java.

    with Brokers(3) as brokers:
        brokers.truth.create("orders", partitions=6)
        client = rdmeta.Client({"bootstrap.servers": brokers.bootstrap})
        brokers[1].fault.delay = 0.5                       # from now on
        brokers[2].next(Fault(topic_errors={"orders": 5}))  # for the next request only
        brokers[3].refuse()
        assert brokers[1].count(METADATA) == 1

The answers come from `Broker.truth`, which all brokers share until a test gives one its own.
`Broker.answers` replaces the answer to an API. A `Guard` adds TLS and SASL (secured.py). A test
sets attributes from any thread; a broker reads them when it answers.
"""

from __future__ import annotations

import asyncio
import socket
import struct
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

import frames
from frames import NO_OPERATIONS, B, P, T
from kafka.protocol.admin import DescribeConfigsResponse
from kafka.protocol.admin.cluster import DescribeClusterResponse, DescribeQuorumResponse
from listener import Listener, reset
from loop_thread import LoopThread
from peer import UNSUPPORTED_VERSION, Asked, framed, read_requests, versions_body
from secured import (
    LONGEST_BEFORE_LOGIN,
    SASL_AUTHENTICATE,
    SASL_HANDSHAKE,
    Entry,
    Guard,
    LoggedIn,
    Reply,
    entry,
    illegal_state,
)
from tls_streams import Reader, Writer, over_tls, part

METADATA, API_VERSIONS, DESCRIBE_CONFIGS, DESCRIBE_QUORUM, DESCRIBE_CLUSTER = 3, 18, 32, 55, 60
RANGES = {
    METADATA: (0, 13),
    SASL_HANDSHAKE: (0, 1),
    API_VERSIONS: (0, 3),
    SASL_AUTHENTICATE: (0, 2),
    DESCRIBE_CONFIGS: (1, 4),
    DESCRIBE_QUORUM: (0, 2),
    DESCRIBE_CLUSTER: (0, 2),
}
# The configuration of a topic that sets nothing itself.
DEFAULTS: dict[str, str | None] = {"min.insync.replicas": "1", "retention.ms": "604800000"}
# Error codes of topics.
UNKNOWN_TOPIC, UNKNOWN_TOPIC_ID, REBOOTSTRAP_REQUIRED = 3, 100, 129
TLS_ALERT = bytes.fromhex("15030300020250")
HTTP = b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
# Bytes: socket.request.max.bytes.
LONGEST_REQUEST = 100 << 20
_LENGTH = struct.Struct(">i")


class Truth:
    """The facts that brokers say: cluster id, controller, brokers and topics. Tests change it."""

    def __init__(self, cluster_id: str = "cluster") -> None:
        self.cluster_id = cluster_id
        self.controller = 1
        self.brokers: dict[int, B] = {}
        self.topics: dict[str, T] = {}
        # What the principal may do with the cluster (KIP-430).
        self.operations = 0
        # By topic its own configuration; without it, or a key of it, that of DEFAULTS.
        self.configs: dict[str, dict[str, str | None]] = {}

    def create(self, name: str, partitions: int = 1, *, id: bytes | None = None) -> T:
        """Adds a topic, or replaces it by another one; the brokers lead its partitions in turn."""
        id = frames.topic_id((name, time.monotonic_ns())) if id is None else id
        self.topics[name] = T(name, self._partitions(partitions), id)
        return self.topics[name]

    def _partitions(self, n: int) -> list[P]:
        brokers = sorted(self.brokers)
        found = []
        for i in range(n):
            replicas = tuple(brokers[(i + k) % len(brokers)] for k in range(min(3, len(brokers))))
            found.append(P(i, replicas[0] if replicas else -1, 0, replicas))
        return found

    def widen(self, name: str, partitions: int) -> None:
        """Raises a topic's number of partitions; the brokers lead the new ones in turn."""
        topic = self.topics[name]
        added = self._partitions(partitions)[len(topic.partitions) :]
        self.topics[name] = replace(topic, partitions=[*topic.partitions, *added])

    def delete(self, name: str) -> None:
        """Removes a topic."""
        del self.topics[name]

    def lead(self, name: str, partition: int, leader: int, epoch: int | None = None) -> None:
        """Changes a leader (-1: none, error 5); without `epoch` the epoch grows by one."""
        topic = self.topics[name]
        partitions = list(topic.partitions)
        old = partitions[partition]
        partitions[partition] = replace(
            old,
            leader=leader,
            epoch=old.epoch + 1 if epoch is None else epoch,
            error=5 if leader < 0 else 0,
        )
        self.topics[name] = replace(topic, partitions=partitions)

    def fail_over(self, dead: int) -> None:
        """Takes a broker away; its partitions get their next replica as leader, or none."""
        self.brokers.pop(dead, None)
        for name, topic in list(self.topics.items()):
            for p in topic.partitions:
                if p.leader == dead:
                    live = [r for r in p.replicas if r in self.brokers]
                    self.lead(name, p.id, live[0] if live else -1)


@dataclass
class Fault:
    """The ways in which a request goes wrong; without arguments it does not."""

    # Seconds before the answer. A broker answers in order, so later requests wait as well.
    delay: float = 0.0
    # The broker reads the request and never answers it.
    silent: bool = False
    # The broker closes the connection instead of answering.
    close: bool = False
    # Metadata answers say this: time to wait, top-level error (v13), error per topic, cluster id.
    throttle_ms: int = 0
    error: int = 0
    topic_errors: dict[str, int] = field(default_factory=dict)
    cluster_id: str | None = None
    # Added to the correlation id.
    wrong_correlation: int = 0
    # How often the answer is sent.
    copies: int = 1
    # Returns the pieces that are sent instead of the frame; None: whole.
    mangle: Callable[[bytes], Sequence[bytes]] | None = None
    # Seconds between those pieces.
    drip: float = 0.0


class Seen(NamedTuple):
    """A request that arrived: when (time.monotonic()), on which connection of the broker."""

    at: float
    connection: int
    asked: Asked


class Broker:
    """One broker of `Brokers`."""

    def __init__(self, id: int, truth: Truth, loop: LoopThread, guard: Guard | None = None) -> None:
        self.id = id
        self.truth = truth
        # What it asks of a connection before it answers; None: PLAINTEXT.
        self.guard = guard
        # The versions of each API that it announces; its answers do not depend on them.
        self.ranges = dict(RANGES)
        self.fault = Fault()
        # Bytes that answer the first bytes of each connection; then the broker closes it.
        self.greeting: bytes | None = None
        self.close_at_accept = False
        # The broker closes a connection after it has sent this many bytes.
        self.close_after: int | None = None
        # Bodies instead of this broker's own, by API key; None: its own.
        self.answers: dict[int, Callable[[Asked], bytes | None]] = {}
        # Returns the fault of an answer of the handshake: ApiVersions, or of a login.
        self.handshake_fault: Callable[[], Fault] | None = None
        # Times (time.monotonic()) of accepted connections; the requests of all connections.
        self.accepted: list[float] = []
        self.requests: list[Seen] = []
        # The logins that ended; why TLS handshakes failed.
        self.logins: list[LoggedIn] = []
        self.tls_errors: list[str] = []
        self._script: deque[Fault] = deque()
        self._loop = loop
        self._listener = Listener(self._serve)
        self._open: dict[int, asyncio.StreamWriter] = {}
        self._thawed = asyncio.Event()
        self._thawed.set()

    # -- what tests call ------------------------------------------------------------------------

    @property
    def port(self) -> int:
        return self._listener.port

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def open(self) -> int:
        """The number of open connections."""
        return len(self._open)

    @property
    def connections(self) -> list[int]:
        """The numbers of the open connections, from 1 on, in the order of their start."""
        return list(self._open)

    def next(self, *faults: Fault) -> None:
        """The next requests after the handshake meet these faults, one each."""
        self._script.extend(faults)

    def forget_script(self) -> None:
        """Drops the faults of next() that no request has met."""
        self._script.clear()

    @property
    def scripted(self) -> int:
        """The number of faults of next() that no request has met yet."""
        return len(self._script)

    def count(self, api_key: int | None = None, since: float = 0.0, client_id: str = "") -> int:
        """Returns the number of requests: of one API, from a time on, of one client."""
        return len([s for s in self.seen(api_key, client_id) if s.at >= since])

    def seen(self, api_key: int | None = None, client_id: str = "") -> list[Seen]:
        """Returns the requests of an API, of a client, in the order of their arrival."""
        return [
            s
            for s in list(self.requests)
            if api_key in (None, s.asked.api_key) and client_id in ("", s.asked.client_id)
        ]

    def refuse(self) -> None:
        """Refuses new connections, as a machine without a broker; open ones stay."""
        self._loop.call(self._listener.stop)

    def accept(self) -> None:
        """Accepts connections, on the port that it had before."""
        self._loop.call(self._listener.start)

    def drop(self) -> None:
        """Resets all open connections."""
        self._loop.call(self._drop)

    def down(self) -> None:
        """Ends as a killed broker does: it refuses new connections and resets open ones."""
        self.refuse()
        self.drop()

    def freeze(self) -> None:
        """Stops like a process after SIGSTOP: the system accepts connections, no answer comes."""
        self._loop.call(self._thawed.clear)

    def thaw(self) -> None:
        """Goes on, and answers what arrived while it was frozen."""
        self._loop.call(self._thawed.set)

    # -- the loop's side ------------------------------------------------------------------------

    def _drop(self) -> None:
        for writer in list(self._open.values()):
            reset(writer)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted.append(time.monotonic())
        number = len(self.accepted)
        self._open[number] = writer
        end: Writer = writer
        try:
            if not self.close_at_accept:
                inside, end = await self._welcome(reader, writer)
                await self._converse(number, inside, Sender(end, self))
        except (OSError, asyncio.IncompleteReadError, Ended, asyncio.CancelledError):
            pass
        except UnicodeDecodeError:  # the name came from a damaged answer
            pass
        finally:
            del self._open[number]
            end.close()
            with suppress(ConnectionError):
                await end.wait_closed()

    async def _welcome(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> tuple[Reader, Writer]:
        """Shakes hands if the guard has TLS; raises OSError, of which SSLError is a kind."""
        context = self.guard.context if self.guard is not None else None
        if context is None or self.greeting is not None:
            return reader, writer
        await self._thawed.wait()
        try:
            return await over_tls(reader, writer, context)
        except OSError as error:
            self.tls_errors.append(str(error))
            await part(reader, writer)
            raise

    async def _converse(self, number: int, reader: Reader, sender: Sender) -> None:
        greeting = self.greeting
        if greeting is not None:
            await reader.read(1)
            await sender.send(greeting)
            return
        login = entry(self.guard, number, self.logins)
        while True:
            length = await reader.readexactly(_LENGTH.size)
            size = _LENGTH.unpack(length)[0]
            is_strange = login is not None and not login.is_open
            if not 0 <= size <= (LONGEST_BEFORE_LOGIN if is_strange else LONGEST_REQUEST):
                raise Ended
            frame = await reader.readexactly(size)
            if login is not None and login.is_raw:
                await self._thawed.wait()
                await _answer_raw(login, frame, sender)
                continue
            asked = self._read(length + frame)
            self.requests.append(Seen(time.monotonic(), number, asked))
            await self._thawed.wait()
            if login is not None and not login.admits(asked):
                raise Ended
            await self._answer(asked, self._fault_of(asked), sender, login)

    def _read(self, frame: bytes) -> Asked:
        """Returns a request; a secured broker ends a connection whose bytes are none."""
        try:
            (asked,) = read_requests(frame)
        except (struct.error, KeyError, ValueError) as error:
            if self.guard is None:
                raise
            self.guard.mistakes.append(f"no request: {error!r}")
            raise Ended from None
        return asked

    def _fault_of(self, asked: Asked) -> Fault:
        if asked.api_key in (API_VERSIONS, SASL_HANDSHAKE, SASL_AUTHENTICATE):
            return self.handshake_fault() if self.handshake_fault else self.fault
        return self._script.popleft() if self._script else self.fault

    async def _answer(
        self, asked: Asked, fault: Fault, sender: Sender, login: Entry | None
    ) -> None:
        if fault.delay:
            await asyncio.sleep(fault.delay)
            await self._thawed.wait()
        if fault.close:
            raise Ended
        if fault.silent:
            return
        tags = b"" if asked.api_key == API_VERSIONS or not asked.flexible else b"\0"
        number = (asked.correlation_id + fault.wrong_correlation) & 0x7FFFFFFF
        if asked.api_key in (SASL_HANDSHAKE, SASL_AUTHENTICATE):
            reply = illegal_state(asked) if login is None else await login.answer(asked)
        else:
            reply = Reply(self._body(asked, fault))
        frame = framed(number, reply.body, tags)
        pieces = fault.mangle(frame) if fault.mangle else [frame]
        for _ in range(fault.copies):
            for piece in pieces:
                await sender.send(piece)
                if fault.drip:
                    await asyncio.sleep(fault.drip)
        if reply.is_last:
            raise Ended

    def _body(self, asked: Asked, fault: Fault) -> bytes:
        canned = self.answers.get(asked.api_key)
        body = None if canned is None else canned(asked)
        if body is not None:
            return body
        if asked.api_key == API_VERSIONS:
            return self._versions(asked)
        if asked.api_key == METADATA:
            return self._metadata(asked, fault)
        if asked.api_key == DESCRIBE_CLUSTER:
            return self._describe_cluster(asked)
        if asked.api_key == DESCRIBE_CONFIGS:
            return self._describe_configs(asked, fault)
        return self._describe_quorum(asked)

    def _versions(self, asked: Asked) -> bytes:
        spoken = self.ranges.get(API_VERSIONS, (0, 0))[1]
        if asked.version <= spoken:
            return versions_body(asked.version, self.ranges)
        return versions_body(0, {API_VERSIONS: (0, spoken)}, UNSUPPORTED_VERSION)

    def _metadata(self, asked: Asked, fault: Fault) -> bytes:
        truth, wanted = self.truth, asked.body.topics
        everything = wanted is None or (asked.version == 0 and not wanted)
        found = list(truth.topics.values()) if everything else asked_topics(truth, wanted)
        if not asked.body.include_topic_authorized_operations:
            found = [replace(topic, operations=NO_OPERATIONS) for topic in found]
        with_cluster = asked.body.include_cluster_authorized_operations
        return frames.response(
            asked.version,
            [
                replace(topic, error=code)
                if (code := fault.topic_errors.get(str(topic.name)))
                else topic
                for topic in found
            ],
            list(truth.brokers.values()),
            cluster_id=fault.cluster_id or truth.cluster_id,
            controller=truth.controller,
            throttle_ms=fault.throttle_ms,
            error=fault.error,
            operations=truth.operations if with_cluster else NO_OPERATIONS,
        )

    def _describe_cluster(self, asked: Asked) -> bytes:
        wanted = asked.body.include_cluster_authorized_operations
        bits = self.truth.operations
        operations = {bit for bit in range(32) if bits >> bit & 1} if wanted else None
        response = DescribeClusterResponse(
            throttle_time_ms=0,
            error_code=0,
            error_message=None,
            cluster_id=self.truth.cluster_id,
            controller_id=self.truth.controller,
            authorized_operations=operations,
            brokers=[
                DescribeClusterResponse.DescribeClusterBroker(
                    broker_id=b.id, host=b.host, port=b.port, rack=b.rack
                )
                for b in self.truth.brokers.values()
            ],
        )
        return bytes(response.encode(version=asked.version))

    def _describe_configs(self, asked: Asked, fault: Fault) -> bytes:
        result = DescribeConfigsResponse.DescribeConfigsResult
        results = []
        for resource in asked.body.resources:
            name, keys = resource.resource_name, resource.configuration_keys
            missing = 0 if name in self.truth.topics else UNKNOWN_TOPIC
            error = fault.topic_errors.get(name, missing)
            values = DEFAULTS | self.truth.configs.get(name, {})
            configs = [
                result.DescribeConfigsResourceResult(
                    name=key, value=value, read_only=False, is_sensitive=value is None, synonyms=[]
                )
                for key, value in values.items()
                if not error and (keys is None or key in keys)
            ]
            results.append(
                result(
                    error_code=error,
                    error_message=None,
                    resource_type=resource.resource_type,
                    resource_name=name,
                    configs=configs,
                )
            )
        response = DescribeConfigsResponse(throttle_time_ms=0, results=results)
        return bytes(response.encode(version=asked.version))

    def _describe_quorum(self, asked: Asked) -> bytes:
        topic = DescribeQuorumResponse.TopicData
        partition = topic.PartitionData
        replicas = [
            partition.ReplicaState(replica_id=id, log_end_offset=100 - id)
            for id in self.truth.brokers
        ]
        response = DescribeQuorumResponse(
            error_code=0,
            topics=[
                topic(
                    topic_name="__cluster_metadata",
                    partitions=[
                        partition(
                            partition_index=0,
                            error_code=0,
                            leader_id=self.truth.controller,
                            leader_epoch=7,
                            high_watermark=99,
                            current_voters=replicas,
                            observers=[],
                        )
                    ],
                )
            ],
            nodes=[],
        )
        return bytes(response.encode(version=asked.version))


class Ended(Exception):
    """The broker ends a connection."""


async def _answer_raw(login: Entry, message: bytes, sender: Sender) -> None:
    """Answers a message of a login without a header, as after SaslHandshake v0."""
    data = await login.answer_raw(message)
    if data is None:
        raise Ended
    await sender.send(_LENGTH.pack(len(data)) + data)


class Sender:
    """The way to a client; it ends the connection after `Broker.close_after` bytes."""

    def __init__(self, writer: Writer, broker: Broker) -> None:
        self._writer = writer
        self._broker = broker
        self._sent = 0

    async def send(self, data: bytes) -> None:
        """Sends bytes; raises Ended if the connection must end here."""
        limit = self._broker.close_after
        part = data if limit is None else data[: max(0, limit - self._sent)]
        self._writer.write(part)
        await self._writer.drain()
        self._sent += len(part)
        if len(part) < len(data):
            raise Ended


def asked_topics(truth: Truth, wanted: Sequence[object]) -> list[T]:
    """Returns the topics of a request by names or ids; an unknown one has an error."""
    found = []
    by_id = {topic.id: topic for topic in truth.topics.values()}
    for each in wanted:
        name, uuid = getattr(each, "name", each), getattr(each, "topic_id", None)
        if name is not None:
            found.append(truth.topics.get(str(name)) or T(str(name), [], error=UNKNOWN_TOPIC))
        else:
            id = uuid.bytes if uuid is not None else frames.ZERO_ID
            found.append(by_id.get(id) or T(None, [], id, error=UNKNOWN_TOPIC_ID))
    return found


class Brokers:
    """A context manager that runs `n` brokers, with ids from 1 on, which form a cluster.

    They share `guard`; None: PLAINTEXT.
    """

    def __init__(self, n: int = 1, cluster_id: str = "cluster", guard: Guard | None = None) -> None:
        self.truth = Truth(cluster_id)
        self._loop = LoopThread("brokers")
        self._brokers = {id: Broker(id, self.truth, self._loop, guard) for id in range(1, n + 1)}

    def __getitem__(self, id: int) -> Broker:
        return self._brokers[id]

    def __iter__(self) -> Iterator[Broker]:
        return iter(self._brokers.values())

    @property
    def bootstrap(self) -> str:
        return ",".join(broker.address for broker in self)

    def requests(self, api_key: int | None = METADATA) -> list[Seen]:
        """Returns the requests of an API to all brokers, by time."""
        return sorted((s for broker in self for s in broker.seen(api_key)), key=lambda s: s.at)

    def deny_configs(self, *topics: str) -> None:
        """Denies the configuration of topics, whose metadata the user may read."""
        fault = Fault(topic_errors=dict.fromkeys(topics, 29))
        for broker in self:
            broker.answers[DESCRIBE_CONFIGS] = partial(broker._describe_configs, fault=fault)

    def __enter__(self) -> Brokers:
        self._loop.__enter__()
        for broker in self:
            broker.accept()
            self.truth.brokers[broker.id] = B(broker.id, "127.0.0.1", broker.port, None)
        return self

    def __exit__(self, *_: object) -> None:
        for broker in self:
            broker.refuse()
        self._loop.__exit__()


@contextmanager
def black_hole() -> Iterator[str]:
    """Yields an address where a connection neither succeeds nor fails: its packets get lost."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        waiting = []
        try:
            for _ in range(8):  # Linux drops a SYN once the queue of a listener is full.
                s = socket.socket()
                s.setblocking(False)
                s.connect_ex(listener.getsockname())
                waiting.append(s)
            yield f"127.0.0.1:{listener.getsockname()[1]}"
        finally:
            for s in waiting:
                s.close()

"""Runs real Kafka from `make kafka-jars`: each node is a JVM, a broker and a controller.

Brokers and administrators use the listener PLAINTEXT. A cluster may have others for its clients.
The advertised address of a proxied one is a proxy's: so a test cuts off clients and nothing else.
"""

from __future__ import annotations

import base64
import os
import shutil
import signal
import subprocess
import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import NamedTuple

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from listener import free_ports
from loop_thread import LoopThread
from proxy import Proxy

from rdmeta import MetadataCache, fetch
from rdmeta.errors import Error

JARS = Path(__file__).resolve().parents[2] / ".cache" / "kafka"
START_S = 110  # less than the 120 s of a test, so that the log is shown
# No other server of the tests takes one of these while a node is restarted.
_PORTS = range(10_000, 15_000)


def missing(version: str) -> str | None:
    """Returns why this Kafka cannot run here, None if it can."""
    if not shutil.which("java"):
        return "no Java"
    if not (JARS / version).is_dir():
        if not shutil.which("mvn"):
            return f"Kafka {version} is not here, and Maven, which fetches it, is not installed"
        return f"Kafka {version} is not here: `make kafka-jars` fetches it"
    return None


def random_id() -> str:
    """Returns an id as Kafka writes it, which does not begin like an option."""
    return "A" + base64.urlsafe_b64encode(uuid.uuid4().bytes).decode()[1:22]


class Listener(NamedTuple):
    """A listener of each node: its name, its protocol, and whether clients reach it by a proxy."""

    name: str
    protocol: str = "PLAINTEXT"
    is_proxied: bool = False


BROKERS, CLIENT = Listener("PLAINTEXT"), Listener("CLIENT", is_proxied=True)


class RealKafka:
    """A context manager that runs `nodes` nodes, with ids from 1 on, in `directory`.

    With `proxied`, clients of `client_bootstrap` reach each node through one of `proxies`.
    `listeners` are further ones; their options are in `settings`. `of_last` are settings of the
    last node. `format_options` are those of the storage tool, `java_options` those of each JVM. A
    dynamic quorum keeps its voters in the metadata log (KIP-853), not in the configuration.
    """

    def __init__(
        self,
        version: str,
        nodes: int,
        directory: Path,
        *,
        proxied: bool = False,
        listeners: Sequence[Listener] = (),
        settings: Mapping[str, object] | None = None,
        of_last: Mapping[str, object] | None = None,
        format_options: Sequence[str] = (),
        java_options: Sequence[str] = (),
        has_dynamic_quorum: bool = False,
    ) -> None:
        self.version = version
        self.classpath = f"{JARS / version}/*"
        self.directory = directory
        self.nodes = range(1, nodes + 1)
        self.settings = settings or {}
        self._of_last = of_last or {}
        self.listeners = {each.name: each for each in (BROKERS, *listeners)}
        if proxied:
            self.listeners[CLIENT.name] = CLIENT
        self.voters = dict(zip(self.nodes, free_ports(nodes, _PORTS), strict=True))
        # By listener and node: the port on which the broker listens, and the proxy before it.
        self.ports_of: dict[str, dict[int, int]] = {}
        self.proxies_of: dict[str, dict[int, Proxy]] = {name: {} for name in self.listeners}
        self._format_options = format_options
        self._java_options = java_options
        self._has_dynamic_quorum = has_dynamic_quorum
        self._stack = ExitStack()
        self.choose_ports()
        self.cluster_id = random_id()
        self.running: dict[int, subprocess.Popen[bytes]] = {}

    @property
    def ports(self) -> dict[int, int]:
        """The ports of the listener PLAINTEXT."""
        return self.ports_of[BROKERS.name]

    @property
    def proxies(self) -> dict[int, Proxy]:
        """The proxies before the listener CLIENT."""
        return self.proxies_of.get(CLIENT.name, {})

    @property
    def bootstrap(self) -> str:
        return ",".join(self.address(node) for node in self.nodes)

    @property
    def client_bootstrap(self) -> str:
        return ",".join(proxy.address for proxy in self.proxies.values())

    @property
    def admin(self) -> AdminClient:
        """A client of confluent's that may do everything. A result needs it to live."""
        return AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})

    def address(self, node: int, listener: str = BROKERS.name) -> str:
        """Returns the address on which a node listens, without a proxy."""
        return f"127.0.0.1:{self.ports_of[listener][node]}"

    def choose_ports(self) -> None:
        """Chooses new ports for the listeners of brokers; nodes that start from now on use them."""
        count = len(self.nodes)
        used = {*self.voters.values(), *(p for of in self.ports_of.values() for p in of.values())}
        while True:
            ports = free_ports(count * len(self.listeners), _PORTS)
            if not set(ports) & used:
                break
        for name in self.listeners:
            self.ports_of[name] = {node: ports.pop() for node in self.nodes}
        for name, proxies in self.proxies_of.items():
            for node, proxy in proxies.items():
                proxy.retarget(self.address(node, name))

    def properties(self, node: int) -> Path:
        """Writes the node's configuration; returns its path."""
        bound = {name: self.address(node, name) for name in self.listeners}
        told = bound | {name: of[node].address for name, of in self.proxies_of.items() if of}
        bound["CONTROLLER"] = f"127.0.0.1:{self.voters[node]}"
        protocols = {name: each.protocol for name, each in self.listeners.items()}
        protocols["CONTROLLER"] = "PLAINTEXT"
        settings = {
            "process.roles": "broker,controller",
            "node.id": node,
            **self._quorum(),
            "listeners": ",".join(f"{name}://{address}" for name, address in bound.items()),
            "advertised.listeners": ",".join(f"{name}://{at}" for name, at in told.items()),
            "controller.listener.names": "CONTROLLER",
            "inter.broker.listener.name": "PLAINTEXT",
            "listener.security.protocol.map": ",".join(f"{n}:{p}" for n, p in protocols.items()),
            "log.dirs": self.directory / f"n{node}",
            "broker.rack": f"rack-{node}",
            "offsets.topic.replication.factor": 1,
            "transaction.state.log.replication.factor": 1,
            "transaction.state.log.min.isr": 1,
            "log.cleaner.dedupe.buffer.size": 2097152,
            "broker.session.timeout.ms": 3000,
            "broker.heartbeat.interval.ms": 500,
            "auto.create.topics.enable": "false",
            **self.settings,
            **(self._of_last if node == self.nodes[-1] else {}),
        }
        path = self.directory / f"n{node}.properties"
        path.write_text("".join(f"{k}={v}\n" for k, v in settings.items()), encoding="utf-8")
        return path

    def _quorum(self) -> dict[str, str]:
        at = {node: f"127.0.0.1:{port}" for node, port in self.voters.items()}
        if self._has_dynamic_quorum:
            return {"controller.quorum.bootstrap.servers": ",".join(at.values())}
        return {"controller.quorum.voters": ",".join(f"{i}@{where}" for i, where in at.items())}

    def java(self, node: int, *arguments: str | Path) -> subprocess.Popen[bytes]:
        """Starts a JVM whose output goes to the node's log."""
        heap = ["-Xmx300m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto"]
        logging = ["-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"]
        with (self.directory / f"n{node}.log").open("ab") as log:
            return subprocess.Popen(
                ["java", *heap, *logging, *self._java_options, "-cp", self.classpath, *arguments],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
            )

    def start(self, node: int) -> None:
        self.running[node] = self.java(node, "kafka.Kafka", self.properties(node))

    def stop(self, node: int) -> None:
        """Stops a node by a controlled shutdown: it hands over its leaders first."""
        self.terminate(node)
        self.running.pop(node).wait(START_S)

    def terminate(self, node: int) -> None:
        """Sends SIGTERM; stop() waits for the end."""
        self.running[node].terminate()

    def kill(self, *nodes: int) -> None:
        """Kills nodes at once (SIGKILL)."""
        killed = [self.running.pop(node) for node in nodes]
        for process in killed:
            process.kill()
        for process in killed:
            process.wait()

    def freeze(self, node: int) -> None:
        """Stops a node's process (SIGSTOP): its connections stay, and are silent."""
        os.kill(self.running[node].pid, signal.SIGSTOP)

    def thaw(self, node: int) -> None:
        """Lets a frozen node go on (SIGCONT)."""
        os.kill(self.running[node].pid, signal.SIGCONT)

    def move(self) -> None:
        """Kills all nodes and starts them with other ports for brokers and clients."""
        self.kill(*self.nodes)
        self.choose_ports()
        for node in self.nodes:
            self.start(node)
        self.until_up()

    def until(self, holds: Callable[[], object], what: str, timeout: float = START_S) -> None:
        """Returns when `holds()` is true; an Error of it counts as false. Raises after `timeout`.

        Also raises if a node ended by itself.
        """
        end = time.monotonic() + timeout
        while True:
            try:
                if holds():
                    return
            except Error:
                pass
            if any(process.poll() is not None for process in self.running.values()):
                raise RuntimeError(f"a node ended, waiting for {what}:\n{self.log()}")
            if time.monotonic() > end:
                raise RuntimeError(f"not within {timeout} s: {what}\n{self.log()}")
            time.sleep(0.05)

    def asked(self, node: int, topics: Iterable[str] | None = ()) -> MetadataCache:
        """Returns what one broker says about topics; raises fetch()'s errors."""
        cache = MetadataCache()
        fetch(cache, self.address(node), None if topics is None else list(topics), timeout=5)
        return cache

    def until_up(self) -> None:
        """Returns when each running broker's answer has every running broker."""
        running = sorted(self.running)

        def knows_all(node: int) -> bool:
            return [b.id for b in self.asked(node).brokers] == running

        for node in running:
            self.until(partial(knows_all, node), f"node {node} knows all brokers")

    def until_in_sync(self, *topics: str) -> None:
        """Returns when each running broker says that every replica of the topics is in sync.

        Without names that is every topic.
        """

        def holds(node: int) -> bool:
            cache = self.asked(node, topics or None)
            return all(
                p.leader is not None and len(p.isr) == len(p.replicas)
                for topic in topics or cache
                for p in cache.topic(topic).partitions
            )

        self.until_up()
        for node in sorted(self.running):
            self.until(partial(holds, node), f"node {node} says that all is in sync")

    def create(
        self, topic: str, replicas: Sequence[list[int]], config: Mapping[str, str] = {}
    ) -> None:
        """Creates a topic with these replicas of its partitions; waits until they are in sync."""
        new = NewTopic(topic, len(replicas), replica_assignment=list(replicas), config=dict(config))
        admin = self.admin
        admin.create_topics([new])[topic].result(30)
        self.until_in_sync(topic)

    def delete_topics(self) -> None:
        """Deletes all topics, Kafka's own ones too; returns when no broker has one."""
        names = {name for node in self.running for name in self.asked(node, None)}
        if not names:
            return
        admin = self.admin
        for deleted in admin.delete_topics(list(names)).values():
            deleted.result(30)
        for node in self.running:
            self.until(partial(self._has_none_of, node, names), f"node {node} has no topic")

    def _has_none_of(self, node: int, names: set[str]) -> bool:
        return names.isdisjoint(self.asked(node, None))

    def recover(self) -> None:
        """Undoes every fault: all nodes run, proxies are healed, all topics are in sync."""
        for node in self.nodes:
            process = self.running.get(node)
            if process is not None and process.poll() is None:
                self.thaw(node)
            else:
                self.start(node)
        for proxies in self.proxies_of.values():
            for proxy in proxies.values():
                proxy.heal()
        self.until_in_sync()

    def log(self) -> str:
        return "\n".join(
            path.read_text(errors="replace")[-2000:] for path in self.directory.glob("*.log")
        )

    def __enter__(self) -> RealKafka:
        proxied = [name for name, each in self.listeners.items() if each.is_proxied]
        if proxied:
            loop = self._stack.enter_context(LoopThread("proxies"))
            for name in proxied:
                for node in self.nodes:
                    proxy = Proxy(loop, self.address(node, name))
                    self.proxies_of[name][node] = self._stack.enter_context(proxy)
        try:
            self._format()
            for node in self.nodes:
                self.start(node)
            self.until_up()
        except BaseException:
            self.end()
            raise
        return self

    def _format(self) -> None:
        options = [*self._format_options]
        if self._has_dynamic_quorum:
            voters = (
                f"{node}@127.0.0.1:{port}:{random_id()}" for node, port in self.voters.items()
            )
            options += ["--initial-controllers", ",".join(voters)]
        formats = [
            self.java(
                node, "kafka.tools.StorageTool", "format", "-t", self.cluster_id, "-c",
                self.properties(node), *options,
            )
            for node in self.nodes
        ]  # fmt: skip
        if any(process.wait(START_S) for process in formats):
            raise RuntimeError(f"a node could not be formatted:\n{self.log()}")

    def end(self) -> None:
        """Kills all nodes and closes the proxies."""
        self.kill(*list(self.running))
        self._stack.close()

    def __exit__(self, *_: object) -> None:
        self.end()

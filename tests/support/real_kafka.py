"""Runs real Kafka from `make kafka-jars`: each node is a JVM, a broker and a controller.

Brokers and administrators use the listener PLAINTEXT. A cluster may have a second one, CLIENT,
whose advertised address is a proxy's: so a test cuts off clients and nothing else.
"""

from __future__ import annotations

import base64
import os
import shutil
import signal
import subprocess
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from types import TracebackType

from listener import free_ports
from loop_thread import LoopThread
from proxy import Proxy

from rdmeta import MetadataCache, fetch
from rdmeta.errors import Error

JARS = Path(__file__).resolve().parents[2] / ".cache" / "kafka"
START_S = 60


def missing(version: str) -> str | None:
    """Returns why this Kafka cannot run here, None if it can."""
    if not shutil.which("java"):
        return "no Java"
    if not (JARS / version).is_dir():
        if not shutil.which("mvn"):
            return f"Kafka {version} is not here, and Maven, which fetches it, is not installed"
        return f"Kafka {version} is not here: `make kafka-jars` fetches it"
    return None


class RealKafka:
    """A context manager that runs `nodes` nodes, with ids from 1 on, in `directory`.

    With `proxied`, clients of `client_bootstrap` reach each node through one of `proxies`.
    """

    def __init__(
        self,
        version: str,
        nodes: int,
        directory: Path,
        *,
        proxied: bool = False,
        settings: Mapping[str, object] | None = None,
    ) -> None:
        self.version = version
        self.classpath = f"{JARS / version}/*"
        self.directory = directory
        self.nodes = range(1, nodes + 1)
        self.settings = settings or {}
        self.voters = dict(zip(self.nodes, free_ports(nodes), strict=True))
        self.ports: dict[int, int] = {}
        self.client_ports: dict[int, int] = {}
        self.proxies: dict[int, Proxy] = {}
        self._proxied = proxied
        self._stack = ExitStack()
        self.choose_ports()
        self.cluster_id = "A" + base64.urlsafe_b64encode(uuid.uuid4().bytes).decode()[1:22]
        self.running: dict[int, subprocess.Popen[bytes]] = {}

    @property
    def bootstrap(self) -> str:
        return ",".join(self.address(node) for node in self.nodes)

    @property
    def client_bootstrap(self) -> str:
        return ",".join(proxy.address for proxy in self.proxies.values())

    def address(self, node: int) -> str:
        """Returns the address of a node's listener PLAINTEXT."""
        return f"127.0.0.1:{self.ports[node]}"

    def choose_ports(self) -> None:
        """Chooses new ports for the listeners of brokers; nodes that start from now on use them."""
        count = len(self.nodes)
        while True:
            ports = free_ports(2 * count)
            if not set(ports) & {*self.voters.values(), *self.ports.values()}:
                break
        self.ports = dict(zip(self.nodes, ports[:count], strict=True))
        self.client_ports = dict(zip(self.nodes, ports[count:], strict=True))
        for node, proxy in self.proxies.items():
            proxy.retarget(f"127.0.0.1:{self.client_ports[node]}")

    def properties(self, node: int) -> Path:
        """Writes the node's configuration; returns its path."""
        voters = ",".join(f"{i}@127.0.0.1:{port}" for i, port in self.voters.items())
        listeners = f"PLAINTEXT://{self.address(node)}"
        advertised, protocols = listeners, "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT"
        if self._proxied:
            advertised += f",CLIENT://{self.proxies[node].address}"
            listeners += f",CLIENT://127.0.0.1:{self.client_ports[node]}"
            protocols += ",CLIENT:PLAINTEXT"
        settings = {
            "process.roles": "broker,controller",
            "node.id": node,
            "controller.quorum.voters": voters,
            "listeners": f"{listeners},CONTROLLER://127.0.0.1:{self.voters[node]}",
            "advertised.listeners": advertised,
            "controller.listener.names": "CONTROLLER",
            "inter.broker.listener.name": "PLAINTEXT",
            "listener.security.protocol.map": protocols,
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
        }
        path = self.directory / f"n{node}.properties"
        path.write_text("".join(f"{k}={v}\n" for k, v in settings.items()), encoding="utf-8")
        return path

    def java(self, node: int, *arguments: str | Path) -> subprocess.Popen[bytes]:
        """Starts a JVM whose output goes to the node's log."""
        heap = ["-Xmx300m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto"]
        logging = ["-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"]
        with (self.directory / f"n{node}.log").open("ab") as log:
            return subprocess.Popen(
                ["java", *heap, *logging, "-cp", self.classpath, *arguments],
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
        """Returns when each running broker says that every replica of the topics is in sync."""

        def holds(node: int) -> bool:
            cache = self.asked(node, topics)
            return all(
                p.leader is not None and len(p.isr) == len(p.replicas)
                for topic in topics
                for p in cache.topic(topic).partitions
            )

        self.until_up()
        for node in sorted(self.running):
            self.until(partial(holds, node), f"node {node} says that all is in sync")

    def recover(self, *topics: str) -> None:
        """Undoes every fault: all nodes run, proxies are healed, the topics are in sync."""
        for node in self.nodes:
            process = self.running.get(node)
            if process is not None and process.poll() is None:
                self.thaw(node)
            else:
                self.start(node)
        for proxy in self.proxies.values():
            proxy.heal()
        self.until_in_sync(*topics)

    def log(self) -> str:
        return "\n".join(
            path.read_text(errors="replace")[-2000:] for path in self.directory.glob("*.log")
        )

    def __enter__(self) -> RealKafka:
        if self._proxied:
            loop = self._stack.enter_context(LoopThread("proxies"))
            for node in self.nodes:
                proxy = Proxy(loop, f"127.0.0.1:{self.client_ports[node]}")
                self.proxies[node] = self._stack.enter_context(proxy)
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
        formats = [
            self.java(
                node, "kafka.tools.StorageTool", "format", "-t", self.cluster_id, "-c",
                self.properties(node),
            )
            for node in self.nodes
        ]  # fmt: skip
        if any(process.wait(START_S) for process in formats):
            raise RuntimeError(f"a node could not be formatted:\n{self.log()}")

    def end(self) -> None:
        """Kills all nodes and closes the proxies."""
        self.kill(*list(self.running))
        self._stack.close()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.end()

"""Runs real Kafka from `make kafka-jars`: each node is a JVM, a broker and a controller."""

from __future__ import annotations

import base64
import socket
import subprocess
import time
import uuid
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

from rdmeta import MetadataCache, fetch
from rdmeta.errors import Error

JARS = Path(__file__).resolve().parents[2] / ".cache" / "kafka"
START_S = 60


def free_ports(n: int) -> list[int]:
    """Returns ports that no process listened on a moment ago."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(n)]
        for s in sockets:
            s.bind(("127.0.0.1", 0))
        return [int(s.getsockname()[1]) for s in sockets]


class RealKafka:
    """A context manager that runs `nodes` nodes, with ids from 1 on, in `directory`."""

    def __init__(self, version: str, nodes: int, directory: Path) -> None:
        self.version = version
        self.classpath = f"{JARS / version}/*"
        self.directory = directory
        self.nodes = range(1, nodes + 1)
        ports = free_ports(2 * nodes)
        self.ports = dict(zip(self.nodes, ports[:nodes], strict=True))
        self.voters = dict(zip(self.nodes, ports[nodes:], strict=True))
        self.cluster_id = "A" + base64.urlsafe_b64encode(uuid.uuid4().bytes).decode()[1:22]
        self.running: dict[int, subprocess.Popen[bytes]] = {}

    @property
    def bootstrap(self) -> str:
        return ",".join(f"127.0.0.1:{port}" for port in self.ports.values())

    def properties(self, node: int) -> Path:
        """Writes the node's configuration; returns its path."""
        voters = ",".join(f"{i}@127.0.0.1:{port}" for i, port in self.voters.items())
        settings = {
            "process.roles": "broker,controller",
            "node.id": node,
            "controller.quorum.voters": voters,
            "listeners": f"PLAINTEXT://127.0.0.1:{self.ports[node]},"
            f"CONTROLLER://127.0.0.1:{self.voters[node]}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{self.ports[node]}",
            "controller.listener.names": "CONTROLLER",
            "inter.broker.listener.name": "PLAINTEXT",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "log.dirs": self.directory / f"n{node}",
            "broker.rack": f"rack-{node}",
            "offsets.topic.replication.factor": 1,
            "transaction.state.log.replication.factor": 1,
            "transaction.state.log.min.isr": 1,
            "log.cleaner.dedupe.buffer.size": 2097152,
            "broker.session.timeout.ms": 3000,
            "broker.heartbeat.interval.ms": 500,
            "auto.create.topics.enable": "false",
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
        process = self.running.pop(node)
        process.terminate()
        process.wait(START_S)

    def until_up(self) -> None:
        """Returns when an answer contains every running broker; raises after START_S."""
        end = time.monotonic() + START_S
        while True:
            try:
                cache = MetadataCache()
                fetch(cache, self.bootstrap, (), timeout=5)
                if len(cache.brokers) == len(self.running):
                    return
            except Error:
                pass
            if time.monotonic() > end or any(p.poll() is not None for p in self.running.values()):
                raise RuntimeError(f"no Kafka within {START_S} s:\n{self.log()}")
            time.sleep(0.1)

    def log(self) -> str:
        return "\n".join(
            path.read_text(errors="replace")[-2000:] for path in self.directory.glob("*.log")
        )

    def __enter__(self) -> RealKafka:
        formats = [
            self.java(
                node, "kafka.tools.StorageTool", "format", "-t", self.cluster_id, "-c",
                self.properties(node),
            )
            for node in self.nodes
        ]  # fmt: skip
        if any(process.wait(START_S) for process in formats):
            raise RuntimeError(f"a node could not be formatted:\n{self.log()}")
        try:
            for node in self.nodes:
                self.start(node)
            self.until_up()
        except BaseException:
            self.end()
            raise
        return self

    def end(self) -> None:
        for process in self.running.values():
            process.kill()
        for process in self.running.values():
            process.wait()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.end()

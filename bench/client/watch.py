"""Subjects that report when they see another leader, each a process with one protocol.

The parent writes `connect NODE PORT`: the subject learns that NODE leads partition 0, gets a
connection to it, and prints `ready LEADER REQUESTS`. Whenever its leader is another one it prints
`leader SECONDS LEADER REQUESTS`: the time since 1970, and the requests for metadata that it has
sent, if the subject counts them, else 0. Every subject looks at its own metadata each millisecond;
a look asks no broker. It ends with its input.

`python -m bench.client.watch SUBJECT BOOTSTRAP TOPIC` is such a process.
"""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import rdmeta
from bench.build import ROOT

LOOK = 0.001
PATIENCE = 60.0
NETWORK_EXCEPTION = 13


# ---- the parent's side --------------------------------------------------------------------------


class Watcher:
    """A subject's process, as the parent sees it."""

    def __init__(self, name: str, command: Sequence[str]) -> None:
        self.name = name
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            bufsize=1,
            cwd=ROOT,
        )
        self.events: list[tuple[float, int]] = []
        self.ready: int | None = None
        self.requests = [0, 0]  # when it was ready, and when it last saw another leader
        self.news = threading.Condition()
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()

    def read(self) -> None:
        """Collects the lines of the process until it ends."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            words = line.split()
            with self.news:
                if words[0] == "ready":
                    self.ready = int(words[1])
                    self.requests = [int(each) for each in (words[2:] or ["0"])] * 2
                else:
                    self.requests[1] = int(words[3]) if len(words) > 3 else 0
                    self.events.append((float(words[1]), int(words[2])))
                self.news.notify_all()
        with self.news:
            self.ready = self.ready or -1
            self.news.notify_all()

    def connect(self, node: int, port: int) -> None:
        """Has the subject connect to the leader; `connected` waits for that."""
        assert self.process.stdin is not None
        self.ready = None
        self.events.clear()
        self.process.stdin.write(f"connect {node} {port}\n")

    def connected(self, node: int, port: int) -> None:
        """Returns once the subject knows and has a connection to `node`.

        A producer may have sent its record to the leader before: it is asked again.
        """
        end = time.monotonic() + PATIENCE
        while True:
            with self.news:
                if not self.news.wait_for(lambda: self.ready is not None, PATIENCE):
                    raise SystemExit(f"{self.name} did not connect within {PATIENCE} s")
            if self.ready == node:
                return
            if self.ready is None or self.ready < 0 or time.monotonic() > end:
                raise SystemExit(f"{self.name} sees leader {self.ready}, not {node}")
            time.sleep(0.5)
            self.connect(node, port)

    def seen(self, leader: int, since: float, until: float) -> float | None:
        """Returns when the subject saw that leader after `since`, None if not before `until`."""

        def found() -> list[float]:
            return [at for at, node in self.events if node == leader and at > since]

        with self.news:
            self.news.wait_for(found, max(0.0, until - time.time()))
            return next((at for at in found() if at <= until), None)

    def end(self) -> None:
        """Ends the process."""
        self.process.kill()
        self.process.wait()
        self.thread.join()
        for pipe in (self.process.stdin, self.process.stdout):
            with suppress(BrokenPipeError):
                pipe.close()  # type: ignore[union-attr]


def command(subject: str, bootstrap: str, topic: str) -> list[str]:
    """Returns the command of a subject in Python."""
    return [sys.executable, "-m", "bench.client.watch", subject, bootstrap, topic]


# ---- subjects in Python -------------------------------------------------------------------------


class WatchedSubject:
    """One client, its view of the leader, and a connection to that."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.bootstrap = bootstrap
        self.topic = topic

    def connect(self, node: int, port: int) -> None:
        """Learns that `node` leads, and connects to it."""
        raise NotImplementedError

    def leader(self) -> int:
        """Returns the leader of partition 0 that this client knows, or -1. It asks no broker."""
        raise NotImplementedError

    def requests(self) -> int:
        """Returns how many requests for metadata this client has sent, 0 if it counts none."""
        return 0


class ToldClient(WatchedSubject):
    """rdmeta's client in an application that has connections of its own and reports their loss."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        super().__init__(bootstrap, topic)
        self.client = rdmeta.Client({"bootstrap.servers": bootstrap}, topics=[topic])

    def connect(self, node: int, port: int) -> None:
        end = time.monotonic() + PATIENCE
        while self.client.leader(self.topic, 0, timeout=PATIENCE) != node:
            self.client.refresh(timeout=PATIENCE)
            if time.monotonic() > end:
                return
        theirs = socket.create_connection(("127.0.0.1", port))
        threading.Thread(target=self.report, args=(theirs,), daemon=True).start()

    def report(self, theirs: socket.socket) -> None:
        """Tells the client when the application's connection to the leader breaks."""
        with theirs, suppress(OSError):
            theirs.recv(1)
        self.client.leader_unavailable(self.topic, 0, NETWORK_EXCEPTION)

    def leader(self) -> int:
        return int(self.client.cache.leader(self.topic, 0, -1))

    def requests(self) -> int:
        reasons = self.client.stats()["refreshes"].values()
        return sum(each["sent"] + each["hedged"] for each in reasons)


class Idle(WatchedSubject):
    """rdmeta's client without an application, with a connection to the leader."""

    client: Any = None

    def connect(self, node: int, port: int) -> None:
        if self.client is not None:
            self.client.close()
        self.client = rdmeta.Client({"bootstrap.servers": f"127.0.0.1:{port}"}, topics=[self.topic])
        self.client.leader(self.topic, 0, timeout=PATIENCE)

    def leader(self) -> int:
        return -1 if self.client is None else self.client.cache.leader(self.topic, 0, -1)


class Aiokafka(WatchedSubject):
    """aiokafka's producer, idle after one record."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        super().__init__(bootstrap, topic)
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.loop.run_forever, daemon=True).start()
        self.producer: Any = self.run(self.start())

    def run(self, work: Any) -> Any:
        """Runs a coroutine in the loop's thread and returns its result."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(PATIENCE)

    async def start(self) -> Any:
        """Starts the producer."""
        import aiokafka

        self.partition = aiokafka.TopicPartition(self.topic, 0)
        producer = aiokafka.AIOKafkaProducer(bootstrap_servers=self.bootstrap)
        await producer.start()
        return producer

    def connect(self, node: int, port: int) -> None:
        self.run(self.producer.send_and_wait(self.topic, b"x", partition=0))

    def leader(self) -> int:
        found = self.producer.client.cluster.leader_for_partition(self.partition)
        return -1 if found is None else int(found)


class BusyAiokafka(Aiokafka):
    """aiokafka's producer with a record each 10 ms; it counts its updates of metadata."""

    updates = 0

    async def start(self) -> Any:
        producer = await super().start()
        update = producer.client._metadata_update

        async def counted(*arguments: Any) -> Any:
            self.updates += 1
            return await update(*arguments)

        producer.client._metadata_update = counted
        self.task = asyncio.create_task(self.send(producer))
        return producer

    async def send(self, producer: Any) -> None:
        """Sends for ever."""
        while True:
            with suppress(Exception):
                await producer.send(self.topic, b"x", partition=0)
            await asyncio.sleep(0.01)

    def requests(self) -> int:
        return self.updates


class KafkaPythonWatch(WatchedSubject):
    """kafka-python's producer, idle after one record."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        super().__init__(bootstrap, topic)
        import kafka

        self.partition = kafka.TopicPartition(topic, 0)
        self.producer = kafka.KafkaProducer(bootstrap_servers=bootstrap)

    def connect(self, node: int, port: int) -> None:
        self.producer.send(self.topic, b"x", partition=0).get(PATIENCE)

    def leader(self) -> int:
        found = self.producer._metadata.leader_for_partition(self.partition)
        return -1 if found is None else int(found)


SUBJECTS: dict[str, Callable[[str, str], WatchedSubject]] = {
    "told": ToldClient,
    "idle": Idle,
    "aiokafka": Aiokafka,
    "aiokafka_busy": BusyAiokafka,
    "kafka-python": KafkaPythonWatch,
}


def say(line: str) -> None:
    """Writes a line at once: two threads say something, and print() writes in pieces."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def watch(subject: WatchedSubject) -> None:
    """Looks each millisecond, and prints each new leader."""
    last = -1
    while True:
        found = subject.leader()
        if found not in (-1, last):
            say(f"leader {time.time()} {found} {subject.requests()}")
            last = found
        time.sleep(LOOK)


def main(name: str, bootstrap: str, topic: str) -> None:
    """Serves the parent's lines until they end."""
    subject = SUBJECTS[name](bootstrap, topic)
    threading.Thread(target=watch, args=(subject,), daemon=True).start()
    for line in sys.stdin:
        _, node, port = line.split()
        subject.connect(int(node), int(port))
        say(f"ready {subject.leader()} {subject.requests()}")


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Records when each broker of a cluster first says something: the brokers' word, without a client.

A process of its own asks each broker every 10 ms on a connection of its own. It sends with rdmeta's
blocking connection, and decodes with kafka-python; so no policy and no cache of rdmeta decides what
a broker has said. Times are time.time(), as the `observed_at` of change records.
"""

from __future__ import annotations

import io
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Collection
from typing import NamedTuple

from processes import environment

EVERY_S = 0.01
_ANSWER_S = 2.0

# For each topic that exists, its partitions: (leader, epoch, error, replicas in sync).
Topics = dict[str, list[tuple[int, int, int, tuple[int, ...]]]]


class Word(NamedTuple):
    """The first answer of a broker that says this; `brokers` are the ids of those that live."""

    at: float
    broker: int
    brokers: tuple[int, ...]
    topics: Topics


class FirstWord:
    """A context manager that records what brokers say about `topics`, also about unknown ones.

    `addresses` has the address of each broker; a broker that does not answer is asked again.
    """

    def __init__(self, addresses: dict[int, str], topics: Collection[str]) -> None:
        self._command = [sys.executable, __file__, json.dumps([addresses, list(topics)])]
        self._words: list[Word] = []
        self._news = threading.Condition()

    def __enter__(self) -> FirstWord:
        self._process = subprocess.Popen(
            self._command,
            stdout=subprocess.PIPE,
            stdin=subprocess.PIPE,
            text=True,
            env=environment(),
        )
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()  # the process ends
        self._process.wait(30)
        self._thread.join(30)
        assert self._process.stdout is not None
        self._process.stdout.close()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            at, broker, brokers, topics = json.loads(line)
            found = {
                name: [(leader, epoch, error, tuple(isr)) for leader, epoch, error, isr in rows]
                for name, rows in topics.items()
            }
            with self._news:
                self._words.append(Word(at, broker, tuple(brokers), found))
                self._news.notify_all()

    @property
    def words(self) -> list[Word]:
        """All words so far, by time."""
        with self._news:
            return sorted(self._words)

    def wait(
        self, says: Callable[[Word], object], since: float = 0.0, timeout: float = 60.0
    ) -> Word:
        """Returns the first word from `since` (time.time()) on that `says` is true for.

        Raises TimeoutError.
        """
        end = time.monotonic() + timeout
        with self._news:
            while True:
                found = [word for word in self._words if word.at >= since and says(word)]
                if found:
                    return min(found)
                self._news.wait(0.5)
                assert self._process.poll() is None, "the process that asks has ended"
                if time.monotonic() > end:
                    raise TimeoutError(f"no broker said it in {timeout} s")


# ---- the process --------------------------------------------------------------------------------


def ask(broker: int, address: str, topics: list[str], say: Callable[[str], None]) -> None:
    """Asks one broker again and again; says each answer that differs from the one before it."""
    from kafka.protocol.metadata import MetadataResponse

    from rdmeta import Error, encode_metadata_request
    from rdmeta.config.address import parse_bootstrap
    from rdmeta.net.blocking_session import Connection, Deadline

    request = encode_metadata_request(12, tuple(topics))
    before = b""
    while True:
        try:
            server = parse_bootstrap(address)[0]
            with Connection(server, Deadline(_ANSWER_S), "first-word", 1 << 27) as connection:
                while True:
                    begin = time.monotonic()
                    body = connection.request(3, 12, request, Deadline(_ANSWER_S))
                    at = time.time()
                    if body != before:
                        before = body
                        answer = MetadataResponse.decode(io.BytesIO(body), version=12)
                        say(json.dumps([at, broker, *plain(answer)]))
                    time.sleep(max(0.001, begin + EVERY_S - time.monotonic()))
        except Error:
            time.sleep(EVERY_S)


def plain(answer: object) -> tuple[list[int], Topics]:
    """Returns the brokers and topics of an answer as kafka-python decodes it."""
    brokers = sorted(b.node_id for b in answer.brokers)  # type: ignore[attr-defined]
    topics = {
        topic.name: [
            (p.leader_id, p.leader_epoch, p.error_code, tuple(sorted(p.isr_nodes)))
            for p in sorted(topic.partitions, key=lambda p: int(p.partition_index))
        ]
        for topic in answer.topics  # type: ignore[attr-defined]
        if topic.error_code == 0
    }
    return brokers, topics


def main() -> None:
    """Writes one line per word until the input ends."""
    addresses, topics = json.loads(sys.argv[1])
    lock = threading.Lock()

    def say(line: str) -> None:
        with lock:
            print(line, flush=True)

    for broker, address in addresses.items():
        arguments = (int(broker), address, topics, say)
        threading.Thread(target=ask, args=arguments, daemon=True).start()
    sys.stdin.read()


if __name__ == "__main__":
    main()

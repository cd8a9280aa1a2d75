"""Damaged answers to a session and to a connection: reported, bounded in memory, then over.

RDMETA_DAMAGE_SECONDS says how long; a failure repeats with the RDMETA_SEED that it prints.
"""

from __future__ import annotations

import asyncio
import random
import struct
import time
from collections import Counter

import damage
import pytest
from broker import METADATA, Broker, Brokers, Fault
from peer import answer_handshake, framed
from test_stream import Heard

from rdmeta import MetadataCache, Request
from rdmeta.config.address import parse_bootstrap
from rdmeta.errors import Error, MalformedError, TransportError
from rdmeta.model import ALL
from rdmeta.net.session import Session
from rdmeta.net.stream import StreamConnection

METADATA_V12_ALL = b"\0\1\0\0"
LARGEST = 1 << 22
# Bytes of memory that the process may gain while it is sent up to 4 MiB a frame.
BOUND = 64 << 20


def resident() -> int:
    """Returns this process's resident bytes."""
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * 4096


def heard(session: Session, pieces: list[bytes]) -> tuple[list[bytes], type[Error] | None]:
    """Returns the bodies of the answers in `pieces`, and the type of the error that ends them."""
    bodies = []
    try:
        for piece in [*pieces, b""]:
            bodies += [bytes(answer.body) for answer in session.receive(piece)]
    except Error as error:
        return bodies, type(error)
    return bodies, None


@pytest.mark.parametrize("long", [50, 1 << 18])
def test_a_damaged_stream_gives_the_same_however_it_is_split(
    monkeypatch: pytest.MonkeyPatch, long: int
) -> None:
    """Frames longer than `long` have a buffer of their own."""
    monkeypatch.setattr("rdmeta.net.session._LONG", long)
    rng = random.Random(damage.seed())
    ended: Counter[type[Error] | None] = Counter()
    for _ in range(1500):
        sessions = [Session(max_frame=300) for _ in range(2)]
        answers, _ = answer_handshake(sessions[0].data_to_send(), {METADATA: (0, 12)})
        for session in sessions:
            session.receive(answers)
        stream = b""
        for _ in range(4):
            numbers = {each.request(METADATA, 12, METADATA_V12_ALL) for each in sessions}
            stream += framed(numbers.pop(), rng.randbytes(rng.randrange(300)), b"\0")
        stream = damage.corrupted(rng, stream)
        cuts = sorted(rng.randrange(len(stream)) for _ in range(rng.randint(1, 9)))
        edges = [0, *cuts, len(stream)]
        pieces = [stream[a:b] for a, b in zip(edges, edges[1:], strict=False)]
        whole = heard(sessions[0], [stream])
        assert heard(sessions[1], pieces) == whole
        ended[whole[1]] += 1
    assert {MalformedError, TransportError, None} <= set(ended), ended


class Trial:
    """One broker, a connection to it that lasts as long as it works, and what came of damage."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.outcomes: Counter[tuple[str, str]] = Counter()
        self.heard = Heard()
        self.connection = StreamConnection(self.heard, max_frame=LARGEST)
        self.connection.close()

    async def connect(self) -> bool:
        """Returns whether there is a connection: the old one, or a new one."""
        if self.connection.is_open:
            return True
        self.connection.close()
        self.heard = Heard()
        self.connection = StreamConnection(self.heard, max_frame=LARGEST)
        self.connection.open(parse_bootstrap(self.broker.address)[0], 0.2)
        return await self.heard.wait("connected", "disconnected") == "connected"

    async def ask(self, seconds: float) -> bytes | Error | None:
        """Returns the answer, the error that ended the connection, or None for silence."""
        self.heard.events.clear()
        self.heard.answers.clear()
        try:
            self.connection.request(METADATA, 12, METADATA_V12_ALL)
            await asyncio.wait_for(self.heard.wait("response", "disconnected"), seconds)
        except Error as error:
            return error
        except asyncio.TimeoutError:
            self.connection.close()
            return None
        return bytes(self.heard.answers[0].body) if self.heard.answers else self.heard.error


async def damage_until(end: float, trial: Trial, rng: random.Random, truth: bytes) -> None:
    """Damages answers until the end, and each kind at least twice."""
    rounds, of_handshakes = damage.rounds(rng, LARGEST), damage.rounds(rng, LARGEST)
    done = 0
    while time.monotonic() < end or done < 2 * len(damage.KINDS):
        done += 1
        # Half of the connections go on after damage, whose rest may then arrive.
        if rng.random() < 0.5:
            trial.connection.close()
        if rng.random() < 0.1:
            trial.connection.close()
            trial.broker.fault = next(of_handshakes).fault
            await trial.connect()
            trial.broker.fault = Fault()
        is_new = not trial.connection.is_open
        while not await trial.connect():
            pass
        kind, fault = next(rounds)
        trial.broker.next(fault)
        outcome = await trial.ask(0.1 if kind in damage.SILENT else 20)
        if is_new:
            check(kind, outcome, truth)
        apply(outcome)
        trial.outcomes[kind, type(outcome).__name__] += 1


def check(kind: str, outcome: bytes | Error | None, truth: bytes) -> None:
    """Checks what one damaged answer on a new connection comes to."""
    if kind in ("dripped", "doubled"):
        assert outcome == truth
    elif kind == "correlated":
        assert isinstance(outcome, TransportError)
    elif kind == "oversized":
        assert isinstance(outcome, MalformedError)
    elif kind == "endless":
        assert outcome is None


def apply(answer: bytes | Error | None) -> None:
    """Applies an answer to a cache, which may refuse it."""
    if isinstance(answer, bytes):
        cache = MetadataCache()
        try:
            cache.apply(answer, 12, Request(ALL))
        except Error:
            assert len(cache) == 0, "an answer is applied whole or not at all"


@pytest.mark.timeout(300)
def test_damaged_answers_are_reported_and_the_next_connection_works() -> None:
    rng = random.Random(damage.seed())

    async def main(broker: Broker) -> Counter[tuple[str, str]]:
        trial = Trial(broker)
        assert await trial.connect()
        truth = await trial.ask(10)
        assert isinstance(truth, bytes)
        before = resident()
        await damage_until(time.monotonic() + damage.seconds(3.0), trial, rng, truth)
        assert resident() - before < BOUND
        trial.connection.close()
        assert await trial.connect()
        assert await trial.ask(10) == truth
        trial.connection.close()
        return trial.outcomes

    with Brokers(1) as brokers:
        for number in range(20):
            brokers.truth.create(f"topic-{number}", partitions=4)
        outcomes = asyncio.run(main(brokers[1]))
    print(outcomes)
    assert {kind for kind, _ in outcomes} == set(damage.KINDS)


def test_an_announced_length_takes_no_memory_before_its_bytes_arrive() -> None:
    session = Session(max_frame=1 << 30)
    answers, _ = answer_handshake(session.data_to_send(), {METADATA: (0, 12)})
    session.receive(answers)
    session.request(METADATA, 12, METADATA_V12_ALL)
    before = resident()
    session.receive(struct.pack(">i", 1 << 30))
    for _ in range(100):
        session.receive(b"x")
    assert resident() - before < 1 << 20

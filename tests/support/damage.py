"""Damaged answers from a seed: what a broken broker, network or proxy can do to a frame."""

from __future__ import annotations

import os
import random
import struct
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import pytest
from broker import Fault

from rdmeta.errors import MalformedError

_LENGTH = struct.Struct(">i")
# Where a flexible Metadata answer has its throttle time: after length, correlation id and tags.
_THROTTLE = range(9, 13)


class Damage(NamedTuple):
    """A fault of a broker, and the name of its kind."""

    kind: str
    fault: Fault


def seed() -> int:
    """Returns the seed in RDMETA_SEED, or a new one; prints it."""
    chosen = int(os.environ.get("RDMETA_SEED", random.randrange(1 << 32)))
    print(f"RDMETA_SEED={chosen}")
    return chosen


def seconds(short: float) -> float:
    """Returns how long a test damages answers: RDMETA_DAMAGE_SECONDS, or `short`."""
    return float(os.environ.get("RDMETA_DAMAGE_SECONDS", short))


def assert_no_other_length_is_read(
    parse: Callable[[bytes, int], object], body: bytes, version: int
) -> None:
    """Parses every prefix of an answer, and a longer one."""
    for length in range(len(body)):
        with pytest.raises(MalformedError):
            parse(body[:length], version)
    with pytest.raises(MalformedError, match="1 bytes follow"):
        parse(body + b"\0", version)


def rounds(rng: random.Random, largest: int, drip: float = 0.0005) -> Iterator[Damage]:
    """Yields damage to a client that accepts frames of `largest` bytes, without end.

    Each kind comes once per round; each round has another order.
    """
    while True:
        for kind in rng.sample(KINDS, len(KINDS)):
            yield Damage(kind, _KINDS[kind](rng, largest, drip))


def corrupted(rng: random.Random, frame: bytes, first: int = 0) -> bytes:
    """Returns the frame with one to four other bytes, from the `first` on.

    The throttle time of a flexible answer is spared: a client has to believe it.
    """
    found = bytearray(frame)
    places = [at for at in range(first, len(found)) if at not in _THROTTLE]
    for at in rng.choices(places, k=rng.randint(1, 4)):
        found[at] ^= rng.randint(1, 255)
    return bytes(found)


def _corrupted(rng: random.Random, largest: int, drip: float) -> Fault:
    return Fault(mangle=lambda frame: [corrupted(rng, frame)])


def _corrupted_body(rng: random.Random, largest: int, drip: float) -> Fault:
    return Fault(mangle=lambda frame: [corrupted(rng, frame, min(13, len(frame) - 1))])


def _truncated(rng: random.Random, largest: int, drip: float) -> Fault:
    """Sends a part of the frame, and no more."""
    return Fault(mangle=lambda frame: [frame[: rng.randrange(len(frame))]])


def _shortened(rng: random.Random, largest: int, drip: float) -> Fault:
    """Sends a whole frame whose body ends too early."""

    def mangle(frame: bytes) -> Sequence[bytes]:
        body = frame[4 : rng.randrange(4, len(frame))]
        return [_LENGTH.pack(len(body)) + body]

    return Fault(mangle=mangle)


def _dripped(rng: random.Random, largest: int, drip: float) -> Fault:
    def mangle(frame: bytes) -> Sequence[bytes]:
        size = rng.randint(1, max(1, len(frame) // 8))
        return [frame[at : at + size] for at in range(0, len(frame), size)]

    return Fault(mangle=mangle, drip=drip)


def _oversized(rng: random.Random, largest: int, drip: float) -> Fault:
    """Announces more than is accepted, or a negative length; sends a lot."""
    length = rng.choice([largest + 1, 2**31 - 1, -1, -(2**31)])
    return Fault(mangle=lambda frame: [_LENGTH.pack(length), *[bytes(1 << 18)] * 16])


def _endless(rng: random.Random, largest: int, drip: float) -> Fault:
    """Announces as much as is accepted, and sends less."""
    sent = rng.randrange(largest - 4)
    return Fault(mangle=lambda frame: [_LENGTH.pack(largest) + frame[4:8], bytes(sent)])


def _doubled(rng: random.Random, largest: int, drip: float) -> Fault:
    return Fault(copies=rng.randint(2, 3))


def _correlated(rng: random.Random, largest: int, drip: float) -> Fault:
    return Fault(wrong_correlation=rng.choice([-1, 1, 2, rng.randrange(1, 1 << 31)]))


def _other(rng: random.Random, largest: int, drip: float) -> Fault:
    """Sends bytes that are no frame."""
    return Fault(mangle=lambda frame: [rng.randbytes(rng.randint(1, 200))])


_KINDS: dict[str, Callable[[random.Random, int, float], Fault]] = {
    "corrupted": _corrupted,
    "corrupted body": _corrupted_body,
    "truncated": _truncated,
    "shortened": _shortened,
    "dripped": _dripped,
    "oversized": _oversized,
    "endless": _endless,
    "doubled": _doubled,
    "correlated": _correlated,
    "other": _other,
}
KINDS = tuple(_KINDS)
# The kinds after which a client may get neither an answer nor a reason to give up.
SILENT = ("corrupted", "truncated", "endless", "other")

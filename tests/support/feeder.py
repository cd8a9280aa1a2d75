"""A process that publishes: `python feeder.py PATH TOPICS PERIOD [GENERATIONS]`.

Every topic of a generation has the generation as its epoch, and a leader that is worked out of
both, so that whoever reads can tell a state that is not of one piece. The rack of broker 1 is the
time on the clock that all processes share.
"""

from __future__ import annotations

import sys
import time
import zlib

import frames
from frames import B, P, T

from rdmeta import ALL, MetadataCache


def leader(topic: str, partition: int, generation: int) -> int:
    """A checksum."""
    return zlib.crc32(f"{topic}/{partition}/{generation}".encode()) % 1000 + 1


def body(topics: int, generation: int) -> bytes:
    """An answer about all topics of a generation."""
    names = [f"topic-{i:05}" for i in range(topics)]
    brokers = [B(1, rack=f"{generation} {time.monotonic()}"), B(2)]
    told = [
        T(name, [P(p, leader(name, p, generation), generation) for p in range(2)]) for name in names
    ]
    return frames.response(12, topics=told, brokers=brokers)


def main(path: str, topics: str, period: str, generations: str = "1000000000") -> None:
    cache = MetadataCache()
    cache.apply(body(int(topics), 1), 12, ALL)
    with cache.publish(path):
        print(cache.session, flush=True)
        for generation in range(2, int(generations) + 1):
            time.sleep(float(period))
            cache.apply(body(int(topics), generation), 12, ALL)


if __name__ == "__main__":
    main(*sys.argv[1:])

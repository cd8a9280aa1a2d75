"""A process that publishes: `python feeder.py PATH TOPICS PERIOD [GENERATIONS]`.

Every topic of a generation has the generation as its epoch. The leaders are computed from topic,
partition and generation, so a reader can detect a state that mixes two generations. The rack of
broker 1 holds the generation and the time of the clock that all processes share.
"""

from __future__ import annotations

import sys
import time
import zlib

import frames
from frames import B, P, T

from rdmeta import ALL, MetadataCache


def leader(topic: str, partition: int, generation: int) -> int:
    """Returns the leader of a partition in a generation: a checksum of the three."""
    return zlib.crc32(f"{topic}/{partition}/{generation}".encode()) % 1000 + 1


def body(topics: int, generation: int) -> bytes:
    """Returns an all-topics answer of a generation."""
    names = [f"topic-{i:05}" for i in range(topics)]
    brokers = [B(1, rack=f"{generation} {time.monotonic()}"), B(2)]
    answered = [
        T(name, [P(p, leader(name, p, generation), generation) for p in range(2)]) for name in names
    ]
    return frames.response(12, topics=answered, brokers=brokers)


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

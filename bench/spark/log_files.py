"""Writes the metadata logs of clusters of one controller, which `make bench` makes in C."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from kraft_logs import LOG

from bench.build import OUT
from rdmeta._core import kraft_batch

PARTITIONS = 1_000
_IN_BATCH, _DAY_MS = 20, 86_400_000


def write_logs(directory: Path, records: int, days: int, clusters: int = 1) -> list[Path]:
    """Writes logs of so many changes each, over so many days; returns their segments.

    All lie in one segment, which is proven as the copy of the only voter.
    """
    step_ms = max(1, days * _DAY_MS * _IN_BATCH // (records + _IN_BATCH))
    found = []
    for number in range(clusters):
        node = directory / f"cluster{number}"
        log = node / LOG
        log.mkdir(parents=True)
        given = (PARTITIONS, records, 1, number + 1, log, step_ms)
        subprocess.run([str(OUT / "metadata_log"), *map(str, given)], check=True)
        (segment,) = log.glob("*.log")
        with segment.open("rb") as file:
            epoch = kraft_batch(file.read(1 << 20))[5]
        noted = {"leaderId": 1, "leaderEpoch": epoch, "votedId": 1, "data_version": 0}
        quorum = json.dumps(noted | {"currentVoters": [{"voterId": 1}]})
        (log / "quorum-state").write_text(quorum)
        (node / "meta.properties").write_text(f"node.id=1\ncluster.id=cluster-{number}\n")
        found.append(segment)
    return found


def bytes_before_last_day(segment: Path) -> int:
    """Returns how many bytes of a segment are of all days but the last one."""
    data, at = segment.read_bytes(), 0
    places = []
    while at < len(data):
        _, size, _, _, time_ms, *_ = kraft_batch(data, at)
        places.append((time_ms // _DAY_MS, at))
        at += size
    last = places[-1][0]
    return next(place for day, place in places if day == last)

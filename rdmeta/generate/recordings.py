"""Recordings of a generated cluster, made by a real cache and a real recorder on its clock."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any
from uuid import UUID

from rdmeta._core import encode_metadata_response
from rdmeta.cache import MetadataCache
from rdmeta.generate.cluster import SECOND_US, ClusterTruth, GeneratedCluster, WatchPlan
from rdmeta.history import Recorder
from rdmeta.model import ALL

POLL_US = 30 * SECOND_US
# Most polls without news are left out; a poll that sees something follows on the one before it.
_KEPT = 20
_MAX_GAP_S = 900.0
_FLUSH_S = 6 * 3600.0
_LEADER_NOT_AVAILABLE = 5


def record(
    cluster: GeneratedCluster, watch: WatchPlan, begin: datetime, end: int, directory: Path
) -> None:
    """Writes what a recorder sees until a time; its UUIDs come from the cluster's numbers."""
    random = Random(cluster.random.random())
    replay, cache = _Replay(cluster), MetadataCache()
    now = begin
    reported: dict[str, int | None] = {}
    recorder = Recorder(
        cache,
        directory,
        max_gap=_MAX_GAP_S,
        flush_every=_FLUSH_S,
        clock=lambda: now,
        uuids=lambda: UUID(int=random.getrandbits(128), version=4),
    )
    for at in polls(cluster, watch, end):
        has_news = replay.advance(at)
        now = begin + timedelta(microseconds=at + watch.skew)
        if has_news:
            body = encode_metadata_response(answer(cluster.cluster_id, replay.state))
            cache.apply(body, 12, ALL)
            known = replay.state.min_isrs()
            if new := {name: value for name, value in known.items() if reported.get(name) != value}:
                recorder.configs(new)
            reported = known
        recorder.observe()
    if watch.killed is None:
        recorder.close()


class _Replay:
    """The truth of a cluster as its time goes on."""

    def __init__(self, cluster: GeneratedCluster) -> None:
        self.state = ClusterTruth()
        self._left = deque(cluster.changes)

    def advance(self, at: int) -> bool:
        """Applies the changes up to a time; returns whether there were any."""
        before = len(self._left)
        while self._left and self._left[0].at <= at:
            self.state.apply(self._left.popleft())
        return len(self._left) < before


def polls(cluster: GeneratedCluster, watch: WatchPlan, end: int) -> Iterator[int]:
    """Yields the times of the polls that a recorder makes, or at least those that matter.

    Without a broker in service there is no answer.
    """

    def number(at: int) -> int:
        """Returns the poll that sees what happens at a time."""
        return max(0, -(-(at - watch.phase) // POLL_US))

    stop = end if watch.killed is None else watch.killed
    news = {number(change.at) for change in cluster.changes}
    edges = {number(at) for hole in watch.holes for at in hole}
    kept = news | edges | {each - 1 for each in news | edges}
    last = (stop - 1 - watch.phase) // POLL_US
    replay = _Replay(cluster)
    for each in range(last + 1):
        at = watch.phase + each * POLL_US
        if each % _KEPT and each not in kept and each != last:
            continue
        replay.advance(at)
        is_answered = len(replay.state.fenced) < len(replay.state.brokers)
        if is_answered and not any(first <= at < behind for first, behind in watch.holes):
            yield at


def answer(cluster_id: str, state: ClusterTruth) -> dict[str, Any]:
    """Returns what a broker answers: the brokers in service, and all topics."""
    brokers = sorted(b for b in state.brokers.values() if b.id not in state.fenced)
    return {
        "brokers": [each._asdict() for each in brokers],
        "cluster_id": cluster_id,
        "controller": brokers[0].id if brokers else None,
        "topics": [
            {
                "error": 0,
                "name": name,
                "topic_id": topic.topic_id,
                "internal": False,
                "operations": None,
                "partitions": [
                    {
                        "error": _LEADER_NOT_AVAILABLE if each.leader is None else 0,
                        "partition": number,
                        "leader": each.leader,
                        "leader_epoch": each.leader_epoch,
                        "replicas": each.replicas,
                        "isr": each.isr,
                        "offline_replicas": each.offline,
                    }
                    for number, each in enumerate(topic.partitions)
                ],
            }
            for name, topic in sorted(state.topics.items())
        ],
    }

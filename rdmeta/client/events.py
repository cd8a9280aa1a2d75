"""The events for listeners and the log: each answer, and each problem with a node or a topic."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from rdmeta.client.actions import Node
from rdmeta.errors import Error
from rdmeta.model import Applied, Request

__all__ = ["Event", "Problem", "Updated"]


class Updated(NamedTuple):
    """An answer was applied to the cache. `node` has the broker's id, if that is known."""

    request: Request
    applied: Applied
    cluster_id: str | None
    node: Node


class Problem(NamedTuple):
    """A node, an answer or a topic failed: `text` says what failed, `error` why.

    `node` is None unless a node failed. `topic` is a needed topic that has an error. Missing
    listeners (LISTENER_NOT_FOUND, code 72) come once for all topics: `partitions` then has up to
    ten of the partitions, as "topic-partition".
    """

    error: Error
    node: Node | None
    text: str
    topic: str | None = None
    partitions: tuple[str, ...] = ()


Event: TypeAlias = Updated | Problem

"""What listeners and the log learn: each answer, each problem, each topic's error."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from rdmeta.client.actions import Node
from rdmeta.errors import Error
from rdmeta.model import Applied, Request

__all__ = ["Event", "Problem", "Rebootstrapped", "TopicProblem", "Updated"]


class Updated(NamedTuple):
    """An answer was applied to the cache. `node` has the broker's id, if that is known."""

    request: Request
    applied: Applied
    cluster_id: str | None
    node: Node


class Problem(NamedTuple):
    """A node or an answer failed; `text` says what failed, `error` why."""

    error: Error
    node: Node | None
    text: str


class TopicProblem(NamedTuple):
    """A needed topic has an error: UnknownTopicError, TopicAuthorizationError, and so on.

    LISTENER_NOT_FOUND (code 72) comes once for all topics. `partitions` then has up to ten of the
    partitions, as "topic-partition"; otherwise it is empty.
    """

    error: Error
    topic: str
    partitions: tuple[str, ...] = ()


class Rebootstrapped(NamedTuple):
    """Every connection was closed, and the bootstrap servers are asked anew; `cause` says why."""

    cause: str


Event: TypeAlias = Updated | Problem | TopicProblem | Rebootstrapped

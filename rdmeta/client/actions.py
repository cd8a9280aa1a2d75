"""The values that the policy gives out: actions for the driver, which has the sockets, and events.

A *link* is one connection, or one attempt to make it; links are numbered, and a number is used
once. A *waiter* is one call of the application that waits for an outcome. Events are for listeners
and the log.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import NamedTuple, TypeAlias

from rdmeta.errors import Error
from rdmeta.model import Applied, Broker, Request


class Node(NamedTuple):
    """A server to ask: a broker by its id, or a bootstrap server by -1, -2, and so on."""

    id: int
    host: str
    port: int


class RequestKind(Enum):
    """The kinds of requests. One request of each kind of Metadata is in flight, with its hedges."""

    FULL = "full"
    BROKERS = "brokers"
    NAMES = "names"
    NEW = "new"
    CALL = "call"


class OtherRequest(NamedTuple):
    """A request other than Metadata; `encode` returns its body in a version."""

    api_key: int
    lowest: int
    highest: int
    encode: Callable[[int], bytes]


class MetadataHead(NamedTuple):
    """What an answer to Metadata says before its topics; the driver reads it for the policy."""

    throttle_ms: int
    brokers: tuple[Broker, ...]
    cluster_id: str | None


class Connect(NamedTuple):
    """Open a connection: resolve the name, try its addresses within `timeout` s, shake hands.

    The driver reports on_connected() or on_disconnected().
    """

    link: int
    node: Node
    timeout: float


class Send(NamedTuple):
    """Send a request on a ready link.

    The driver reports on_response() or on_failure() with `number`. `hedge` says that another
    request with the same content is still unanswered.
    """

    link: int
    number: int
    request: Request | OtherRequest
    kind: RequestKind
    reason: str
    hedge: bool


class Close(NamedTuple):
    """Close a link; the driver reports nothing about it from now on."""

    link: int
    cause: str


class Finish(NamedTuple):
    """End an application's call: with an error, or with the cache's version or a call's answer.

    `value` is a pair (version, body) for another request, else None.
    """

    waiter: int
    error: Error | None
    version: int
    value: tuple[int, bytes] | None = None


Action: TypeAlias = Connect | Send | Close | Finish


class Poll(NamedTuple):
    """The actions to take now, in order, and the time of the next poll if nothing happens.

    `at` is in the clock of the caller's `now`. Without actions it is later than `now`. It is
    math.inf if only an input can change something.
    """

    actions: tuple[Action, ...]
    at: float


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

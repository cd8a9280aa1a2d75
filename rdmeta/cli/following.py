"""The clients of commands that keep running: how often they ask, and what they see.

A Feed is a cluster as `rdmeta watch` follows it: a client, and what happens as events in a queue.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from queue import SimpleQueue
from typing import Literal, NamedTuple, TypeAlias

from rdmeta.cli.messages import FINE
from rdmeta.cli.shared_options import Target
from rdmeta.cli.wake import Wake
from rdmeta.client.actions import Problem, Updated
from rdmeta.client.blocking import Client
from rdmeta.config import parse
from rdmeta.config.option_table import INTERVAL, MAX_AGE
from rdmeta.errors import Error, RequestTimedOutError
from rdmeta.model import ALL, Changes


def asking_every(conf: Mapping[str, str], every: float, max_age: float) -> dict[str, str]:
    """Returns a client's options with a refresh interval of `every` seconds.

    An answer counts as true for `max_age` seconds, unless `conf` has another limit.
    """
    return {MAX_AGE: _ms(max_age), **conf, INTERVAL: _ms(every)}


def _ms(seconds: float) -> str:
    return str(round(seconds * 1000))


def wait_for_first(client: Client, answered: Wake, timeout: float) -> None:
    """Returns once a listener has set `answered`; the client asks for its topics by itself.

    Raises what says why no server answers, as Client.refresh() does; RequestTimedOutError.
    """
    until = time.monotonic() + timeout
    client.refresh((), timeout=timeout)
    if not answered.wait(max(0.0, until - time.monotonic())):
        raise RequestTimedOutError(f"no answer about the topics within {timeout:g} s")


# Brokers do not say that an ISR has changed, so the client asks often. It asks at once, and again
# and again, for what lacks a leader or is not there.
_NAMED_S, _ALL_S = 1, 2
_MAX_AGE_S = 900


def following(target: Target, topics: Sequence[str], *, sticky: bool = False) -> Client:
    """Returns a client of those topics, or of all without any, that is not started yet.

    It asks every second for topics by name and every two seconds for all, unless the options have
    topic.metadata.refresh.interval.ms. Raises ConfigError.
    """
    return Client(_often(target, topics), topics=topics or ALL, sticky=sticky)


def interval_of(target: Target, topics: Sequence[str]) -> float:
    """Returns the seconds between two answers for such a client; raises ConfigError."""
    return parse(_often(target, topics)).refresh_interval or 0.0


def _often(target: Target, topics: Sequence[str]) -> dict[str, str]:
    if INTERVAL in target.conf:
        return target.conf
    return asking_every(target.conf, _NAMED_S if topics else _ALL_S, _MAX_AGE_S)


class FeedEvent(NamedTuple):
    """What happens to a cluster that is followed.

    began: the first answer has come. failed: it has not come in time, or a server refused, which
    `error` says; the client goes on trying. moved: the cache has changed, and Feed.take() has the
    changes. away: the last connection broke, or could not be made again, which `text` says.
    answered: an answer has come from the server that `text` names. trouble: `text` is about what
    no change tells, such as a missing listener.
    """

    feed: Feed
    kind: Literal["began", "failed", "moved", "away", "answered", "trouble"]
    text: str = ""
    error: Error | None = None


Events: TypeAlias = "SimpleQueue[FeedEvent]"


class Feed:
    """Follows one cluster; each event goes to `events`, where one thread reads them.

    That thread sets these: `has_begun`, whether the first answer has been shown; `away_since`, the
    time (time.monotonic()) since when no server is connected; `code`, the exit code while the
    cluster has failed.
    """

    def __init__(self, target: Target, topics: Sequence[str], events: Events) -> None:
        """Makes the client, which is not started yet; raises ConfigError."""
        self.name = target.name
        self.client = following(target, topics, sticky=True)
        self.has_begun = False
        self.away_since: float | None = None
        self.code = FINE
        self._events = events
        self._since = 0
        self.client.on_change(lambda changes: events.put(FeedEvent(self, "moved")))
        self.client.on_update(self._updated)
        self.client.on_error(self._failed)

    def start(self, timeout: float) -> None:
        """Starts the client; `began` or `failed` comes within `timeout` seconds."""
        threading.Thread(
            target=self._begin, args=(timeout,), name="rdmeta-cluster", daemon=True
        ).start()

    def _begin(self, timeout: float) -> None:
        try:
            self._since = self.client.refresh(timeout=timeout)
        except Error as error:
            self._events.put(FeedEvent(self, "failed", error=error))
        else:
            self._events.put(FeedEvent(self, "began"))

    def begin_late(self) -> None:
        """Takes the state now as the first one, after `failed`."""
        self._since = self.client.cache.version

    def take(self) -> Changes:
        """Returns the changes since the last call, or since the first answer."""
        changes = self.client.cache.changes(self._since)
        self._since = changes.until
        return changes

    def _updated(self, answers: tuple[Updated, ...]) -> None:
        node = answers[-1].node
        broker = f"broker {node.id}" if node.id >= 0 else f"{node.host}:{node.port}"
        self._events.put(FeedEvent(self, "answered", broker))

    def _failed(self, problems: tuple[Problem, ...]) -> None:
        """Tells of problems with connections if none is left, and of those that are no change."""
        broken = [each for each in problems if each.node is not None]
        if broken and not self._is_connected():
            last = broken[-1]
            assert last.node is not None
            where = f"{last.node.host}:{last.node.port}"
            self._events.put(FeedEvent(self, "away", f"{where}: {last.text}: {last.error}"))
        for each in problems:
            if each.partitions:
                text = f"{each.text}: {', '.join(each.partitions)}"
                self._events.put(FeedEvent(self, "trouble", text))

    def _is_connected(self) -> bool:
        try:
            nodes = self.client.stats()["nodes"]
        except Error:  # it is being closed
            return True
        return any(each["state"] == "ready" for each in nodes.values())

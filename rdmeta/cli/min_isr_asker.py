"""Topics' min.insync.replicas, as brokers tell it: once, or of a cluster that is recorded."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from rdmeta.cache import MetadataCache
from rdmeta.errors import (
    Error,
    TopicAuthorizationError,
    UnknownTopicError,
    UnsupportedVersionError,
    error_name,
)
from rdmeta.health import MIN_ISR

if TYPE_CHECKING:
    from rdmeta.client.blocking import Client
    from rdmeta.net.describe_configs import TopicConfig

_EVERY_S = 300.0
_AGAIN_S = 30.0
_SOON_S = 1.0
_TIMEOUT_S = 30.0
_DENIED = f"{error_name(29)}: it needs DESCRIBE_CONFIGS"
# The kinds of change after which a name stands for a topic that was not asked for.
_NEW = ("topic_added", "topic_recreated")


class KnownMinIsrs(NamedTuple):
    """The known min ISRs, and the topics whose min ISR is unknown by the cause, in words."""

    known: dict[str, int]
    unknown: dict[str, list[str]]

    @classmethod
    def of(cls, found: Mapping[str, TopicConfig]) -> KnownMinIsrs:
        """Returns what describe_configs() found out. A topic that does not exist is in neither."""
        answer = cls({}, {})
        for name, config in found.items():
            value = config.values.get(MIN_ISR)
            if config.error is None and value is not None and value.isdigit():
                answer.known[name] = int(value)
            elif not isinstance(config.error, UnknownTopicError):
                answer.unknown.setdefault(_cause(config.error), []).append(name)
        return answer

    @property
    def is_denied(self) -> bool:
        """Whether the user may not read the configuration of any of the topics."""
        return not self.known and _DENIED in self.unknown

    def lines(self) -> dict[str, str]:
        """Returns by the cause a line that names the first topics whose min ISR is unknown."""
        return {
            cause: f"{MIN_ISR} is unknown ({cause}): {_few(topics)}"
            for cause, topics in self.unknown.items()
        }


def _cause(error: Error | None) -> str:
    """Returns why a broker does not tell a topic's configuration."""
    if isinstance(error, TopicAuthorizationError):
        return _DENIED
    return "the broker hides it" if error is None else str(error)


def _few(names: Sequence[str]) -> str:
    """Returns the first names, and how many more there are."""
    more = f" and {len(names) - 5} more topics" if len(names) > 5 else ""
    return ", ".join(names[:5]) + more


class Asker:
    """A thread that asks a cluster for the min ISR of its topics, as long as it is recorded.

    It asks for all topics of `cache` at the first `wake()` and every 5 minutes, and for new topics
    after the `wake()` that saw them. A broker may not know a new topic yet: it is asked again a
    second later, as long as the cache has the topic. `tell` gets the values, None where a value is
    unknown, and how the brokers answered: known, denied or unsupported. `note` gets a line for each
    cause of an unknown value, once. The questions go over connections of their own, so that a slow
    answer delays no answer about metadata.
    """

    def __init__(
        self,
        conf: Mapping[str, str],
        cache: MetadataCache,
        tell: Callable[[Mapping[str, int | None], str], object],
        note: Callable[[str], object],
        every: float = _EVERY_S,
    ) -> None:
        self._conf = conf
        self._cache = cache
        self._tell = tell
        self._note = note
        self._every = every
        self._woken = threading.Event()
        self._is_closed = False
        self._seen = 0
        self._since = 0
        self._due_at = 0.0
        # Topics that the brokers did not know when they were asked.
        self._unknown: frozenset[str] = frozenset()
        self._said: set[str] = set()
        self._thread: threading.Thread | None = None
        # The client that asks now.
        self._client: Client | None = None

    def wake(self, version: int) -> None:
        """Says that the cache was observed at this version. The first call starts the thread."""
        if version == self._seen or self._is_closed:
            return
        self._seen = version
        self._woken.set()
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="rdmeta-min-isr", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Ends the thread, also while it waits for an answer."""
        self._is_closed = True
        self._woken.set()
        client = self._client
        if client is not None:
            client.close()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while not self._is_closed:
            self._woken.clear()
            names = self._names(self._seen)
            if names:
                self._ask(names)
            if not self._is_closed:
                left = max(0.0, self._due_at - time.monotonic())
                self._woken.wait(min(left, _SOON_S) if self._unknown else left)

    def _names(self, seen: int) -> list[str]:
        """Returns the topics to ask for: all, or those that are new up to a version or unknown."""
        changes, since = self._cache.changes(self._since), self._since
        self._since = seen
        now = time.monotonic()
        if since == 0 or changes.resync or now >= self._due_at:
            self._due_at = now + self._every
            return list(self._cache.names(allow_stale=True))
        new = (each.topic for each in changes if each.version <= seen and each.kind in _NEW)
        again = self._unknown.intersection(self._cache.names(allow_stale=True))
        self._unknown = frozenset()
        return list(dict.fromkeys([*(name for name in new if name is not None), *again]))

    def _ask(self, names: Sequence[str]) -> None:
        try:
            answer = self._answer(names)
        except UnsupportedVersionError as error:
            if not self._is_closed:
                self._say("unsupported", f"{MIN_ISR} is unknown: {error}")
                self._tell({}, "unsupported")
        except Error:
            # The known values stay, and soon all topics are asked for, also the new ones.
            self._due_at = min(self._due_at, time.monotonic() + min(_AGAIN_S, self._every))
        else:
            if self._is_closed:
                return
            for cause, line in answer.lines().items():
                self._say(cause, line)
            hidden = (name for names in answer.unknown.values() for name in names)
            values: dict[str, int | None] = {**answer.known, **dict.fromkeys(hidden)}
            self._unknown = frozenset(names) - values.keys()
            self._tell(values, "denied" if answer.is_denied else "known")

    def _answer(self, names: Iterable[str]) -> KnownMinIsrs:
        from rdmeta.client.blocking import Client

        with Client(self._conf) as self._client:
            if self._is_closed:
                return KnownMinIsrs({}, {})
            return KnownMinIsrs.of(
                self._client.describe_configs(names, [MIN_ISR], timeout=_TIMEOUT_S)
            )

    def _say(self, cause: str, line: str) -> None:
        if cause not in self._said:
            self._said.add(cause)
            self._note(line)

"""The topics that are needed: which of them, which new ones share a request, which are forgotten.

A topic is needed if it was subscribed by name, if a subscribed pattern matches it, or if everything
is subscribed (`ALL`). It is also needed if the application uses it: need(), a wait, a lookup. A
full refresh asks for all topics if there is a pattern or ALL, otherwise for the names.

A name that becomes needed is *new* until a request has it. Names that come within 10 ms share a
request.

A pattern begins with "^", as in librdkafka. Its literal prefix finds the candidates in the cache's
ordered index, so that a narrow pattern costs little.

With metadata.max.idle.ms, a topic that only the application needs is forgotten when nothing has
used it for so long. `_used` has the time of each topic's last use; the heap has the time at which
to look at a topic again. A use changes only the first, so it is cheap.

topic.blacklist names topics that are treated as if they did not exist.
"""

from __future__ import annotations

import heapq
import math
import re
from collections.abc import Callable, Collection, Iterable
from typing import TypeAlias

from rdmeta.errors import ArgumentError, InvalidTopicError
from rdmeta.model import ALL, All, topic_fault

TOGETHER = 0.01
AGAIN = 10.0
Subscription: TypeAlias = All | str | Collection[str] | None
Finder: TypeAlias = Callable[[str], Iterable[str]]

_SPECIAL = frozenset(".^$*+?{}[]\\|()")
_OPTIONAL = frozenset("*?{")


def literal_prefix(pattern: str) -> str:
    """Returns the letters with which every match of "^..." begins; "" if there are none."""
    body = pattern[1:]
    if "|" in body or pattern[:1] != "^":
        return ""
    size = next((i for i, letter in enumerate(body) if letter in _SPECIAL), len(body))
    if size < len(body) and body[size] in _OPTIONAL:
        size -= 1  # the last letter may be absent
    return body[: max(size, 0)]


class Subscriptions:
    """The needed topics."""

    def __init__(
        self, max_topics: int, max_idle: float, blacklist: Collection[re.Pattern[str]]
    ) -> None:
        self._max_topics, self._max_idle, self._blacklist = max_topics, max_idle, blacklist
        self.all = False
        self._subscribed: dict[str, None] = {}
        self._used: dict[str, float] = {}
        # Those that are needed only by waits, none of which has ended well.
        self._lent: set[str] = set()
        # When the needs of waits were taken back, the last ones last.
        self._taken_back: dict[str, float] = {}
        self._patterns: dict[str, re.Pattern[str]] = {}
        self._matched: set[str] = set()
        self._idle: list[tuple[float, str]] = []
        # Whether each new name was kept true before, by ALL or a pattern.
        self.new: dict[str, bool] = {}
        self.new_at = math.inf

    @property
    def wants_all(self) -> bool:
        """Whether a full refresh asks for all topics."""
        return self.all or bool(self._patterns)

    @property
    def has_patterns(self) -> bool:
        """Whether there are subscribed patterns."""
        return bool(self._patterns)

    @property
    def is_empty(self) -> bool:
        """Whether no topic is needed."""
        return not (self.wants_all or self._subscribed or self._used)

    @property
    def most_names(self) -> int:
        """How many topics are needed by name, at most: a name may count twice."""
        return len(self._subscribed) + len(self._used)

    def __contains__(self, name: str) -> bool:
        if self.all:
            return not self.is_excluded(name)
        return name in self._used or name in self._subscribed or name in self._matched

    def __len__(self) -> int:
        return len(self.names()) + len(self._matched - self._used.keys() - self._subscribed.keys())

    def names(self) -> list[str]:
        """Returns the topics that are needed by name, each once."""
        return list(self._subscribed | dict.fromkeys(self._used))

    def is_excluded(self, name: str) -> bool:
        """Returns whether topic.blacklist names the topic."""
        return any(pattern.search(name) for pattern in self._blacklist)

    @property
    def has_exclusions(self) -> bool:
        """Whether there is a topic.blacklist."""
        return bool(self._blacklist)

    def check(self, names: Iterable[str]) -> dict[str, None]:
        """Returns the names without those that are excluded.

        Raises InvalidTopicError for a name that Kafka refuses, TypeError for one that is no str.
        """
        kept: dict[str, None] = {}
        for name in names:
            if not isinstance(name, str):
                raise TypeError(f"a topic's name must be str, not {type(name).__name__}")
            if fault := topic_fault(name):
                raise InvalidTopicError(f"there can be no topic {name[:80]!r}: {fault}")
            if not self.is_excluded(name):
                kept[name] = None
        return kept

    def _check_size(self, subscribed: dict[str, None], more: int) -> None:
        """Raises ArgumentError if these and `more` were too many; looks at no name if it can."""
        if len(self._used) + len(subscribed) + more <= self._max_topics:
            return
        size = len(self._used.keys() | subscribed.keys()) + more
        if size > self._max_topics:
            raise ArgumentError(
                f"{size} topics would be needed: metadata.max.topics allows {self._max_topics}"
            )

    # ---- changes ----

    def subscribe(self, topics: Subscription) -> bool:
        """Replaces the subscribed topics; returns whether other topics may be needed now.

        Raises the errors of check(), ArgumentError for a wrong pattern or too many topics; then
        nothing has changed.
        """
        given = [] if topics is None or topics is ALL else topics
        parts = [given] if isinstance(given, str) else list(given)
        patterns = {part: _compiled(part) for part in parts if part[:1] == "^"}
        names = self.check(part for part in parts if part[:1] != "^")
        before = (self.all, self._subscribed.keys(), self._patterns.keys())
        self._check_size(names, 0)
        self._subscribed, self._patterns = names, patterns
        self.all = topics is ALL
        is_changed = before != (self.all, names.keys(), patterns.keys())
        if is_changed:
            self._matched.clear()
        return is_changed

    def need(self, names: Iterable[str], now: float, is_lent: bool = False) -> list[str]:
        """Makes topics needed, or lends the need to a wait; returns those that were not.

        A name whose need was taken back a moment ago is not new: waits in a loop cause no flood.
        Raises as subscribe() does.
        """
        wanted = self.check(names)
        fresh = {name: name in self for name in wanted if not self._is_named(name)}
        if fresh:
            self._check_size(self._subscribed, len(fresh))
        self._lent = self._lent.union(fresh) if is_lent else self._lent.difference(wanted)
        for name in wanted:
            self._use(name, now)
        if is_lent:
            again = [name for name in fresh if self._taken_back.get(name, -math.inf) + AGAIN > now]
            fresh = {name: kept for name, kept in fresh.items() if name not in again}
        self._share_request(fresh, now)
        return list(fresh)

    def _share_request(self, fresh: dict[str, bool], now: float) -> None:
        """Makes names new; those of the 10 ms after the first one share its request."""
        if fresh and not self.new:
            self.new_at = now + TOGETHER
        self.new.update(fresh)

    def keep(self, name: str) -> None:
        """Notes that a wait for a topic has ended well: the topic stays needed."""
        self._lent.discard(name)

    def take_back(self, name: str, now: float) -> bool:
        """Takes back the need that waits have had; returns whether the topic is not needed now."""
        if name not in self._lent:
            return False
        self._lent.discard(name)
        self._taken_back = {n: at for n, at in self._taken_back.items() if at + AGAIN > now}
        self._taken_back[name] = now
        self._used.pop(name, None)
        self.sent([name])
        return name not in self

    def unkept(self) -> list[str]:
        """Returns the new names that nothing has kept true: the cache may have them, but old."""
        return [name for name, is_kept in self.new.items() if not is_kept]

    def _is_named(self, name: str) -> bool:
        return name in self._used or name in self._subscribed

    def _use(self, name: str, now: float) -> None:
        if self._max_idle and name not in self._used:
            heapq.heappush(self._idle, (now + self._max_idle, name))
        self._used[name] = now

    def touch(self, name: str, now: float) -> None:
        """Notes that the application used a needed topic."""
        if name in self._used:
            self._used[name] = now

    def forget(self, names: Iterable[str]) -> list[str]:
        """Removes topics from those that are needed by name; returns the ones that were."""
        gone = [name for name in dict.fromkeys(names) if self._is_named(name)]
        for name in gone:
            self._used.pop(name, None)
            self._subscribed.pop(name, None)
            self._lent.discard(name)
            self.sent([name])
        return gone

    def sent(self, names: Iterable[str]) -> None:
        """Notes that a request has these names: they are no longer new."""
        if not self.new:
            return
        for name in names:
            self.new.pop(name, None)
        if not self.new:
            self.new_at = math.inf

    # ---- patterns ----

    def match_all(self, find: Finder) -> None:
        """Looks for the topics of every pattern; `find` returns the known names with a prefix."""
        self._matched = {
            name
            for text, pattern in self._patterns.items()
            for name in find(literal_prefix(text))
            if pattern.match(name) and not self.is_excluded(name)
        }

    def match(self, added: Iterable[str], removed: Iterable[str]) -> None:
        """Updates the topics of the patterns: only these names came and went."""
        self._matched.difference_update(removed)
        self._matched.update(name for name in added if self.has_pattern_for(name))

    def has_pattern_for(self, name: str) -> bool:
        """Returns whether a pattern is for a topic, which may not be there."""
        is_matched = any(pattern.match(name) for pattern in self._patterns.values())
        return is_matched and not self.is_excluded(name)

    # ---- idle topics ----

    @property
    def idle_at(self) -> float:
        """The time at which to call take_idle()."""
        return self._idle[0][0] if self._idle else math.inf

    def take_idle(self, now: float, is_held: Callable[[str], bool]) -> list[str]:
        """Forgets the topics that nothing has used for long, but those that are held."""
        idle: list[str] = []
        while self._idle and self._idle[0][0] <= now:
            _, name = heapq.heappop(self._idle)
            if name not in self._used:
                continue
            if self._used[name] + self._max_idle > now:
                heapq.heappush(self._idle, (self._used[name] + self._max_idle, name))
            elif is_held(name):
                heapq.heappush(self._idle, (now + self._max_idle, name))
            else:
                del self._used[name]
                self._lent.discard(name)
                self.sent([name])
                if name not in self:
                    idle.append(name)
        return idle


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise ArgumentError(
            f"the pattern {pattern!r} is not a regular expression: {error}"
        ) from None

"""The table of `rdmeta watch --live`: the state of each cluster, and the last changes below it."""

from __future__ import annotations

import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TypeVar

from rdmeta._escaping import escaped
from rdmeta.cli.change_rows import Pair, change_row
from rdmeta.cli.following import Feed
from rdmeta.cli.messages import Messages
from rdmeta.cli.output import rfc3339
from rdmeta.errors import MissingExtraError
from rdmeta.model import Change

try:
    from rich.console import Console, Group
    from rich.screen import Screen
    from rich.table import Table
    from rich.text import Text
except ImportError as error:  # click may come from another package
    raise MissingExtraError.of("--live", "cli") from error

_T = TypeVar("_T")

# The changes that are kept for a terminal that grows.
_MOST = 500
_FRAME_S = 0.25
_ENTER, _HOME, _LEAVE = "\x1b[?1049h\x1b[?25l", "\x1b[H", "\x1b[?25h\x1b[?1049l"
# The lines of the screen for the headers of both tables and what is between them.
_OTHERS = 4
_STATES = ("brokers", "topics", "partitions", "leaderless", "urp", "offline", "nonpreferred")
_CHANGES = ("time", "topic", "partition", "kind", "old", "new")
# The columns that a narrow terminal cuts off first; a figure that is cut would be another figure.
_TEXTS = frozenset(("", "topic", "old", "new"))


class Live:
    """Draws on the whole terminal while it is entered; a resized terminal is drawn anew.

    A line about a cluster, or its error, is in its row. It is on stderr as well: a terminal has it
    when the table is gone. A thread draws; a signal may come at any moment of the main thread.
    """

    def __init__(self, feeds: Sequence[Feed], messages: Messages, color: bool) -> None:
        self._feeds, self._messages = feeds, messages
        self._console = Console(no_color=not color, highlight=False)
        self._has_names = any(feed.name is not None for feed in feeds)
        self._changes: deque[list[str]] = deque(maxlen=_MOST)
        self._lines = dict.fromkeys(feeds, "")
        self._lock = threading.Lock()
        self._is_over = False
        self._thread = threading.Thread(target=self._draw, name="rdmeta-live", daemon=True)

    def __enter__(self) -> Live:
        _write(_ENTER)
        self._thread.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._is_over = True
        self._thread.join(1)
        _write(_LEAVE)

    def begin(self) -> None:
        """Does nothing: the table is there from the start."""

    def show(self, feed: Feed, change: Change, pair: Pair) -> None:
        """Adds a change on top of the others."""
        at, *cells = change_row(change, pair)
        label = [feed.name or ""] if self._has_names else []
        shown = ["-" if each is None else escaped(str(each)) for each in cells]
        self._changes.appendleft([*label, rfc3339(at), *shown])

    def note(self, text: str, feed: Feed) -> None:
        """Shows a line in the cluster's row, and on stderr."""
        self._lines[feed] = text
        self._aside(lambda: self._messages.note(text, feed.name))

    def failure(self, error: Exception, feed: Feed) -> int:
        """Shows an error in the cluster's row, and on stderr; returns its exit code."""
        self._lines[feed] = str(error)
        return self._aside(lambda: self._messages.failure(error, feed.name))

    def _aside(self, write: Callable[[], _T]) -> _T:
        """Calls a function while the terminal shows again what it did before."""
        with self._lock:
            _write(_LEAVE)
            try:
                return write()
            finally:
                _write(_ENTER)

    # ---- the screen -----------------------------------------------------------------------------

    def _draw(self) -> None:
        """Draws again and again until it is over, and once more then."""
        while True:
            is_over = self._is_over
            with self._console.capture() as drawn:
                self._console.print(Screen(self._rendered()), end="")
            with self._lock:
                _write(_HOME + drawn.get())
            if is_over:
                return
            time.sleep(_FRAME_S)

    def _rendered(self) -> Group:
        """Returns the screen as it is now."""
        left = self._console.height - len(self._feeds) - _OTHERS
        changes = self._table(_CHANGES)
        for row in list(self._changes)[: max(left, 0)]:
            changes.add_row(*map(_line, row))
        return Group(self._states(), Text(""), changes)

    def _states(self) -> Table:
        table = self._table((*_STATES, ""))
        for feed in self._feeds:
            cache = feed.client.cache
            found = cache.health(allow_stale=True)
            counts = [len(cache.brokers), found.topics, found.partitions, found.leaderless]
            counts += [found.under_replicated, found.offline, found.non_preferred]
            label = [feed.name or ""] if self._has_names else []
            status = "" if feed.has_begun else "waits for the first answer"
            line = self._lines[feed] or status
            table.add_row(*map(_line, (*label, *map(str, counts), line)))
        return table

    def _table(self, columns: Sequence[str]) -> Table:
        table = Table(box=None, pad_edge=False, header_style="bold", show_edge=False)
        for name in ["cluster"] * self._has_names + list(columns):
            table.add_column(_line(name), no_wrap=name not in _TEXTS)
        return table


def _line(text: str) -> Text:
    """Returns a cell of one line, whose end is cut off where it has no room."""
    return Text(escaped(text), no_wrap=True, overflow="ellipsis")


def _write(text: str) -> None:
    """Writes to the terminal, which may be gone."""
    with suppress(OSError, ValueError):
        sys.stdout.write(text)
        sys.stdout.flush()

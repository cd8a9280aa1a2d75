"""`rdmeta watch`: the changes of clusters as they come."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from rdmeta._core import DENIED
from rdmeta.cache import MetadataCache
from rdmeta.cli.change_rows import Pair, change_object, change_row, old_and_new, resync
from rdmeta.cli.messages import FINE, BadInputError, Messages
from rdmeta.cli.output import Output, Stream, columns, label
from rdmeta.cli.selection import named_topics
from rdmeta.cli.shared_options import (
    Listen,
    Where,
    connection_options,
    csv_options,
    for_option,
    made_of,
    metrics_option,
    plain_option,
    serving,
    topics_option,
)
from rdmeta.errors import RequestTimedOutError
from rdmeta.model import Change

if TYPE_CHECKING:
    from rdmeta.cli.following import Events, Feed, FeedEvent
    from rdmeta.cli.live import Live


@click.command(
    epilog="""\b
Examples:
  rdmeta watch -t orders -t /^clicks/ --for 2
  rdmeta watch --json --for 2
"""
)
@topics_option
@click.option("--live", is_flag=True, help="A table on the terminal that redraws itself.")
@click.option("--count", type=click.IntRange(min=1), metavar="N", help="End after N changes.")
@for_option
@click.option("--json", "json", is_flag=True, help="Print each change as a line of JSON.")
@csv_options
@plain_option
@metrics_option
@connection_options
def command(
    where: Where,
    topics: tuple[str, ...],
    metrics: Listen | None,
    live: bool,
    count: int | None,
    duration: float | None,
    json: bool,
    csv: bool,
    csv_raw: bool,
    plain: bool,
) -> int:
    """Print changes as they come: leaders, ISR, replicas, topics, brokers.

    The command asks every second with only -t NAME, and otherwise every two seconds: -X
    topic.metadata.refresh.interval.ms=N changes that. When a leader is lost it asks at once.
    --timeout is for the first answer; a cluster that answers later joins the others. A line on
    stderr says when the brokers of a cluster cannot be reached, and when they are back.
    """
    names, patterns = named_topics(topics)
    form = _form({"json": json, "csv": csv, "csv-raw": csv_raw, "live": live})
    output = Output(form, color=not plain)
    targets, messages = where.targets(), where.messages
    messages.log(quietly=True)
    events: Events = SimpleQueue()
    asked = () if patterns else names
    from rdmeta.cli.following import Feed

    with ExitStack() as stack:
        made, unmade = made_of(targets, lambda target: Feed(target, asked, events), messages)
        feeds = list(made.values())
        for feed in feeds:
            stack.callback(feed.client.close)
        stack.enter_context(serving(metrics))(*(feed.client for feed in feeds))
        view: Live | _Printed
        if live:
            from rdmeta.cli.live import Live

            view = stack.enter_context(Live(feeds, messages, output.is_colored))
        else:
            view = _Printed(output, where.clusters is not None, messages)
        for feed in feeds:
            feed.start(where.timeout)
        watch = _Watch(feeds, events, view, _Topics(names, patterns), count)
        return max(unmade, watch.run(duration))


def _form(given: dict[str, bool]) -> str:
    """Returns the form, text by default; raises BadInputError if they contradict each other."""
    forms = [form for form, is_given in given.items() if is_given]
    if len(forms) > 1:
        raise BadInputError(f"--{forms[0]} and --{forms[1]} exclude each other")
    if forms == ["live"]:
        if sys.stdout is None or not sys.stdout.isatty():
            raise BadInputError("--live needs a terminal, and stdout is none: leave it out")
        if os.environ.get("TERM") in (None, "dumb", "unknown"):
            raise BadInputError(
                "--live needs a terminal that can redraw: set TERM, or leave it out"
            )
    return forms[0] if forms else "text"


class _Topics(NamedTuple):
    """The topics that the user wants; without any, all of them, the brokers and the cluster."""

    names: Sequence[str]
    patterns: Sequence[re.Pattern[str]]

    def want(self, change: Change) -> bool:
        """Returns whether a change is wanted."""
        if not self.names and not self.patterns:
            return True
        topic = change.topic
        if topic is None:
            return False
        return topic in self.names or any(each.search(topic) for each in self.patterns)

    def missing(self, cache: MetadataCache) -> Iterator[str]:
        """Yields a line for each name or regular expression that finds no topic now."""
        for name in self.names:
            if cache.state(name) == DENIED:
                yield f"topic {name}: the user may not describe it: grant DESCRIBE on it"
            elif cache.topic(name, None, allow_stale=True) is None:
                yield f"topic {name} does not exist yet"
        for pattern in self.patterns:
            if not any(map(pattern.search, cache.names(allow_stale=True))):
                yield f"no topic matches /{pattern.pattern}/ yet"


class _Printed:
    """Prints each change as a line, and other lines to stderr.

    A view has these methods. begin() is called once, when the first cluster has answered; show()
    gets a change with its old and new value, note() a line about a cluster, and failure() an error
    of it, whose exit code it returns.
    """

    def __init__(self, output: Output, has_names: bool, messages: Messages) -> None:
        self._form, self._has_names, self._messages = output.form, has_names, messages
        cluster = "cluster " if has_names else ""
        values = "old new" if self._form == "csv" else "change"
        shown = columns(f"time:time {cluster}topic partition:integer kind {values}")
        self._stream = Stream(output, shown)

    def begin(self) -> None:
        self._stream.header()

    def show(self, feed: Feed, change: Change, pair: Pair) -> None:
        if self._form == "json":
            head = {"version": 1, "command": "watch", **label(feed.name)}
            self._stream.write_json({**head, **change_object(change, pair)})
            return
        cells: list[Any] = change_row(change, pair)
        if self._form == "text":
            cells[-2:] = [f"{cells[-2] or '-'} -> {cells[-1] or '-'}"]
        if self._has_names:
            cells.insert(1, feed.name)
        self._stream.write(cells)

    def note(self, text: str, feed: Feed) -> None:
        self._messages.note(text, feed.name)

    def failure(self, error: Exception, feed: Feed) -> int:
        return self._messages.failure(error, feed.name)


class _Watch:
    """Reads the events of all clusters and shows what they mean."""

    def __init__(
        self,
        feeds: Sequence[Feed],
        events: Events,
        view: Live | _Printed,
        topics: _Topics,
        count: int | None,
    ) -> None:
        self._feeds, self._events, self._view = feeds, events, view
        self._topics, self._left = topics, count
        self._has_begun = False

    def run(self, duration: float | None) -> int:
        """Returns the highest exit code of a cluster, at the end or when every cluster failed."""
        until = None if duration is None else time.monotonic() + duration
        while self._left != 0 and not all(feed.code for feed in self._feeds):
            left = None if until is None else max(0.0, until - time.monotonic())
            try:
                self._take(self._events.get(timeout=left))
            except Empty:
                self._fail_late(duration)
                break
        return max((feed.code for feed in self._feeds), default=FINE)

    def _fail_late(self, duration: float | None) -> None:
        """Says which clusters have not answered by the end."""
        for feed in self._feeds:
            if not feed.has_begun and feed.code == FINE:
                error = RequestTimedOutError(f"there was no answer in {duration:g} s")
                feed.code = self._view.failure(error, feed)

    def _take(self, event: FeedEvent) -> None:
        feed, note = event.feed, self._view.note
        if event.error is not None:
            feed.code = self._view.failure(event.error, feed)
        elif event.kind == "began":
            self._begin(feed)
        elif event.kind == "answered" and feed.code != FINE:
            note(f"{event.text} answers now", feed)
            feed.begin_late()
            self._begin(feed)
        elif not feed.has_begun:
            return
        elif event.kind == "away":
            if feed.away_since is None:
                feed.away_since = time.monotonic()
                note(f"no broker answers: {event.text}", feed)
        elif event.kind == "answered":
            if feed.away_since is not None:
                away = time.monotonic() - feed.away_since
                feed.away_since = None
                note(f"{event.text} answers again, after {away:.1f} s", feed)
        elif event.kind == "trouble":
            note(event.text, feed)
        else:
            self._show(feed)

    def _begin(self, feed: Feed) -> None:
        """Begins to show a cluster's changes."""
        if not self._has_begun:
            self._has_begun = True
            self._view.begin()
        feed.has_begun, feed.code = True, FINE
        for line in self._topics.missing(feed.client.cache):
            self._view.note(line, feed)
        self._show(feed)

    def _show(self, feed: Feed) -> None:
        """Shows the changes of a cluster since the last ones."""
        changes, cache = feed.take(), feed.client.cache
        if changes.resync:
            self._view.note("more changes came than the client keeps: some are not shown", feed)
            lost = resync(cache)
            self._view.show(feed, lost, old_and_new(lost))
            self._count()
        for change in changes:
            if self._left == 0:
                break
            if self._topics.want(change):
                self._view.show(feed, change, old_and_new(change))
                self._count()

    def _count(self) -> None:
        if self._left is not None:
            self._left -= 1

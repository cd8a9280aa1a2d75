"""The clients of commands that keep running: how often they ask, and what of their log is shown."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rdmeta.cli.answers import INTERVAL, asking_every
from rdmeta.cli.clusters import Target
from rdmeta.cli.messages import Messages
from rdmeta.client.blocking import Client
from rdmeta.config import parse
from rdmeta.model import ALL

__all__ = ["following", "interval_of", "show_log"]

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


def show_log(messages: Messages, write: Callable[[str], None] | None = None) -> None:
    """Shows the client's log quietly, as Messages.log() does.

    The commands tell the same themselves, once. `write` takes the lines, by default
    messages.fault(). Call it once, before the client is made.
    """
    from rdmeta.cli import logs

    logs.show(write or messages.fault, messages.level, quietly=True)

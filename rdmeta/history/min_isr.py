"""The known min.insync.replicas of topics, and those that no row tells yet."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from typing import Any, Protocol

import pyarrow as pa

from rdmeta.errors import Error
from rdmeta.history.columns import config, single
from rdmeta.history.schema import microseconds
from rdmeta.model import Topic

__all__ = ["MinIsrs", "Topics"]


class Topics(Protocol):
    """A state whose topics can be looked up."""

    def topic(self, name: str, /) -> Topic: ...


class MinIsrs:
    """The min ISR of topics, as the brokers told them. `known` is what rows tell already."""

    def __init__(self) -> None:
        self.known: dict[str, int] = {}
        self._new: dict[str, int | None] = {}
        self._asked: dict[str, datetime] = {}
        # For each topic in _new: when it was asked for before, so that no row told the new value.
        self._before: dict[str, datetime | None] = {}

    def tell(self, values: Mapping[str, int | None], now: datetime) -> None:
        """Takes values that the brokers just told; None: a value is not known any more."""
        for topic, value in values.items():
            if value == self.known.get(topic):
                self._new.pop(topic, None)
            else:
                if topic not in self._new:
                    self._before[topic] = self._asked.get(topic)
                self._new[topic] = value
            self._asked[topic] = now

    def forget(self, topics: Iterable[str]) -> None:
        """Drops what rows told of topics that ended; a later topic of that name is another one."""
        for topic in topics:
            for each in (self.known, self._new, self._asked, self._before):
                each.pop(topic, None)

    def settle(self, topics: Collection[str]) -> None:
        """Takes the values of these topics as told, and drops what rows told of other ones.

        A baseline of these topics is about to be written.
        """
        for topic in [each for each in self._new if each in topics]:
            self._keep(topic, self._new.pop(topic))
            del self._before[topic]
        self.known = {topic: value for topic, value in self.known.items() if topic in topics}

    def rows(self, state: Topics, version: int, now: datetime) -> pa.Table:
        """Returns the rows of new values, and takes these as told.

        The value of a topic that `state` does not have yet waits for the topic.
        """
        rows = []
        for topic, value in list(self._new.items()):
            try:
                topic_id = state.topic(topic).topic_id
            except Error:
                continue
            before = self._before.pop(topic)
            del self._new[topic]
            self._keep(topic, value)
            rows.append(
                config(topic, topic_id, version, value)
                | {"observed_at": now, "unseen_us": _us_between(before, now)}
            )
        return single(rows)

    def _keep(self, topic: str, value: int | None) -> None:
        if value is None:
            self.known.pop(topic, None)
        else:
            self.known[topic] = value


def _us_between(before: datetime | None, now: datetime) -> Any:
    return None if before is None else max(0, microseconds(now) - microseconds(before))

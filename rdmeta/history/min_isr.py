"""The known min.insync.replicas of topics, and those that no row tells yet."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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
        # The ids of the topics in `known`.
        self._ids: dict[str, str | None] = {}
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
            for each in (self.known, self._ids, self._new, self._asked, self._before):
                each.pop(topic, None)

    def settle(self, topics: Mapping[str, str | None]) -> None:
        """Takes the values of these topics as told, and drops what rows told of other ones.

        A baseline of these topics, names with ids, is about to be written. Before it nothing was
        observed for a while, so that only an equal id says that a name is still the same topic.
        """
        told = {topic: self._new[topic] for topic in self._new if topic in topics}
        same = {topic for topic, id in self._ids.items() & topics.items() if id is not None}
        self.forget(self._ids.keys() - same - told.keys())
        for topic, value in told.items():
            del self._new[topic], self._before[topic]
            self._keep(topic, topics[topic], value)

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
            self._keep(topic, topic_id, value)
            rows.append(
                config(topic, topic_id, version, value)
                | {"observed_at": now, "unseen_us": _us_between(before, now)}
            )
        return single(rows)

    def _keep(self, topic: str, topic_id: str | None, value: int | None) -> None:
        if value is None:
            self.known.pop(topic, None)
            self._ids.pop(topic, None)
        else:
            self.known[topic], self._ids[topic] = value, topic_id


def _us_between(before: datetime | None, now: datetime) -> Any:
    return None if before is None else max(0, microseconds(now) - microseconds(before))

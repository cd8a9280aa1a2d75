"""The partition of each row, and the task that writes to it: what workers do for routing.

Tasks are dealt out to the brokers in turn: with 12 brokers and 48 tasks, the first broker has the
tasks 0, 12, 24 and 36. The partitions that a broker leads in a topic go to its tasks in turn. With
fewer tasks than brokers, a task has every n-th broker.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from rdmeta._core import partitions_for
from rdmeta.cache import Attached
from rdmeta.spark.functions.row_lookups import counted, typed, without_codes
from rdmeta.spark.functions.worker_state import image_at, image_of_number


class _Route(NamedTuple):
    """Of one topic: the task of each partition by its id, and the partitions with a leader."""

    tasks: list[int | None]
    led: list[int]


def routes(
    topic: pa.Array,
    key: pa.Array,
    given: pa.Array,
    hashed: pa.Array,
    *more: Any,
) -> pa.Array:
    """Returns structs of the partition of each row and its task, by one image for all tasks.

    `more` is the name and the number of the image, the partitioner and the number of tasks. A
    stream has a column before these: the begin of the batch, in nanoseconds, counts instead.
    """
    *moments, name, number, partitioner, tasks = more
    topic = typed(topic, pa.string())
    if moments and len(topic):
        state = image_at(name, moments[0][0].as_py())
    else:
        state = image_of_number(name, number)
    found = partitions_for(key, counted(state, topic), partitioner)
    is_null = pc.or_(topic.is_null(), key.is_null())
    by_key = without_codes(found, is_null, "null", topic)
    coded = topic.dictionary_encode()
    table = [_route(state, each, tasks) for each in coded.dictionary.to_pylist()]
    without_key = _partition_without_key(coded.indices, table, hashed)
    chosen = pc.coalesce(given, by_key, without_key)
    task = _at(coded.indices, [r.tasks for r in table], chosen, False)
    # A row of an unknown topic or partition goes anywhere.
    task = pc.coalesce(task, _remainder(hashed, pa.scalar(tasks, pa.int32())))
    return pa.StructArray.from_arrays([chosen, task], ["partition", "task"])


def _partition_without_key(
    indices: pa.Array, table: Sequence[_Route], hashed: pa.Array
) -> pa.Array:
    """Returns for each row a partition that has a leader, by the hash of its values."""
    return _at(indices, [route.led for route in table], hashed, True)


def tasks_of(
    leaders: Sequence[int | None], brokers: Sequence[int], tasks: int, first: int
) -> list[int | None]:
    """Returns the task of each partition, None for one without a leader among the brokers.

    `leaders` has the leader of each partition. `first` is where the turns of a topic begin.
    """
    place = {broker: number for number, broker in enumerate(sorted(brokers))}
    turns: Counter[int] = Counter()
    found: list[int | None] = []
    for leader in leaders:
        number = place.get(leader) if leader is not None else None
        if number is None:
            found.append(None)
        elif tasks <= len(place):
            found.append(number % tasks)
        else:
            own = range(number, tasks, len(place))
            found.append(own[(first + turns[number]) % len(own)])
            turns[number] += 1
    return found


def _route(state: Attached, topic: str, tasks: int) -> _Route:
    """Returns the route of a topic, which is made once for an image: it does not change."""
    routes = _routes_of(state, tasks)
    if topic not in routes:
        made = _new_route(state, topic, tasks)
        if not made.tasks:  # rows may name any number of unknown topics
            return made
        routes[topic] = made
    return routes[topic]


# As few images as worker_state.py keeps open: a state that is known here stays mapped.
@lru_cache(4)
def _routes_of(state: Attached, tasks: int) -> dict[str, _Route]:
    return {}


def _new_route(state: Attached, topic: str, tasks: int) -> _Route:
    found = state.topic(topic, None, allow_stale=True)
    if found is None or not found.partitions:
        return _Route([], [])
    ids = [each.partition for each in found.partitions]
    by_id = dict(zip(ids, found.partitions, strict=True))
    rows = [by_id.get(number) for number in range(max(ids) + 1)]
    # The last leader is the likeliest next one, so a partition without one has a task, too.
    leaders = [None if row is None else row.leader for row in rows]
    brokers = [broker.id for broker in state.brokers]
    led = [row.partition for row in found.partitions if not row.leaderless]
    return _Route(tasks_of(leaders, brokers, tasks, zlib.crc32(topic.encode())), led or ids)


def _at(
    indices: pa.Array, lists: list[list[int | None]] | list[list[int]], at: pa.Array, wraps: bool
) -> pa.Array:
    """Returns from the list of each row's topic the number at `at`; null beyond its end.

    With `wraps` it counts from the begin again at the end.
    """
    sizes = [len(each) for each in lists]
    begins = [sum(sizes[:i]) for i in range(len(sizes))]
    flat = pa.array([number for each in lists for number in each], pa.int32())
    size = pa.array(sizes, pa.int32()).take(indices)
    if wraps:
        at = _remainder(at, pc.if_else(pc.equal(size, 0), None, size))
    within = pc.and_kleene(pc.greater_equal(at, 0), pc.less(at, size))
    place = pc.add(pa.array(begins, pa.int32()).take(indices), at)
    return flat.take(pc.if_else(within, place, pa.scalar(None, pa.int32())))


def _remainder(number: pa.Array, by: pa.Array | pa.Scalar) -> pa.Array:
    """Returns the remainder of a division of numbers >= 0."""
    return pc.subtract(number, pc.multiply(pc.divide(number, by), by))

"""Columns of rows in, columns of facts out: what Python workers do for the functions.

Each takes Arrow arrays of one length, and returns one of that length.
"""

from __future__ import annotations

from array import array

import pyarrow as pa
import pyarrow.compute as pc

from rdmeta._core import code_name, partitions_for
from rdmeta.cache import NO_LEADER, STALE, Attached
from rdmeta.errors import Error
from rdmeta.spark.functions.worker_state import state_of

# No topic can have this name.
_NO_NAME = "?"


def leaders(
    topic: pa.Array, partition: pa.Array, name: str, published: str | None, unknown: str
) -> pa.Array:
    """Returns the broker that leads each partition: null without one."""
    state = state_of(name, published)
    topic, numbers = typed(topic, pa.string()), _numbers(partition)
    found = state.leaders(named(topic), numbers)
    if STALE in found:  # a publisher that has died, or a topic that was stale already
        last = state.leaders(named(topic), numbers, allow_stale=True)
        found = array("i", (b if a == STALE else a for a, b in zip(found, last, strict=True)))
    is_null = pc.or_(topic.is_null(), partition.is_null())
    return without_codes(found, is_null, unknown, topic)


def racks(broker: pa.Array, name: str, published: str | None, unknown: str) -> pa.Array:
    """Returns the rack of each broker: null without one."""
    brokers = state_of(name, published).brokers
    ids = pa.array([each.id for each in brokers], pa.int64())
    at = pc.index_in(broker.cast(pa.int64()), ids)
    if unknown == "error":
        lost = pc.filter(broker, pc.and_(at.is_null(), broker.is_valid()))
        if len(lost):
            raise Error(f"broker {lost[0]} is not in the state that this executor has")
    return pa.array([each.rack for each in brokers], pa.string()).take(at)


def partitions(
    key: pa.Array,
    topic: pa.Array,
    name: str,
    published: str | None,
    unknown: str,
    partitioner: str,
) -> pa.Array:
    """Returns the partition that a producer puts each key into: null without a key."""
    key, topic = typed(key, pa.string()), typed(topic, pa.string())
    counts = counted(state_of(name, published), topic)
    found = partitions_for(key, counts, partitioner)
    is_null = pc.or_(topic.is_null(), key.is_null())
    return without_codes(found, is_null, unknown, topic)


def counted(state: Attached, topic: pa.Array) -> array[int]:
    """Returns each topic's number of partitions, or a code."""
    return state.partition_counts(named(topic), allow_stale=True)


def typed(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """Returns a column of nulls alone, such as lit(None), as one of a type; any other as it is."""
    return column.cast(kind) if pa.types.is_null(column.type) else column


def _numbers(partition: pa.Array) -> pa.Array:
    """Returns the partitions without nulls, and -1 for a number that no partition can have."""
    numbers = typed(partition, pa.int64()).fill_null(0)
    if pa.types.is_int64(numbers.type):
        numbers = pc.if_else(pc.less(numbers, 1 << 31), numbers, -1)
        numbers = pc.max_element_wise(numbers, -1)
    return numbers


def named(topic: pa.Array) -> pa.Array:
    """Returns the topics without nulls, which the lookups refuse."""
    return topic.fill_null(_NO_NAME) if topic.null_count else topic


def without_codes(found: array[int], is_null: pa.Array, unknown: str, topic: pa.Array) -> pa.Array:
    """Returns the numbers with null for codes. Raises Error for a code if `unknown` is "error".

    Rows of `is_null` are null in any case, and having no leader or no key is no error.
    """
    numbers = pa.Array.from_buffers(pa.int32(), len(found), [None, pa.py_buffer(found)])
    if unknown == "error":
        lost = pc.and_(pc.less(numbers, NO_LEADER), pc.invert(is_null))
        at = pc.index(lost, True).as_py()
        if at >= 0:
            why = code_name(found[at]).removeprefix("RDMETA_")
            raise Error(f"topic {topic[at].as_py()!r} is not in the state of this executor: {why}")
    is_code = pc.or_(pc.less(numbers, 0), is_null)
    return pc.if_else(is_code, pa.scalar(None, pa.int32()), numbers)

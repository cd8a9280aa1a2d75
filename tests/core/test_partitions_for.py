"""Partitions of many keys: beside one key at a time, zlib, and librdkafka's own producer."""

from __future__ import annotations

import ctypes
import random
import zlib
from array import array
from collections.abc import Callable
from typing import Any

import frames
import numpy as np
import pyarrow as pa
import pytest
from confluent_kafka import Producer
from frames import P, T

import rdmeta
from rdmeta import ffi
from rdmeta.embedded import EmbeddedCluster

SEED = random.randrange(2**32)
TYPES = (pa.binary(), pa.large_binary(), pa.binary_view())
STRINGS = (pa.string(), pa.large_string(), pa.string_view())


def some_keys(n: int) -> list[bytes | None]:
    print(f"seed {SEED}")
    random_ = random.Random(SEED)
    return [random_.choice([None, b"", random_.randbytes(random_.randrange(40))]) for _ in range(n)]


def one_by_one(keys: list[bytes | None], partitions: int, partitioner: str) -> list[int]:
    """Returns the partitions by zlib's CRC-32, or by a cache's partition_for()."""
    if partitioner == "crc32":
        return [zlib.crc32(key) % partitions if key else -1 for key in keys]
    cache = rdmeta.MetadataCache()
    topic = T("orders", [P(i) for i in range(partitions)])
    cache.apply(frames.response(12, [topic]), 12, rdmeta.ALL)
    return [-1 if key is None else cache.partition_for("orders", key) for key in keys]


@pytest.mark.parametrize("partitioner", ["murmur2", "crc32"])
def test_a_list_of_keys_has_the_partitions_of_its_keys(partitioner: str) -> None:
    keys = some_keys(300)
    found = rdmeta.partitions_for(keys, 12, partitioner)
    assert found == array("i", one_by_one(keys, 12, partitioner))


@pytest.mark.parametrize("partitioner", ["murmur2", "crc32"])
@pytest.mark.parametrize("kind", TYPES, ids=str)
def test_a_column_of_any_layout_has_the_partitions_of_its_keys(
    kind: pa.DataType, partitioner: str
) -> None:
    keys = some_keys(300)
    column = pa.array(keys, kind)
    wanted = one_by_one(keys, 12, partitioner)
    assert list(rdmeta.partitions_for(column, 12, partitioner)) == wanted
    assert list(rdmeta.partitions_for(column[7:250], 12, partitioner)) == wanted[7:250]
    chunked = pa.chunked_array([column[:3], column[3:3], column[3:]])
    assert list(rdmeta.partitions_for(chunked, 12, partitioner)) == wanted


@pytest.mark.parametrize("kind", STRINGS, ids=str)
def test_a_string_is_the_key_of_its_utf8(kind: pa.DataType) -> None:
    import polars as pl

    texts = ["21", "", None, "größe", "a-little-bit-longer-string"]
    wanted = one_by_one([text if text is None else text.encode() for text in texts], 7, "murmur2")
    assert list(rdmeta.partitions_for(pa.array(texts, kind), 7)) == wanted
    assert list(rdmeta.partitions_for(pl.Series(texts), 7)) == wanted


@pytest.mark.parametrize("numbers", [list, np.array, pa.array, lambda given: array("q", given)])
def test_each_key_may_have_its_own_number_of_partitions(numbers: Any) -> None:
    keys = [b"abc", b"abc", None, b"abc", b"abc"]
    counts = numbers([3, 5, 3, rdmeta.UNKNOWN_TOPIC, 0])
    wanted = [479470107 % 3, 479470107 % 5, -1, rdmeta.UNKNOWN_TOPIC, rdmeta.NO_PARTITION]
    chunks = pa.chunked_array([pa.array(keys[:2]), pa.array(keys[2:])])
    assert list(rdmeta.partitions_for(keys, counts)) == wanted
    assert list(rdmeta.partitions_for(pa.array(keys), counts)) == wanted
    assert list(rdmeta.partitions_for(chunks, counts)) == wanted
    views = chunks.cast(pa.binary_view())
    assert list(rdmeta.partitions_for(views, counts)) == wanted


def test_the_result_may_be_an_array_of_numpy() -> None:
    out = np.zeros(2, np.int32)
    assert rdmeta.partitions_for([b"21", b"abc"], 12, out=out) is out
    assert out.tolist() == [(-973932308 & 0x7FFFFFFF) % 12, 479470107 % 12]
    assert rdmeta.partitions_for([], np.int64(12)) == array("i")
    assert rdmeta.partitions_for(pa.array([], pa.binary()), 12) == array("i")


@pytest.mark.parametrize(
    ("keys", "partitions", "partitioner", "error", "text"),
    [
        (b"abc", 3, "murmur2", TypeError, "an Arrow column or an iterable"),
        ([b"a", "b"], 3, "murmur2", TypeError, "key must be bytes"),
        (pa.array([1, 2]), 3, "murmur2", TypeError, "binary or strings, not Arrow's format 'l'"),
        (pa.array(["a"]).dictionary_encode(), 3, "murmur2", TypeError, "dictionary-encoded"),
        ([b"a"], 3, "random", ValueError, "'murmur2' or 'crc32', not 'random'"),
        ([b"a"], 3, 0, TypeError, "partitioner must be a str"),
        ([b"a"], [1, 2], "crc32", ValueError, "there are 1 keys, but 2 partitions"),
        ([b"a"], 2**31, "crc32", ValueError, "partitions"),
        ([b"a"], "3", "crc32", TypeError, "partitions"),
    ],
)
def test_a_wrong_argument_is_refused(
    keys: Any, partitions: Any, partitioner: Any, error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        rdmeta.partitions_for(keys, partitions, partitioner)


@pytest.mark.parametrize("option", ["murmur2_random", "consistent_random"])
def test_librdkafkas_producer_puts_the_keys_there(option: str) -> None:
    keys = [key for key in some_keys(400) if key]
    landed: dict[bytes, int] = {}

    def delivered(error: object, message: Any) -> None:
        assert error is None
        landed[message.key()] = message.partition()

    with EmbeddedCluster(brokers=1) as cluster:
        cluster.create_topic("orders", partitions=12)
        producer = Producer({"bootstrap.servers": cluster.bootstrap, "partitioner": option})
        for key in keys:
            producer.produce("orders", b"", key, on_delivery=delivered)
        assert producer.flush(30) == 0
    partitioner = "crc32" if option == "consistent_random" else "murmur2"
    found = rdmeta.partitions_for(pa.array(keys), 12, partitioner)
    assert [landed[key] for key in keys] == list(found)


class Given:
    """Gives the same capsules each time."""

    def __init__(self, column: Any) -> None:
        self.capsules = column.__arrow_c_array__()

    def __arrow_c_array__(self, requested_schema: object = None) -> Any:
        return self.capsules


def beyond(kind: pa.DataType, *offsets: int) -> pa.Array:
    """Returns a column whose offsets become wrong after pyarrow has checked them."""
    raw = np.zeros(len(offsets), np.int64 if kind == pa.large_string() else np.int32)
    buffers = [None, pa.py_buffer(raw), pa.py_buffer(b"abc")]
    made = pa.Array.from_buffers(kind, len(offsets) - 1, buffers)
    raw[:] = offsets
    return made


def view_beyond(size: int, buffer: int, offset: int) -> pa.Array:
    view = size.to_bytes(4, "little") + b"abcd"
    view += buffer.to_bytes(4, "little") + offset.to_bytes(4, "little")
    data = [None, pa.py_buffer(view), pa.py_buffer(20 * b"a")]
    return pa.Array.from_buffers(pa.string_view(), 1, data)


DAMAGED = [
    beyond(pa.string(), 0, 1, 1 << 30),
    beyond(pa.large_string(), 0, 1, 1 << 40),
    beyond(pa.string(), 2, 1, 3),
    beyond(pa.string(), -5, 1, 3),
    view_beyond(20, 7, 0),
    view_beyond(20, 0, 10),
    pa.DictionaryArray.from_arrays(pa.array([0, 7], pa.int32()), ["a"], safe=False),
]


@pytest.mark.parametrize("number", range(len(DAMAGED)))
def test_a_damaged_column_is_refused_wherever_one_is_taken(number: int) -> None:
    cache, column = rdmeta.MetadataCache(), DAMAGED[number]
    n = len(column)
    if not pa.types.is_dictionary(column.type):
        with pytest.raises(rdmeta.ArgumentError, match="damaged"):
            rdmeta.partitions_for(column, 12)
    with pytest.raises(rdmeta.ArgumentError, match="damaged"):
        cache.leaders(column, [0] * n)
    with pytest.raises(rdmeta.ArgumentError, match="damaged"):
        ffi.prepare(column)


def test_a_column_without_its_parts_is_refused() -> None:
    """An exporter with a mistake may leave NULL in its structs, or give too few of them."""

    def calls(given: Any) -> None:
        ways: tuple[tuple[Callable[[], object], Any], ...] = (
            (lambda: rdmeta.partitions_for(given, 12), (rdmeta.ArgumentError, TypeError)),
            (lambda: rdmeta.MetadataCache().leaders(given, [0]), (rdmeta.ArgumentError, TypeError)),
            (lambda: rdmeta.MetadataCache().leaders(["a"], given), rdmeta.ArgumentError),
        )
        for call, kinds in ways:
            with pytest.raises(kinds):
                call()

    for column in (pa.array(["a"]), pa.array(["a"]).dictionary_encode(), pa.array([1], pa.int32())):
        for capsule, word in ((0, 0), (1, 5)):  # the schema's format, the array's buffers
            given = Given(column)
            words = words_of(given.capsules[capsule])
            kept, words[word] = words[word], 0
            calls(given)
            words[word] = kept
    given = Given(pa.array(["a"]).dictionary_encode())
    words = words_of(given.capsules[0])
    kept, words[0] = words[0], ctypes.addressof(ctypes.c_char.from_buffer(NO_INTEGER))
    calls(given)
    words[0] = kept
    for wrong in (given.capsules[:1], (), None, 5):
        given.capsules = wrong
        for call in (
            lambda: rdmeta.partitions_for(given, 12),
            lambda: rdmeta.MetadataCache().leaders(given, [0]),
            lambda: rdmeta.Fold("cluster", "session").add(given),
        ):
            with pytest.raises(TypeError, match="two capsules"):
                call()


NO_INTEGER = bytearray(b"f\0")


def words_of(capsule: object) -> Any:
    """Returns the words of the struct of a schema or an array."""
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    name = b"arrow_schema" if "arrow_schema" in repr(capsule) else b"arrow_array"
    return (ctypes.c_int64 * 9).from_address(pointer(capsule, name))


def test_a_column_that_was_read_before_is_refused() -> None:
    keys, numbers = Given(pa.array(["a"])), Given(pa.array([0], pa.int32()))
    pa.array(keys)
    pa.array(numbers)
    for call in (
        lambda: rdmeta.partitions_for(keys, 12),
        lambda: rdmeta.partitions_for([b"a"], numbers),
        lambda: rdmeta.MetadataCache().leaders(keys, [0]),
        lambda: rdmeta.MetadataCache().leaders(["a"], numbers),
        lambda: ffi.prepare(keys),
    ):
        with pytest.raises(rdmeta.ArgumentError, match="read before"):
            call()

"""`rdmeta.ffi`: the C API through cffi, for the live caches of this process."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import random
import re
import subprocess
import sys
import threading
import time
from array import array
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from declarations import declared
from frames import P, T, response

import rdmeta
from rdmeta import _core
from rdmeta import ffi as door
from rdmeta.ffi import ffi, lib

MADE = T("orders", [P(0, leader=1), P(1, leader=2), P(2, leader=3)])
MOVED = T("orders", [P(0, leader=3, epoch=1), P(1, leader=2), P(2, leader=-1, epoch=1)])
TOPICS = [T(f"topic-{i:03}", [P(p, leader=(i + p) % 3 + 1) for p in range(4)]) for i in range(200)]


@pytest.fixture
def cache() -> rdmeta.MetadataCache:
    made = rdmeta.MetadataCache()
    made.apply(response(12, [MADE, *TOPICS]), 12, rdmeta.ALL)
    return made


def apply(cache: Any, body: bytes, version: int = 12) -> Any:
    """Applies an all-topics answer through the table of functions."""
    asked = ffi.new("rdmeta_request_t *", {"asked": lib.RDMETA_ASKED_ALL, "broker": -1})
    out = ffi.new("rdmeta_applied_t *")
    assert lib.rdmeta_cache_apply(cache, body, len(body), version, asked, door.now(), out) == 0
    return out


def test_lib_has_every_public_function_and_constant() -> None:
    assert declared() <= set(vars(lib))
    text = (Path(rdmeta.get_include()) / "rdmeta.h").read_text(encoding="utf-8")
    constants = set(re.findall(r"\b(RDMETA_\w+)\s*=", text)) | {"RDMETA_NONE", "RDMETA_ABI_VERSION"}
    assert len(constants) > 30
    assert constants <= set(vars(lib))
    assert lib.RDMETA_NONE == -(1 << 31)
    assert rdmeta.STALE == lib.RDMETA_STALE


def test_the_functions_are_those_of_the_core_and_not_a_second_copy() -> None:
    assert lib.rdmeta_abi_version() == lib.RDMETA_ABI_VERSION == _core.ABI_VERSION
    loaded = Path("/proc/self/maps").read_text(encoding="utf-8")
    assert not re.search(r"librdmeta", loaded)
    (core,) = {Path(line.split()[-1]) for line in loaded.splitlines() if "rdmeta/_core." in line}
    assert core == Path(_core.__file__)


def test_structs_are_as_large_as_the_compiler_makes_them(tmp_path: Path) -> None:
    names = set(ffi.list_types()[0]) - {"rdmeta_api_t"}
    structs = [
        name for name in names if ffi.typeof(name).kind == "struct" and ffi.typeof(name).fields
    ]
    assert len(structs) > 15
    rows = "".join(
        f'_Static_assert(sizeof({name}) == {ffi.sizeof(name)}, "{name}");\n' for name in structs
    )
    source = f"#include <rdmeta.h>\n{rows}"
    (tmp_path / "sizes.c").write_text(source, encoding="utf-8")
    command = ["cc", "-std=c11", "-fsyntax-only", f"-I{rdmeta.get_include()}", "sizes.c"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=50)
    assert done.returncode == 0, done.stderr


def test_lookups_see_the_writes_of_python(cache: rdmeta.MetadataCache) -> None:
    reader = door.reader(cache)
    now = door.now().mono_us
    assert [lib.rdmeta_leader(reader, b"orders", 6, p, now) for p in range(4)] == [
        1,
        2,
        3,
        lib.RDMETA_NO_PARTITION,
    ]
    cache.apply(response(12, [MOVED]), 12, rdmeta.ALL)
    assert lib.rdmeta_leader(reader, b"orders", 6, 0, door.now().mono_us) == 3


def test_a_reader_of_last_known_values_has_them() -> None:
    cache = rdmeta.MetadataCache()
    cache.apply(response(12, [MADE]), 12, rdmeta.ALL)
    cache.apply(response(12, [MOVED]), 12, rdmeta.ALL)
    now = door.now().mono_us
    found = [
        lib.rdmeta_leader(door.reader(cache, allow_stale=stale), b"orders", 6, 2, now)
        for stale in (False, True)
    ]
    assert found == [lib.RDMETA_NO_LEADER, 3]


def test_readers_and_caches_outlive_the_python_object(cache: rdmeta.MetadataCache) -> None:
    pointer, reader = door.cache(cache), door.reader(cache.capsule())
    del cache
    gc.collect()
    apply(pointer, response(12, [MOVED]))
    assert lib.rdmeta_leader(reader, b"orders", 6, 0, door.now().mono_us) == 3
    assert lib.rdmeta_cache_version(pointer) == 2


def test_readers_of_images_and_files_outlive_their_objects(
    cache: rdmeta.MetadataCache, tmp_path: Path
) -> None:
    path = tmp_path / "image"
    image = cache.image()
    image.save(path)
    attached = rdmeta.attach(path, look=0.001)
    pointer = door.image(image)
    capsules = [image.capsule(), attached.capsule(), rdmeta.Image.open(path).capsule()]
    readers = [door.reader(capsule) for capsule in capsules]
    cache.apply(response(12, [MOVED]), 12, rdmeta.ALL)
    cache.image().save(path)
    del image, attached, capsules
    gc.collect()
    time.sleep(0.05)  # longer than the coarse clock's tick and the time between two looks
    now = door.now().mono_us
    found = [lib.rdmeta_leader(reader, b"orders", 6, 0, now) for reader in readers]
    assert found == [1, 3, 1]
    assert list(door.leaders(readers[1], ["orders"], [0])) == [3]
    info = ffi.new("rdmeta_image_info_t *")
    lib.rdmeta_image_info(pointer, info)
    assert info.version == 1


def test_a_write_wakes_threads_and_event_loops(cache: rdmeta.MetadataCache) -> None:
    before = cache.version
    woken: list[int | None] = []
    waiter = threading.Thread(
        target=lambda: woken.append(cache.wait_change(before, 30, ["orders"]))
    )
    waiter.start()
    pointer = door.cache(cache)

    async def wait() -> int | None:
        waiting = asyncio.create_task(cache.wait_change_async(before, 30))
        await asyncio.sleep(0.05)
        await asyncio.to_thread(apply, pointer, response(12, [MOVED, *TOPICS]))
        return await waiting

    assert asyncio.run(wait()) == cache.version > before
    waiter.join(30)
    assert woken == [cache.version]
    assert cache.leader("orders", 0) == 3


def rows(seed: int) -> tuple[list[str], list[int], list[int]]:
    """Returns random lookups in TOPICS, some without a leader, and their results."""
    print(f"seed {seed}")
    draw = random.Random(seed)
    names, partitions, leaders = [], [], []
    for _ in range(1000):
        i, p = draw.randrange(210), draw.randrange(5)
        names.append(f"topic-{i:03}")
        partitions.append(p)
        known = (i + p) % 3 + 1 if p < 4 else rdmeta.NO_PARTITION
        leaders.append(known if i < 200 else rdmeta.NOT_CACHED)
    return names, partitions, leaders


COLUMNS: dict[str, Any] = {
    "list": lambda names: names,
    "prepared": door.prepare,
    "utf8": pa.array,
    "prepared utf8": lambda names: door.prepare(pa.array(names)),
    "large utf8": lambda names: pa.array(names, pa.large_string()),
    "view": lambda names: pa.array([f"{name}" for name in names], pa.string_view()),
    "dictionary": lambda names: pa.array(names).dictionary_encode(),
    "narrow dictionary": lambda names: pa.array(names).cast(
        pa.dictionary(pa.uint8(), pa.large_string())
    ),
    "chunks": lambda names: pa.chunked_array([names[:300], [], names[300:]]),
    "slice": lambda names: pa.array(["x", "y", "z", *names])[3:],
    "record batch's": lambda names: pa.record_batch({"topic": pa.array(names)})["topic"],
    "numpy": np.array,
}
NUMBERS: dict[str, Any] = {
    "list": lambda numbers: numbers,
    "int32": lambda numbers: np.array(numbers, np.int32),
    "int64": lambda numbers: np.array(numbers, np.int64),
    "array": lambda numbers: array("i", numbers),
    "arrow int32": lambda numbers: pa.array(numbers, pa.int32()),
    "arrow int8": lambda numbers: pa.array(numbers, pa.int8()),
    "arrow uint64": lambda numbers: pa.array(numbers, pa.uint64()),
    "arrow chunks": lambda numbers: pa.chunked_array([numbers[:7], numbers[7:]]),
    "arrow slice": lambda numbers: pa.array([9, *numbers], pa.int16())[1:],
}


@pytest.mark.parametrize("of", ["cache", "reader"])
@pytest.mark.parametrize("column", COLUMNS)
def test_leaders_takes_topics_in_every_shape(
    cache: rdmeta.MetadataCache, column: str, of: str
) -> None:
    names, partitions, answers = rows(random.randrange(1 << 32))
    source = cache if of == "cache" else door.reader(cache)
    assert list(door.leaders(source, COLUMNS[column](names), partitions)) == answers


@pytest.mark.parametrize("numbers", NUMBERS)
def test_leaders_takes_partitions_in_every_shape(cache: rdmeta.MetadataCache, numbers: str) -> None:
    names, partitions, answers = rows(random.randrange(1 << 32))
    out = np.zeros(len(names), np.int32)
    reader, prepared = door.reader(cache), door.prepare(names)
    assert door.leaders(reader, prepared, NUMBERS[numbers](partitions), out) is out
    assert out.tolist() == answers


def test_long_names_of_a_view_column_are_found() -> None:
    long, cache = "x" * 13, rdmeta.MetadataCache()
    cache.apply(response(12, [T(long, [P(0, leader=2)])]), 12, rdmeta.ALL)
    column = pa.array(["x" * 12, long], pa.string_view())
    assert list(cache.leaders(column, [0, 0])) == [rdmeta.NOT_CACHED, 2]


def test_the_result_of_leaders_is_a_column_without_a_copy(cache: rdmeta.MetadataCache) -> None:
    buffer = pa.allocate_buffer(3 * 4)
    door.leaders(cache, pa.array(["orders"] * 3), [0, 1, 2], memoryview(buffer).cast("i"))
    assert pa.Array.from_buffers(pa.int32(), 3, [None, buffer]).to_pylist() == [1, 2, 3]


def test_prepared_topics_keep_the_column_and_serve_more_lookups(
    cache: rdmeta.MetadataCache,
) -> None:
    column = pa.array(["orders", "topic-000"])
    prepared = door.prepare(column)
    names = ffi.cast("rdmeta_str_t *", prepared.address)
    assert [ffi.unpack(names[i].data, names[i].len) for i in range(len(prepared))] == [
        b"orders",
        b"topic-000",
    ]
    assert int(ffi.cast("uintptr_t", names[0].data)) == column.buffers()[2].address
    del column
    gc.collect()
    assert list(cache.leaders(prepared, [0, 1])) == [1, 2]
    assert list(cache.leaders(prepared, [2, 2])) == [3, 3]
    assert cache.hint(prepared) == []


@pytest.mark.parametrize(
    ("topics", "error"),
    [
        (pa.array([1, 2]), TypeError),
        (pa.array([b"orders", b"b"]), TypeError),
        (pa.array(["orders", None]), ValueError),
        (pa.array(["orders", None]).dictionary_encode(), ValueError),
        (pa.chunked_array([["orders"], [None]]), ValueError),
        (pa.record_batch({"topic": ["a", "b"]}), TypeError),
        (pa.array([1, 2]).dictionary_encode(), TypeError),
        (["orders"], ValueError),
        ("orders", TypeError),
    ],
)
def test_a_column_of_anything_but_names_is_refused(
    cache: rdmeta.MetadataCache, topics: Any, error: type[Exception]
) -> None:
    for source in (cache, door.reader(cache)):
        with pytest.raises(error):
            door.leaders(source, topics, [0, 1])


@pytest.mark.parametrize(
    ("partitions", "error"),
    [
        (pa.array(["0", "1"]), TypeError),
        (pa.array([0.0, 1.0]), TypeError),
        (pa.array([0, None]), ValueError),
        (pa.array([0, 1 << 31]), ValueError),
        (pa.array([0, (1 << 64) - 2], pa.uint64()), ValueError),
        (pa.array([0]), ValueError),
        (np.array([0, 1], np.float32), TypeError),
    ],
)
def test_a_column_of_anything_but_partition_ids_is_refused(
    cache: rdmeta.MetadataCache, partitions: Any, error: type[Exception]
) -> None:
    for source in (cache, door.reader(cache)):
        with pytest.raises(error):
            door.leaders(source, ["orders", "orders"], partitions)


OTHER_ORDER = np.dtype(np.int32).newbyteorder()


@pytest.mark.parametrize(
    "out", [np.zeros(1, np.int32), np.zeros(2, np.int64), np.zeros(2, OTHER_ORDER), bytes(8)]
)
def test_an_out_buffer_that_does_not_fit_is_refused(cache: rdmeta.MetadataCache, out: Any) -> None:
    with pytest.raises((ValueError, BufferError)):
        door.leaders(door.reader(cache), ["orders", "orders"], [0, 1], out)


def test_integers_of_ctypes_are_taken_as_they_are(cache: rdmeta.MetadataCache) -> None:
    topics, one_by_one = ["orders"] * 3, [0, 2, 9]
    expected = [*door.leaders(cache, topics, one_by_one)]
    for width in (ctypes.c_int32, ctypes.c_int64):
        assert [*door.leaders(cache, topics, (width * 3)(*one_by_one))] == expected
    out = (ctypes.c_int32 * 3)()
    assert door.leaders(door.reader(cache), topics, one_by_one, out) is out
    assert [*out] == expected


@pytest.mark.parametrize("wrong", [None, 7, object(), _core._C_API])
def test_an_object_that_is_no_cache_is_refused(wrong: object) -> None:
    with pytest.raises(TypeError, match=r"expected a rdmeta\.MetadataCache"):
        door.cache(wrong)
    with pytest.raises(TypeError, match=r"expected a rdmeta\.Image"):
        door.image(wrong)
    with pytest.raises(TypeError, match=r"expected a cache or an image of rdmeta's"):
        door.reader(wrong)
    with pytest.raises(TypeError, match="expected a rdmeta_reader_t"):
        door.leaders(ffi.new("int *"), ["orders"], [0])
    with pytest.raises(TypeError, match="expected a reader or a cache"):
        door.leaders(wrong, ["orders"], [0])


def test_a_missing_cffi_is_named() -> None:
    program = (
        "import sys; sys.modules['cffi'] = None\n"
        "import rdmeta\n"
        "try:\n    import rdmeta.ffi\n"
        "except rdmeta.MissingExtraError as error: print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=50, check=True
    )
    assert "pip install -e '.[cffi]'" in done.stdout


def test_a_reader_that_is_null_is_refused() -> None:
    with pytest.raises(ValueError, match="NULL"):
        door.leaders(ffi.cast("rdmeta_reader_t *", 0), ["a"], [0])


@pytest.mark.parametrize(("wrong", "error"), [(1 << 63, ValueError), (0.5, TypeError)])
def test_an_invalid_time_is_refused_by_its_name(
    cache: rdmeta.MetadataCache, wrong: Any, error: type[Exception]
) -> None:
    with pytest.raises(error, match="mono_us"):
        door.leaders(door.reader(cache), ["orders"], [0], mono_us=wrong)


@pytest.mark.parametrize(("wall_us", "year"), [((1 << 63) - 1, 9999), (-(1 << 63), 1)])
def test_a_wall_time_that_no_datetime_has_is_the_nearest_one(
    cache: rdmeta.MetadataCache, tmp_path: Path, wall_us: int, year: int
) -> None:
    moment = ffi.new("rdmeta_time_t *", {"mono_us": door.now().mono_us, "wall_us": wall_us})[0]
    since = cache.version
    assert lib.rdmeta_cache_purge(door.cache(cache), moment) == 0
    native = ffi.gc(lib.rdmeta_cache_image(door.cache(cache), moment), lib.rdmeta_image_unref)
    assert lib.rdmeta_image_save(native, str(tmp_path / "image").encode(), 0) == 0
    opened = rdmeta.Image.open(tmp_path / "image")
    attached = rdmeta.attach(tmp_path / "image")
    changes = [*cache.changes(since), *rdmeta.MetadataCache().image().diff(opened)]
    assert {change.observed_at.year for change in changes} == {year}
    for each in (opened, attached, attached.image()):
        assert each.taken.year == year
        assert repr(each)
    assert attached.stats()["taken"] == opened.taken

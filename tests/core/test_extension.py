"""Tests that an extension of another project works on the caches of this process."""

from __future__ import annotations

import asyncio
import ctypes
import importlib.util
import shlex
import subprocess
import sysconfig
import threading
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from frames import P, T, response

import rdmeta
from rdmeta import _core

SOURCES = Path(__file__).resolve().parents[1] / "support/extension"
MADE = T("orders", [P(0, leader=1), P(1, leader=2), P(2, leader=3)])
MOVED = T("orders", [P(0, leader=3, epoch=1), P(1, leader=2), P(2, leader=-1, epoch=1)])


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    """Compiles tests/support/extension with warnings as errors; returns the module."""
    built = tmp_path_factory.mktemp("extension") / "client.so"
    compiler = shlex.split(sysconfig.get_config_var("CC") or "cc")
    flags = ["-std=c11", "-O1", "-fPIC", "-shared", "-Wall", "-Wextra", "-Werror", "-Wshadow"]
    include = [f"-I{rdmeta.get_include()}", f"-I{sysconfig.get_path('include')}"]
    sources = map(str, SOURCES.glob("*.c"))
    done = subprocess.run(
        [*compiler, *flags, *include, *sources, "-o", str(built)],
        capture_output=True,
        text=True,
        check=False,
        timeout=50,
    )
    assert done.returncode == 0, done.stderr
    spec = importlib.util.spec_from_file_location("client", built)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def cache() -> rdmeta.MetadataCache:
    made = rdmeta.MetadataCache()
    made.apply(response(12, [MADE]), 12, rdmeta.ALL)
    return made


def test_an_extension_reads_what_python_wrote(
    client: ModuleType, cache: rdmeta.MetadataCache
) -> None:
    assert client.leaders(cache, "orders", 4) == [1, 2, 3, rdmeta.NO_PARTITION]
    assert client.leaders(cache, "other", 1) == [rdmeta.NOT_CACHED]
    cache.apply(response(12, [MOVED]), 12, rdmeta.ALL)
    assert client.leaders(cache, "orders", 3) == [3, 2, rdmeta.NO_LEADER]


def test_python_reads_what_an_extension_wrote(
    client: ModuleType, cache: rdmeta.MetadataCache
) -> None:
    version = client.apply(cache, response(12, [MOVED]), 12)
    assert cache.reason("orders") == "an extension asked"
    assert version == cache.version
    assert cache.leader("orders", 0) == 3
    with pytest.raises(ValueError, match="RDMETA_ERR_MALFORMED"):
        client.apply(cache, b"\0", 12)


def test_an_extension_reads_images_and_files_as_it_reads_caches(
    client: ModuleType, cache: rdmeta.MetadataCache, tmp_path: Path
) -> None:
    image = cache.image()
    image.save(tmp_path / "image")
    cache.apply(response(12, [MOVED]), 12, rdmeta.ALL)
    assert client.leaders(image, "orders", 3) == [1, 2, 3]
    assert client.leaders(rdmeta.attach(tmp_path / "image"), "orders", 3) == [1, 2, 3]
    assert client.leaders(rdmeta.Image.open(tmp_path / "image").capsule(), "orders", 1) == [1]
    with pytest.raises(TypeError, match=r"expected a rdmeta\.MetadataCache, not rdmeta"):
        client.apply(image, b"", 1)


def test_an_extension_takes_a_capsule_whose_cache_object_is_gone(client: ModuleType) -> None:
    cache = rdmeta.MetadataCache()
    capsule = cache.capsule()
    del cache
    client.apply(capsule, response(12, [MADE]), 12)
    assert client.leaders(capsule, "orders", 1) == [1]


@pytest.mark.parametrize("wrong", [None, 7, object(), _core._C_API])
def test_an_extension_refuses_objects_that_are_not_caches(
    client: ModuleType, wrong: object
) -> None:
    with pytest.raises(TypeError, match=r"expected a cache or an image of rdmeta's, not"):
        client.leaders(wrong, "orders", 1)
    with pytest.raises(TypeError, match=r"expected a rdmeta\.MetadataCache, not"):
        client.apply(wrong, b"", 1)


def test_a_write_of_an_extension_wakes_threads_and_event_loops(
    client: ModuleType, cache: rdmeta.MetadataCache
) -> None:
    before = cache.version
    woken: list[int | None] = []
    waiter = threading.Thread(
        target=lambda: woken.append(cache.wait_change(before, 30, ["orders"]))
    )
    waiter.start()

    async def wait() -> int | None:
        waiting = asyncio.create_task(cache.wait_change_async(before, 30))
        await asyncio.sleep(0.05)
        await asyncio.to_thread(client.apply, cache, response(12, [MOVED]), 12)
        return await waiting

    assert asyncio.run(wait()) == cache.version > before
    waiter.join(30)
    assert woken == [cache.version]


def capsule_of(change: Callable[[ctypes.Array[ctypes.c_uint32]], None]) -> tuple[object, object]:
    """Returns a capsule of a changed copy of the table, and the objects that must outlive it."""
    get = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", ctypes.pythonapi)
    )
    new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(
        ("PyCapsule_New", ctypes.pythonapi)
    )
    name = ctypes.create_string_buffer(b"rdmeta._core._C_API")
    live = get(_core._C_API, name.value)
    size = (ctypes.c_uint32 * 2).from_address(live)[1]
    copy = ctypes.create_string_buffer(ctypes.string_at(live, size), size)
    change((ctypes.c_uint32 * 2).from_buffer(copy))
    older = ctypes.CFUNCTYPE(ctypes.c_uint32)(lambda: _core.ABI_VERSION - 1)
    ctypes.memmove(ctypes.addressof(copy) + 8, ctypes.byref(older), ctypes.sizeof(older))
    return new(ctypes.addressof(copy), name, None), (copy, name, older)


def version_name(version: int) -> str:
    return f"{version >> 16}\\.{version & 0xFFFF}"


def test_a_table_older_than_the_one_compiled_against_is_refused_with_both_versions(
    client: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    def shorten(head: ctypes.Array[ctypes.c_uint32]) -> None:
        head[1] -= ctypes.sizeof(ctypes.c_void_p)

    capsule, keep = capsule_of(shorten)
    monkeypatch.setattr(_core, "_C_API", capsule)
    has, wants = version_name(_core.ABI_VERSION - 1), version_name(_core.ABI_VERSION)
    with pytest.raises(ImportError, match=f"{has}, .*against {wants}: install a later rdmeta"):
        client.imported()
    assert keep


def test_a_table_of_another_major_version_is_refused(
    client: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    def later(head: ctypes.Array[ctypes.c_uint32]) -> None:
        head[0] += 1

    capsule, keep = capsule_of(later)
    monkeypatch.setattr(_core, "_C_API", capsule)
    with pytest.raises(ImportError, match=r"C API 2\.0, .*compile it against this rdmeta"):
        client.imported()
    assert keep


def test_a_longer_table_is_accepted(client: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    def lengthen(head: ctypes.Array[ctypes.c_uint32]) -> None:
        head[1] += ctypes.sizeof(ctypes.c_void_p)

    live = _core._C_API
    capsule, keep = capsule_of(lengthen)
    monkeypatch.setattr(_core, "_C_API", capsule)
    assert client.imported()
    monkeypatch.setattr(_core, "_C_API", live)
    assert client.imported()  # it no longer uses the longer table, whose memory ends now
    assert keep

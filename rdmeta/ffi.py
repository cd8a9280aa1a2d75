"""The C API through cffi, for the live caches of this process. It needs the extra `cffi`.

    from rdmeta.ffi import ffi, lib

    reader = rdmeta.ffi.reader(cache)
    lib.rdmeta_leader(reader, b"orders", 6, 0, rdmeta.ffi.now().mono_us)

`ffi` knows the declarations of rdmeta.h. `lib` has its functions and its constants, with the names
and the rules of that header. Nothing is compiled and nothing is loaded: the functions are those of
rdmeta._core, found through its table. Calls release the GIL.
"""

from __future__ import annotations

import ctypes
import re
import time
from array import array
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar, overload

import rdmeta
from rdmeta._core import _C_API, Names, _leaders
from rdmeta.errors import MissingExtraError

try:
    import cffi
except ImportError as error:
    raise MissingExtraError.of("rdmeta.ffi", "cffi") from error

__all__ = ["cache", "ffi", "image", "leaders", "lib", "now", "prepare", "reader"]

_B = TypeVar("_B")
_capsule_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


def _read(header: str, included: set[str]) -> str:
    """Returns a header for cffi: its includes are expanded and its comments are removed."""
    included.add(header)
    text = Path(rdmeta.get_include(), header).read_text(encoding="utf-8")
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL).replace("\\\n", " ")
    text = re.sub(r"^#ifdef __cplusplus$.*?^#endif$", "", text, flags=re.DOTALL | re.MULTILINE)
    kept = []
    for line in text.splitlines():
        inner = re.match(r'#include "(\w+\.h)"', line)
        if inner and inner[1] not in included:
            kept.append(_read(inner[1], included))
        elif not line.startswith("#") or re.match(r"#define \w+ \w+$", line):
            kept.append(line.replace(" INT32_MIN", " -2147483648"))
    return "\n".join(kept)


def _declarations() -> str:
    """Returns rdmeta.h, with its functions as members of the table that holds them."""
    text = _read("rdmeta.h", set())
    functions = {}

    def take(match: re.Match[str]) -> str:
        functions[match[2]] = f"{match[1]}(*{match[2]}){match[3]};"
        return ""

    text = re.sub(r"^RDMETA_API\s([^;(]*?)(\w+)(\([^;]*\));", take, text, flags=re.MULTILINE)
    calls = Path(rdmeta.get_include(), "rdmeta_api_calls.h").read_text(encoding="utf-8")
    members = "\n".join(functions[name] for name in re.findall(r"\bF\((rdmeta_\w+)\)", calls))
    return f"{text}\ntypedef struct {{ uint32_t abi_major, size; {members} }} rdmeta_api_t;"


def _library(ffi: Any) -> SimpleNamespace:
    """Returns the functions and constants of rdmeta.h by name."""
    table = ffi.cast("rdmeta_api_t *", _capsule_pointer(_C_API, b"rdmeta._core._C_API"))
    found = {name: getattr(table, name) for name, _ in ffi.typeof("rdmeta_api_t").fields[2:]}
    # None opens the process itself: this takes only constants, which need no library.
    constants = ffi.dlopen(None)
    found |= {name: getattr(constants, name) for name in dir(constants)}
    return SimpleNamespace(**found)


ffi: Any = cffi.FFI()
ffi.cdef(_declarations())
lib: Any = _library(ffi)


def cache(source: Any) -> Any:
    """Returns the `rdmeta_cache_t *` of a MetadataCache, or of its capsule().

    The pointer holds a reference. Raises TypeError.
    """
    pointer = _pointer(_capsule(source), "cache")
    if pointer is None:
        raise TypeError(f"expected a rdmeta.MetadataCache, not {type(source).__name__}")
    return ffi.gc(lib.rdmeta_cache_ref(pointer), lib.rdmeta_cache_unref)


def image(source: Any) -> Any:
    """Returns the `rdmeta_image_t *` of an Image, or of its capsule().

    The pointer holds a reference. Raises TypeError.
    """
    pointer = _pointer(_capsule(source), "image")
    if pointer is None:
        raise TypeError(f"expected a rdmeta.Image, not {type(source).__name__}")
    return ffi.gc(lib.rdmeta_image_ref(pointer), lib.rdmeta_image_unref)


def reader(source: Any, *, allow_stale: bool = False) -> Any:
    """Returns a new `rdmeta_reader_t *` of a MetadataCache, an Image or an attached reader.

    `source` may also be their capsule(). One thread at a time may use the reader. Raises TypeError
    and MemoryError.
    """
    flags = lib.RDMETA_ALLOW_STALE if allow_stale else 0
    capsule = _capsule(source)
    for kind, new in (
        ("cache", lib.rdmeta_reader_new),
        ("image", lib.rdmeta_image_reader),
        ("attach", lib.rdmeta_attach_reader),
    ):
        pointer = _pointer(capsule, kind)
        if pointer is not None:
            made = new(pointer, flags)
            if made == ffi.NULL:
                raise MemoryError("there is no memory for a reader")
            return ffi.gc(made, lib.rdmeta_reader_destroy)
    raise TypeError(f"expected a cache or an image of rdmeta's, not {type(source).__name__}")


def _capsule(source: Any) -> Any:
    return source.capsule() if hasattr(source, "capsule") else source


def _pointer(capsule: Any, kind: str) -> Any:
    """Returns the pointer in a capsule of this kind, None for any other object."""
    try:
        address = _capsule_pointer(capsule, f"rdmeta.{kind}".encode("ascii"))
    except ValueError:
        return None
    return ffi.cast(f"rdmeta_{kind}_t *", address)


def now() -> Any:
    """Returns a `rdmeta_time_t` of the clocks that a MetadataCache made without `clock=` reads."""
    clock = getattr(time, "CLOCK_MONOTONIC_COARSE", time.CLOCK_MONOTONIC)
    mono = time.clock_gettime_ns(clock) // 1000
    return ffi.new("rdmeta_time_t *", {"mono_us": mono, "wall_us": time.time_ns() // 1000})[0]


def prepare(topics: Any) -> Names:
    """Returns topic names in the form that C takes, for use in many calls.

    `topics` is a list of str, or an Arrow column of strings (pyarrow, polars ...), whose bytes are
    not copied. `.address` points to an array of len() `rdmeta_str_t`. Raises TypeError and
    ValueError.
    """
    return Names(topics)


@overload
def leaders(
    source: Any, topics: Any, partitions: Any, out: None = None, *, mono_us: int | None = None
) -> array[int]: ...
@overload
def leaders(
    source: Any, topics: Any, partitions: Any, out: _B, *, mono_us: int | None = None
) -> _B: ...
def leaders(
    source: Any, topics: Any, partitions: Any, out: Any = None, *, mono_us: int | None = None
) -> Any:
    """Calls rdmeta_leaders() for whole columns and returns `out`.

    `source` is a reader that reader() made, or a MetadataCache. `topics` is an argument or a result
    of prepare(). `partitions` has as many integers: a buffer of 32 or 64 bit (NumPy ...), an Arrow
    column, or a list. `out` is a writable buffer of int32, by default a new array("i"). The call
    writes broker ids to it, or the codes of rdmeta.h where there is no leader. `mono_us` is now by
    default; a cache uses its own clock. Raises TypeError and ValueError. Raises BufferError, or
    NumPy's ValueError, if `out` is read-only or a buffer is not contiguous.
    """
    if not isinstance(source, ffi.CData):
        if not hasattr(source, "leaders"):
            raise TypeError(f"expected a reader or a cache, not {type(source).__name__}")
        return source.leaders(topics, partitions, out)
    if ffi.typeof(source) is not ffi.typeof("rdmeta_reader_t *"):
        raise TypeError(f"expected a rdmeta_reader_t *, not {ffi.typeof(source).cname}")
    if source == ffi.NULL:
        raise ValueError("the reader is NULL: make one with rdmeta.ffi.reader()")
    now_us = now().mono_us if mono_us is None else mono_us
    return _leaders(int(ffi.cast("uintptr_t", source)), topics, partitions, out, now_us)

"""The table of functions and the capsules, by which extensions reach the process's C code."""

from __future__ import annotations

import ctypes
import gc
import re
import subprocess
import sys
from pathlib import Path

import pytest
from declarations import declared

import rdmeta
from rdmeta import _core

ROOT = Path(__file__).resolve().parents[2]
INCLUDE = ROOT / "csrc/include"
ORDER = (ROOT / "tests/repo/api_table.txt").read_text(encoding="utf-8").splitlines()

pointer_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


def test_the_table_matches_the_public_headers() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "tools/api_table.py", "--check"],
        capture_output=True,
        text=True,
        check=False,
        timeout=50,
    )
    assert done.returncode == 0, f"{done.stdout}run tools/api_table.py and look at what it wrote"


def test_every_public_function_has_one_place_in_the_table() -> None:
    names = [re.findall(r"(\w+)\(", prototype)[0] for prototype in ORDER]
    assert set(names) == declared()
    assert len(set(names)) == len(names)
    assert names[0] == "rdmeta_abi_version"


def test_every_public_function_is_there_for_cython() -> None:
    text = (ROOT / "rdmeta/_capi.pxd").read_text(encoding="utf-8")
    assert declared() - set(re.findall(r"\b(rdmeta_\w+)\(", text)) == set()


def in_headers(pattern: str) -> list[re.Match[str]]:
    """Returns the matches of a pattern in the public headers, without their comments."""
    texts = [path.read_text(encoding="utf-8") for path in sorted(INCLUDE.glob("*.h"))]
    text = re.sub(r"/\*.*?\*/", "", "\n".join(texts), flags=re.DOTALL)
    return list(re.finditer(pattern, text, re.DOTALL | re.MULTILINE))


def test_every_public_constant_is_there_for_cython() -> None:
    text = (ROOT / "rdmeta/_capi.pxd").read_text(encoding="utf-8")
    lists = " ".join(found[1] for found in in_headers(r"^enum \{(.*?)\};"))
    values = {found[1] for found in in_headers(r"^#define (RDMETA_\w+) [-\w]+$")}
    constants = values | set(re.findall(r"\bRDMETA_\w+\b", lists))
    assert {"RDMETA_LEADER_CHANGED", "RDMETA_ABI_VERSION", "RDMETA_ALLOW_STALE"} <= constants
    assert constants - set(re.findall(r"\bRDMETA_\w+", text)) == set()


def test_every_member_of_a_public_struct_is_there_for_cython() -> None:
    text = (ROOT / "rdmeta/_capi.pxd").read_text(encoding="utf-8")
    structs = in_headers(r"^typedef struct \w+ \{(.*?)^\} (rdmeta_\w+);")
    assert len(structs) > 20
    missing = {}
    for struct in structs:
        members = set(re.findall(r"\(\*(\w+)\)\(|(\w+)(?:\[\d+\])?[,;]", struct[1]))
        names = {a or b for a, b in members if not (a or b).startswith("reserved")}
        found = re.search(rf"^    ctypedef struct {struct[2]}:\n((?:        .*\n)+)", text, re.M)
        missing[struct[2]] = names - set(re.findall(r"\w+", found[1] if found else ""))
    missing.pop("rdmeta_api_t")  # Cython declares its functions one by one
    assert {name: lacks for name, lacks in missing.items() if lacks} == {}


def test_the_live_table_has_this_version_and_every_function_of_the_list() -> None:
    table = pointer_of(_core._C_API, b"rdmeta._core._C_API")
    major, size = (ctypes.c_uint32 * 2).from_address(table)
    assert major == _core.ABI_VERSION >> 16
    assert size == 8 + ctypes.sizeof(ctypes.c_void_p) * len(ORDER)
    assert len(ORDER) == _core.ABI_VERSION & 0xFFFF
    entries = (ctypes.c_void_p * len(ORDER)).from_address(table + 8)
    assert len({*entries} - {None}) == len(ORDER)
    abi_version = ctypes.CFUNCTYPE(ctypes.c_uint32)(entries[0] or 0)
    assert abi_version() == _core.ABI_VERSION


def test_a_capsule_keeps_the_cache_alive_after_its_object() -> None:
    cache = rdmeta.MetadataCache()
    capsule = cache.capsule()
    address = pointer_of(capsule, b"rdmeta.cache")
    assert address == pointer_of(cache.capsule(), b"rdmeta.cache")
    del cache
    gc.collect()
    place = next(i for i, line in enumerate(ORDER) if "rdmeta_cache_version(" in line)
    table = pointer_of(_core._C_API, b"rdmeta._core._C_API") or 0
    entry = ctypes.c_void_p.from_address(table + 8 + place * ctypes.sizeof(ctypes.c_void_p))
    version = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_void_p)(entry.value or 0)
    assert version(address) == 0


def test_a_capsule_of_one_kind_does_not_pass_for_another() -> None:
    with pytest.raises(ValueError, match="incorrect name"):
        pointer_of(rdmeta.MetadataCache().capsule(), b"rdmeta._core._C_API")

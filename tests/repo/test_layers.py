"""The source tree obeys layers.toml and the limits of size; planted violations are found."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import tree_rules

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2]
LAYERS = tomllib.loads((ROOT / "tests/layers.toml").read_text(encoding="utf-8"))
FOLDERS: list[str] = LAYERS["c"]["folders"]
VENDORED = tuple(f"csrc/vendor/{name}/" for name in LAYERS["c"]["vendored"])
PYTHON_ORDER = LAYERS["python"]["order"]


def plant(root: Path, files: dict[str, str]) -> Path:
    """Writes these files under `root`; returns `root`."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


def assert_none(violations: list[str]) -> None:
    assert not violations, "\n".join(["", *violations])


def test_no_include_and_no_call_goes_against_the_order() -> None:
    assert len(list((ROOT / "csrc").rglob("*.c"))) > 0
    assert_none(tree_rules.c_layer_violations(ROOT / "csrc", FOLDERS))


@pytest.mark.proof
def test_no_import_goes_against_the_order() -> None:
    assert len(list((ROOT / "rdmeta").glob("*.py"))) > 0
    assert_none(tree_rules.python_layer_violations(ROOT / "rdmeta", PYTHON_ORDER))


def test_every_folder_and_module_of_the_order_exists() -> None:
    for directory, units in (("csrc", FOLDERS), ("rdmeta", sum(PYTHON_ORDER, []))):
        found = {path.stem for path in (ROOT / directory).iterdir()}
        assert [unit for unit in units if unit not in found] == []


def violations_in_files(
    check: Callable[[str, str], list[str]], suffixes: set[str] | None = None
) -> list[str]:
    """Returns what `check` finds in the repository's own files; fails if there are none."""
    files = [
        path
        for path in tree_rules.written_files(ROOT)
        if suffixes is None or path.suffix in suffixes
        if not path.relative_to(ROOT).as_posix().startswith(VENDORED)
    ]
    assert files
    return [
        violation
        for path in files
        for violation in check(
            path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8", errors="replace")
        )
    ]


def test_c_functions_and_lines_are_short() -> None:
    assert_none(violations_in_files(tree_rules.size_violations, {".c", ".h"}))


def test_no_file_names_a_path_of_one_machine() -> None:
    assert_none(violations_in_files(tree_rules.machine_path_violations))


def test_an_include_of_a_later_folder_is_found(tmp_path: Path) -> None:
    text = '#include "base/hash.h"\n#  include "cache/state.h"\n'
    plant(tmp_path, {"base/hash.h": "", "cache/state.h": "", "base/hash.c": text})
    assert tree_rules.c_layer_violations(tmp_path, FOLDERS) == [
        "base/hash.c: includes cache/state.h of cache, a later folder"
    ]


def test_a_call_into_a_later_folder_is_found(tmp_path: Path) -> None:
    text = "int rdmeta_sum(int a);\nint rdmeta_twice(int a) {\n        return rdmeta_sum(a);\n}\n"
    plant(tmp_path, {"base/twice.c": text, "cache/sum.c": "int rdmeta_sum(int a)\n{\n}\n"})
    assert tree_rules.c_layer_violations(tmp_path, FOLDERS) == [
        "base/twice.c: uses rdmeta_sum of cache, a later folder"
    ]


def test_a_tag_of_a_structure_is_not_a_call(tmp_path: Path) -> None:
    text = "struct rdmeta_sum;\n/* rdmeta_sum() */\n"
    plant(tmp_path, {"base/twice.h": text, "cache/sum.c": "int rdmeta_sum(int a) {\n}\n"})
    assert tree_rules.c_layer_violations(tmp_path, FOLDERS) == []


def test_a_vendored_file_may_include_files_of_its_own_folder(tmp_path: Path) -> None:
    files = {"vendor/nano/one.h": '#include "two.h"\n', "vendor/nano/two.h": ""}
    plant(tmp_path, {**files, "base/hash.c": '#include "vendor/nano/one.h"\n'})
    assert tree_rules.c_layer_violations(tmp_path, FOLDERS) == []
    plant(tmp_path, {"vendor/nano/one.h": '#include "base/two.h"\n', "base/two.h": ""})
    assert tree_rules.c_layer_violations(tmp_path, ["vendor", "base"]) == [
        "vendor/nano/one.h: includes base/two.h of base, a later folder"
    ]


def test_only_the_folders_of_vendor_are_exempt() -> None:
    names = {path.name for path in (ROOT / "csrc/vendor").iterdir()}
    assert names == set(LAYERS["c"]["vendored"])


def test_a_c_file_without_a_folder_is_found(tmp_path: Path) -> None:
    plant(tmp_path, {"util.h": "", "odd/util.h": ""})
    assert tree_rules.c_layer_violations(tmp_path, FOLDERS) == [
        "odd/util.h: odd is not in layers.toml",
        "util.h: lies in no folder of layers.toml",
    ]


def test_an_include_is_a_path_in_csrc(tmp_path: Path) -> None:
    plant(tmp_path, {"tests/plan.h": "", "csrc/base/avl.h": ""})
    for include in ("../tests/plan.h", "avl.h"):
        plant(tmp_path, {"csrc/base/avl.c": f'#include "{include}"\n'})
        assert tree_rules.c_layer_violations(tmp_path / "csrc", FOLDERS) == [
            f"base/avl.c: includes {include}, which is not in csrc"
        ]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ('#include "base/two.h"\n', '#include "base/one.h"\n'),
        ('#include "base/two.h"\n', "int rdmeta_f(int a) {\n        return rdmeta_one(a);\n}\n"),
    ],
)
def test_a_cycle_of_files_in_one_folder_is_found(tmp_path: Path, one: str, other: str) -> None:
    plant(
        tmp_path,
        {
            "base/one.c": one + "int rdmeta_one(int a) {\n}\n",
            "base/one.h": "int rdmeta_one(int a);\n",
            "base/two.h": "",
            "base/two.c": other,
        },
    )
    violations = tree_rules.c_layer_violations(tmp_path, FOLDERS)
    assert [violation.split(":")[0] for violation in violations] == ["cycle"]


@pytest.mark.parametrize(
    "statement",
    [
        "from rdmeta.history import loop",
        "from rdmeta import history",
        "import rdmeta.history.loop as loop",
        "from ..history import loop",
        "def later():\n    from rdmeta.history import loop",
        "import importlib\nimportlib.import_module('rdmeta.history.loop')",
    ],
)
def test_an_import_of_a_later_layer_is_found(tmp_path: Path, statement: str) -> None:
    package = plant(
        tmp_path / "rdmeta",
        {
            "__init__.py": "",
            "history/__init__.py": "",
            "history/loop.py": "",
            "net/session.py": statement + "\n",
        },
    )
    assert tree_rules.python_layer_violations(package, PYTHON_ORDER) == [
        "net/session.py: net uses history, a later layer"
    ]


def test_a_unit_that_init_exports_cannot_import_init(tmp_path: Path) -> None:
    package = plant(tmp_path / "rdmeta", {"__init__.py": "", "cache.py": "import rdmeta\n"})
    assert tree_rules.python_layer_violations(package, PYTHON_ORDER) == [
        "cache.py: cache uses __init__, a later layer"
    ]


def test_a_cython_import_of_a_later_layer_is_found(tmp_path: Path) -> None:
    package = plant(
        tmp_path / "rdmeta",
        {
            "_core.pyx": "from rdmeta.cache cimport (\n    Cache as C,\n)\n",
            "_core.pxd": 'cdef extern from "merge.h":\n    pass\n',
            "cache.py": "",
        },
    )
    assert tree_rules.python_layer_violations(package, PYTHON_ORDER) == [
        "_core.pxd: uses merge.h of csrc; bindings may use only public headers",
        "_core.pyx: _core uses cache, a later layer",
    ]


def test_an_import_cycle_inside_one_package_is_found(tmp_path: Path) -> None:
    package = plant(
        tmp_path / "rdmeta",
        {
            "history/reader.py": "from .writer import w\n",
            "history/writer.py": "from rdmeta.history import reader\n",
        },
    )
    violations = tree_rules.python_layer_violations(package, PYTHON_ORDER)
    assert [violation.split(":")[0] for violation in violations] == ["cycle"]


def test_a_long_function_is_found_with_its_lines() -> None:
    body = "        x++;\n" * 79
    text = f'extern "C" {{\nint f(int x) /* {{ */ {{\n{body}}}\nint g(void) {{\n}}\n}}\n'
    assert tree_rules.size_violations("a.c", text) == [
        "a.c:2: a function of 81 lines, 80 are the most"
    ]
    assert tree_rules.size_violations("a.c", text.replace("x++;", "", 1)[:-1]) != []
    assert tree_rules.size_violations("a.c", text.replace("        x++;\n", "", 1)) == []


def test_a_wide_line_is_found_and_a_long_file_is_not() -> None:
    assert tree_rules.size_violations("a.h", "\t" * 10 + "/\n") == ["a.h:1: over 80 columns"]
    assert tree_rules.size_violations("a.c", "\n" * 5000) == []


def test_a_path_of_one_machine_is_found() -> None:
    planted = "/".join(["", "home", "me", "kafka"])
    assert tree_rules.machine_path_violations("a.py", f"x = '{planted}'\n") == [
        f"a.py:1: {planted[:7]}... is a path of one machine"
    ]
    assert tree_rules.machine_path_violations("a.py", f"https://example.org{planted}\n") == []

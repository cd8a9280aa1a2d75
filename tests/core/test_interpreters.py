"""Subinterpreters and builds without a GIL: the import refuses them, or switches the GIL on."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import sysconfig
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
free_threaded = pytest.mark.skipif(
    not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="this Python always has a GIL"
)


def interpreters() -> str:
    """Returns the name of the module that makes subinterpreters; Python versions differ in it."""
    for name in ("_interpreters", "_xxsubinterpreters"):
        try:
            importlib.import_module(name)
        except ImportError:
            continue
        return name
    pytest.skip("this Python has no module that makes subinterpreters")


def run(script: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Runs a new Python whose environment does not set its GIL or its warnings."""
    plain = {k: v for k, v in os.environ.items() if k not in ("PYTHON_GIL", "PYTHONWARNINGS")}
    return subprocess.run(
        [sys.executable, *options, "-c", textwrap.dedent(script)],
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
        env=plain,
    )


@pytest.mark.parametrize("kind", ["isolated", "legacy"])
def test_a_subinterpreter_is_refused_with_an_import_error(kind: str) -> None:
    """An isolated one (it has its own GIL from Python 3.12 on), and one that shares the GIL."""
    script = f"""
        import sys
        import {interpreters()} as interpreters
        import rdmeta

        code = "import sys; sys.path[:] = %r\\n" % sys.path + '''if True:
            try:
                import rdmeta
            except ImportError as error:
                assert "interpreter" in str(error).lower(), error
            else:
                raise SystemExit("rdmeta was imported")
            '''
        try:
            made = interpreters.create("{kind}")
        except TypeError:  # before 3.13
            made = interpreters.create(isolated={kind == "isolated"})
        failure = interpreters.run_string(made, code)
        assert failure is None, failure
        assert rdmeta.MetadataCache().version == 0
        print("refused, and the first interpreter works")
    """
    ran = run(script, "-W", "ignore")
    assert ran.stdout == "refused, and the first interpreter works\n", ran.stderr


def test_the_module_declares_that_it_wants_the_gil_and_one_interpreter() -> None:
    source = (ROOT / "rdmeta/_core.pyx").read_text(encoding="utf-8")
    assert "freethreading_compatible=False" in source
    assert "subinterpreters_compatible=no" in source
    made = ROOT / "rdmeta/_core.c"
    if not made.exists():
        pytest.skip("there is no _core.c here to read")
    slots = made.read_text(encoding="utf-8")
    assert "{Py_mod_gil, __Pyx_FREETHREADING_COMPATIBLE}" in slots
    assert "{Py_mod_multiple_interpreters, Py_MOD_MULTIPLE_INTERPRETERS_NOT_SUPPORTED}" in slots
    assert "#define CYTHON_FREETHREADING_COMPATIBLE 1" not in slots


@free_threaded
def test_a_build_without_a_gil_switches_it_on_and_warns() -> None:
    script = """
        import sys
        assert not sys._is_gil_enabled()
        import rdmeta
        assert sys._is_gil_enabled()
        print(rdmeta.MetadataCache().version)
    """
    ran = run(script)
    assert ran.stdout == "0\n", ran.stderr
    assert "RuntimeWarning" in ran.stderr
    assert "'rdmeta._core'" in ran.stderr


REFUSED = """
    try:
        import rdmeta
    except ImportError as error:
        assert error.name == "rdmeta._core", error.name
        print(error)
"""
NEEDS_THE_GIL = "rdmeta needs the GIL: start Python without PYTHON_GIL=0 and -X gil=0\n"


@free_threaded
def test_an_import_with_the_gil_kept_off_is_refused_with_an_import_error() -> None:
    ran = run(REFUSED, "-X", "gil=0")
    assert ran.stdout == NEEDS_THE_GIL, ran.stderr


def test_the_import_is_refused_if_python_reports_that_its_gil_is_off() -> None:
    """The same test for any Python: it replaces the function that Python 3.13 and later have."""
    off = "import sys; sys._is_gil_enabled = lambda: False\n"
    ran = run(off + textwrap.dedent(REFUSED))
    assert ran.stdout == NEEDS_THE_GIL, ran.stderr

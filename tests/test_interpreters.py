"""What other interpreters of one process, and builds without a GIL, are told."""

from __future__ import annotations

import importlib
import subprocess
import sys
import sysconfig
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def interpreters() -> str:
    """The module that makes subinterpreters, by whatever name it has here."""
    for name in ("_interpreters", "_xxsubinterpreters"):
        try:
            importlib.import_module(name)
        except ImportError:
            continue
        return name
    pytest.skip("this Python has no module that makes subinterpreters")


def test_a_subinterpreter_is_refused_with_an_import_error() -> None:
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
                raise SystemExit("it was imported")
            '''
        failure = interpreters.run_string(interpreters.create(), code)
        assert failure is None, failure
        assert rdmeta.MetadataCache().version == 0
        print("refused, and the first goes on")
    """
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(script)],
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert ran.stdout == "refused, and the first goes on\n", ran.stderr


def test_a_build_without_a_gil_switches_it_on() -> None:
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        importlib.import_module("rdmeta")
        assert getattr(sys, "_is_gil_enabled")()  # noqa: B009  # not everywhere
        return
    source = (ROOT / "rdmeta/_core.pyx").read_text(encoding="utf-8")
    assert "freethreading_compatible=False" in source
    assert "subinterpreters_compatible=no" in source
    made = ROOT / "rdmeta/_core.c"
    if not made.exists():
        pytest.skip("no _core.c here to look into: this Python has a GIL in any case")
    slots = made.read_text(encoding="utf-8")
    assert "{Py_mod_gil, __Pyx_FREETHREADING_COMPATIBLE}" in slots
    assert "{Py_mod_multiple_interpreters, Py_MOD_MULTIPLE_INTERPRETERS_NOT_SUPPORTED}" in slots
    assert "#define CYTHON_FREETHREADING_COMPATIBLE 1" not in slots

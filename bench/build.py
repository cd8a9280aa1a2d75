"""Builds what the benches need beside the package: the C programs and the no-op extension."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "build" / "bench"


class BuildError(Exception):
    """A compiler failed; the message is its output."""


def c_benches() -> Path:
    """Compiles bench/c with csrc and the wheel's flags; returns the directory of binaries."""
    make = shutil.which("make")
    if make is None:
        raise BuildError("`make` is needed to build the C benches and was not found")
    command = [make, "-s", "-C", str(ROOT / "bench" / "c"), f"-j{os.cpu_count() or 1}"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise BuildError(done.stderr or done.stdout)
    return OUT


def response(topics: int, ids: int, seed: int) -> bytes:
    """Returns a Metadata v12 response body of `topics` topics, broker ids of 8, 16 or 32 bits."""
    command = [str(c_benches() / "response"), str(topics), str(ids), str(seed)]
    return subprocess.run(command, check=True, capture_output=True).stdout


def noop() -> ModuleType:
    """Returns bench/_noop.pyx, compiled: the floor of a call from Python."""
    return extension("_noop")


def extension(name: str) -> ModuleType:
    """Compiles and imports bench/NAME.pyx, with the compiler flags that setup.py uses."""
    from Cython.Build import cythonize
    from setuptools import Distribution, Extension  # type: ignore[import-untyped]

    import rdmeta

    flags = next(
        line.partition("=")[2].split()
        for line in (ROOT / "csrc" / "flags.mk").read_text(encoding="utf-8").splitlines()
        if line.startswith("RDMETA_CFLAGS =")
    )
    OUT.mkdir(parents=True, exist_ok=True)
    built = str(OUT / "cython")
    modules = cythonize(  # type: ignore[no-untyped-call]
        [
            Extension(
                name,
                [str(ROOT / "bench" / f"{name}.pyx")],
                include_dirs=[rdmeta.get_include()],
                extra_compile_args=list(flags),
            )
        ],
        build_dir=built,
        include_path=[str(ROOT)],
        quiet=True,
    )
    command = Distribution({"ext_modules": modules}).get_command_obj("build_ext")
    command.build_lib = str(OUT)
    command.build_temp = built
    command.ensure_finalized()
    command.run()
    path = Path(command.get_ext_fullpath(name))
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise BuildError(f"{path} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module

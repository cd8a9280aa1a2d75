"""Builds `rdmeta._core` from csrc/; everything declarative is in pyproject.toml."""

from __future__ import annotations

import os
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py

CSRC = Path("csrc")
HEADERS = sorted(CSRC.glob("include/*.h"))


def flags(name: str) -> list[str]:
    """The words of one variable of csrc/flags.mk, which the Makefile includes."""
    text = (CSRC / "flags.mk").read_text(encoding="utf-8")
    match = re.search(rf"^{name} = (.*)$", text, re.MULTILINE)
    if match is None:
        raise SystemExit(f"csrc/flags.mk does not define {name}")
    return match[1].split()


class BuildPy(build_py):
    """Ships the public headers inside the package, for `rdmeta.get_include()`."""

    def run(self) -> None:
        super().run()
        if not self.editable_mode:
            include = Path(self.build_lib, "rdmeta", "include")
            self.mkpath(str(include))
            for header in HEADERS:
                self.copy_file(str(header), str(include / header.name))


class BuildExt(build_ext):
    """Compiles the C files side by side; distutils takes them one by one."""

    def build_extension(self, ext: Extension) -> None:
        compile_all = self.compiler.compile

        def compile_each(sources: list[str], *args: object, **kwargs: object) -> list[str]:
            with ThreadPoolExecutor(self.parallel or os.cpu_count()) as pool:
                jobs = [pool.submit(compile_all, [s], *args, **kwargs) for s in sources]
                return [obj for job in jobs for obj in job.result()]

        self.compiler.compile = compile_each
        super().build_extension(ext)


core = Extension(
    "rdmeta._core",
    sources=["rdmeta/_core.pyx", *(str(path) for path in sorted(CSRC.glob("*.c")))],
    depends=[str(path) for path in (*CSRC.glob("*.h"), *HEADERS, *Path("rdmeta").glob("*.px[di]"))],
    include_dirs=[str(CSRC), str(CSRC / "include")],
    extra_compile_args=flags("RDMETA_CFLAGS"),
    extra_link_args=flags("RDMETA_LDFLAGS"),
)

setup(
    ext_modules=cythonize([core], language_level=3),
    cmdclass={"build_py": BuildPy, "build_ext": BuildExt},
)

"""Builds `rdmeta._core` and librdmeta from csrc/; everything declarative is in pyproject.toml."""

from __future__ import annotations

import os
import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py

CSRC = Path("csrc")
HEADERS = sorted(CSRC.glob("include/*.h"))
SOURCES = [str(path) for path in sorted(CSRC.rglob("*.c"))]


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
    """Compiles the C files side by side, and makes librdmeta of them as well."""

    def build_extension(self, ext: Extension) -> None:
        compile_all = self.compiler.compile
        library: list[str] = []

        def compile_each(sources: list[str], *args: object, **kwargs: object) -> list[str]:
            with ThreadPoolExecutor(self.parallel or os.cpu_count()) as pool:
                jobs = {s: pool.submit(compile_all, [s], *args, **kwargs) for s in sources}
            for source, job in jobs.items():
                if source in SOURCES:
                    library.extend(job.result())
            return [obj for job in jobs.values() for obj in job.result()]

        self.compiler.compile = compile_each
        super().build_extension(ext)
        if not (self.inplace or self.editable_mode):
            self.build_library(library)

    def build_library(self, objects: list[str]) -> None:
        """rdmeta/lib, for `rdmeta.get_library()`: programs without Python link it."""
        version = self.distribution.get_version()
        soname = f"librdmeta.so.{version.partition('.')[0]}"
        lib = Path(self.build_lib, "rdmeta", "lib")
        self.mkpath(str(lib / "pkgconfig"))
        # All at once: added later, an object takes the place of one of the same name.
        (lib / "librdmeta.a").unlink(missing_ok=True)
        self.spawn(["ar", "rcs", str(lib / "librdmeta.a"), *objects])
        if shutil.which("strip"):
            self.spawn(["strip", "--strip-debug", str(lib / "librdmeta.a")])
        linking = [f"-Wl,-soname,{soname}", "-Wl,-z,defs", "-Wl,--strip-debug"]
        self.compiler.link_shared_object(
            objects, str(lib / soname), extra_preargs=linking + flags("RDMETA_LDFLAGS")
        )
        # A wheel holds no symbolic links; to a linker this is as good as one.
        (lib / "librdmeta.so").write_text(f"INPUT(-l:{soname})\n", encoding="utf-8")
        pc = (CSRC / "rdmeta.pc.in").read_text(encoding="utf-8")
        pc = pc.replace("@VERSION@", version)
        (lib / "pkgconfig" / "rdmeta.pc").write_text(pc, encoding="utf-8")


core = Extension(
    "rdmeta._core",
    sources=["rdmeta/_core.pyx", *SOURCES],
    depends=[str(path) for path in (*CSRC.rglob("*.h"), *Path("rdmeta").rglob("*.px[di]"))],
    include_dirs=[str(CSRC), str(CSRC / "include")],
    extra_compile_args=flags("RDMETA_CFLAGS"),
    extra_link_args=flags("RDMETA_LDFLAGS"),
)

setup(
    ext_modules=cythonize([core], language_level=3),
    cmdclass={"build_py": BuildPy, "build_ext": BuildExt},
)

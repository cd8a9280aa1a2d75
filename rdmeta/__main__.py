"""python -m rdmeta: what a compiler needs to know of the installed package.

cc $(python -m rdmeta --cflags) program.c $(python -m rdmeta --libs)
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Sequence

import rdmeta

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what is asked for, on one line; returns 0, or exits with 2 for what cannot be."""
    parser = argparse.ArgumentParser(
        prog="python -m rdmeta",
        description="Compiler flags of programs and extensions that use rdmeta's C API.",
        epilog="Extensions of Python need --cflags alone: they include rdmeta_api.h.",
    )
    parser.add_argument("--version", action="version", version=rdmeta.__version__)
    parser.add_argument("--cflags", action="store_true", help="where the headers are")
    parser.add_argument("--libs", action="store_true", help="how to link librdmeta")
    parser.add_argument("--static", action="store_true", help="with --libs: the static one")
    parser.add_argument(
        "--pkgconfigdir", action="store_true", help="a directory for PKG_CONFIG_PATH"
    )
    asked = parser.parse_args(arguments)
    if asked.static and not asked.libs:
        parser.error("--static goes with --libs")
    if not (asked.cflags or asked.libs or asked.pkgconfigdir):
        parser.error("nothing is asked for; see --help")
    words = [f"-I{rdmeta.get_include()}"] if asked.cflags else []
    try:
        if asked.libs:
            words += _libs(rdmeta.get_library(), asked.static)
        if asked.pkgconfigdir:
            words.append(os.path.join(rdmeta.get_library(), "pkgconfig"))
    except rdmeta.Error as error:
        parser.error(str(error))
    print(shlex.join(words))
    return 0


def _libs(directory: str, static: bool) -> list[str]:
    if static:
        return [os.path.join(directory, "librdmeta.a"), "-pthread"]
    return [f"-L{directory}", f"-Wl,-rpath,{directory}", "-lrdmeta"]


if __name__ == "__main__":
    sys.exit(main())

"""python -m rdmeta: prints the compiler flags that the installed package needs, or is `rdmeta`.

cc $(python -m rdmeta --cflags) program.c $(python -m rdmeta --libs)
python -m rdmeta list -b localhost:9092      # as rdmeta list -b localhost:9092
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Sequence

import rdmeta


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the flags asked for on one line; returns 0, or exits with 2 on a usage error."""
    parser = argparse.ArgumentParser(
        prog="python -m rdmeta",
        description="Print compiler flags for programs and extensions that use rdmeta's C API.",
        epilog="Python extensions need only --cflags: they include rdmeta_api.h.",
    )
    parser.add_argument("--version", action="version", version=rdmeta.__version__)
    parser.add_argument("--cflags", action="store_true", help="print the directory of the headers")
    parser.add_argument("--libs", action="store_true", help="print the flags that link librdmeta")
    parser.add_argument(
        "--static", action="store_true", help="with --libs: link the static library"
    )
    parser.add_argument(
        "--pkgconfigdir", action="store_true", help="print the directory for PKG_CONFIG_PATH"
    )
    if sys.stdout is None:
        parser.error("stdout is closed")
    options = parser.parse_args(arguments)
    if options.static and not options.libs:
        parser.error("--static needs --libs: add --libs")
    if not (options.cflags or options.libs or options.pkgconfigdir):
        parser.error("no option is given: see --help")
    flags = [f"-I{rdmeta.get_include()}"] if options.cflags else []
    try:
        if options.libs:
            flags += _libs(rdmeta.get_library(), options.static)
        if options.pkgconfigdir:
            flags.append(os.path.join(rdmeta.get_library(), "pkgconfig"))
    except rdmeta.Error as error:
        parser.error(str(error))
    print(shlex.join(flags))
    return 0


def _libs(directory: str, static: bool) -> list[str]:
    if static:
        return [os.path.join(directory, "librdmeta.a"), "-pthread"]
    return [f"-L{directory}", f"-Wl,-rpath,{directory}", "-lrdmeta"]


def _is_command(arguments: Sequence[str]) -> bool:
    """Returns whether the arguments are those of the command: a word, and no option, is first."""
    return bool(arguments) and not arguments[0].startswith("-")


if __name__ == "__main__":
    if _is_command(sys.argv[1:]):
        from rdmeta import cli

        cli.main()
    sys.exit(main())

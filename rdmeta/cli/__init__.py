"""The command `rdmeta`: tables of a Kafka cluster's metadata for a terminal, a pipe or a program.

Each file of a command is a thin layer over the public API. The extra `cli` has what it needs.
"""

from __future__ import annotations

import gc
import os
import sys
from typing import NoReturn

from rdmeta._version import __version__

__all__ = ["main"]


def main() -> NoReturn:
    """Runs the command line of this process and exits with the command's code; docs/cli.md.

    Garbage is not collected in imports, nor in a command that ends by itself: it would take more
    time than it is worth. Other commands switch the collector on.
    """
    if sys.argv[1:] == ["--version"] and _has_said_version():
        sys.exit(0)
    gc.disable()
    try:
        from rdmeta.cli.app import run
    except ModuleNotFoundError as error:
        if error.name != "click":
            raise
        from rdmeta.errors import install_advice

        advice = f"the command needs the extra cli: {install_advice('cli')}"
        print(f"rdmeta: {advice}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
    code = run(sys.argv[1:])
    if "rdmeta.pipeline.store" in sys.modules:
        from rdmeta.pipeline.store import is_asking

        if is_asking():
            os._exit(code)
    if "duckdb" not in sys.modules:  # DuckDB prints all that the exit does not free
        gc.freeze()  # the exit does not search for garbage either
    sys.exit(code)


def _has_said_version() -> bool:
    """Prints the version, which needs no package; returns False where stdout cannot be written."""
    try:
        return os.write(1, f"rdmeta {__version__}\n".encode()) > 0
    except OSError:
        return False  # run() tells it as for any other output

"""The command `rdmeta`: tables of a Kafka cluster's metadata for a terminal, a pipe or a program.

Each file of a command is a thin layer over the public API. The extra `cli` has what it needs.
"""

from __future__ import annotations

import os
import sys
from typing import NoReturn

from rdmeta._version import __version__

__all__ = ["main"]


def main() -> NoReturn:
    """Runs the command line of this process and exits with the command's code; docs/cli.md."""
    if sys.argv[1:] == ["--version"] and _has_said_version():
        sys.exit(0)
    try:
        from rdmeta.cli.app import run
    except ModuleNotFoundError as error:
        if error.name != "click":
            raise
        advice = "the command needs the extra cli: pip install 'rdmeta[cli]'"
        print(f"rdmeta: {advice}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
    sys.exit(run(sys.argv[1:]))


def _has_said_version() -> bool:
    """Prints the version, which needs no package; returns False where stdout cannot be written."""
    try:
        return os.write(1, f"rdmeta {__version__}\n".encode()) > 0
    except OSError:
        return False  # run() tells it as for any other output

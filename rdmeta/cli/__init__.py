"""The command `rdmeta`: tables of a Kafka cluster's metadata for a terminal, a pipe or a program.

Each file of a command is a thin layer over the public API. The extra `cli` has what it needs.
"""

from __future__ import annotations

import sys
from typing import NoReturn

from rdmeta._version import __version__

__all__ = ["main"]


def main() -> NoReturn:
    """Runs the command line of this process and exits with the command's code; docs/cli.md."""
    if sys.argv[1:] == ["--version"]:  # this needs no package, and should be fast
        sys.exit(print(f"rdmeta {__version__}"))
    try:
        from rdmeta.cli.app import run
    except ModuleNotFoundError as error:
        if error.name != "click":
            raise
        advice = "the command needs the extra cli: pip install 'rdmeta[cli]'"
        print(f"rdmeta: {advice}", file=sys.stderr)
        sys.exit(2)
    sys.exit(run(sys.argv[1:]))

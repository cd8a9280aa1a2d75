"""Measures the client beside its peers: `python -m bench.client PART`, used by bench.run.

The brokers, the proxy and the frames are those of the tests.
"""

import sys
from importlib.util import find_spec

from bench.build import ROOT

sys.path += [str(ROOT / "tests" / folder) for folder in ("support", "net")]


def lacks(module: str) -> str | None:
    """Returns the reason if a peer's module is not installed, else None."""
    return None if find_spec(module) else f"{module} is not installed"

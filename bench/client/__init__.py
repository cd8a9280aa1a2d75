"""Measures the client beside its peers: `python -m bench.client PART`, used by bench.run.

The brokers, the proxy and the frames are those of the tests.
"""

import sys

from bench.build import ROOT

sys.path += [str(ROOT / "tests" / folder) for folder in ("support", "net")]

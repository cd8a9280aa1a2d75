"""Measures the command `rdmeta`, and metrics: `python -m bench.cli PART`, used by bench.run."""

import bench.client  # puts the folders of the tests' tools on the path

assert bench.client

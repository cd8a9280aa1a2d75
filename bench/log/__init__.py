"""Measures logs of KRaft in Python and in the command: `python -m bench.log PART`."""

import bench.client  # puts the folders of the tests' tools on the path

assert bench.client

"""The benches of the pipeline on Spark, beside plain processes and other engines."""

import bench.client  # puts the folders of the tests' tools on the path

assert bench.client

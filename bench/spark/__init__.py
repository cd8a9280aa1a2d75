"""The benches of the pipeline on Spark, beside plain processes and other engines."""

"""Measures rdmeta: `python -m bench` runs every figure, `pytest bench` the Python suites."""

"""Measures rdmeta's peers beside it: `python -m bench.peers`; README.md here says how."""

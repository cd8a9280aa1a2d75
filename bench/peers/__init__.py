"""Measures other clients beside rdmeta: `python -m bench.peers`; README.md here says how."""

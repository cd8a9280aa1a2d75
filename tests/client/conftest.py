"""Fixtures of the client's tests: both shells, and brokers of canned answers."""

from client_fixtures import brokers, make

__all__ = ["brokers", "make"]

# cython: language_level=3, binding=False
"""The floor of a Python call: the arguments of `leader`, compiled as rdmeta._core, and no work."""


cdef class Noop:
    """A `MetadataCache` that would know a leader without looking."""

    def leader(self, topic, partition, default=..., /):
        """Returns `partition`."""
        return partition


cdef class NoopHandle:
    """A `TopicHandle` that would know a leader without looking."""

    def leader(self, partition, default=..., /):
        """Returns `partition`."""
        return partition

# cython: language_level=3, binding=False
"""The floor of a Python call: `leader`'s arguments, compiled as `rdmeta._core` is, and no work."""


cdef class Noop:
    """What `MetadataCache` would be if a leader were known without looking."""

    def leader(self, topic, partition, default=..., /):
        """`partition` back again."""
        return partition


cdef class NoopHandle:
    """The same of a `TopicHandle`."""

    def leader(self, partition, default=..., /):
        """`partition` back again."""
        return partition

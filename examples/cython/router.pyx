cimport rdmeta
from libc.stdint cimport int32_t, int64_t

rdmeta.rdmeta_import()  # once: finds the C code inside rdmeta


cdef class Router:
    """Counts the records that a broker gets: topic by name, partitions in a buffer, no GIL."""

    cdef rdmeta.rdmeta_reader_t *reader

    def __cinit__(self, cache):
        self.reader = rdmeta.rdmeta_reader_from_object(cache, 0)  # of the live cache

    def __dealloc__(self):
        rdmeta.rdmeta_reader_destroy(self.reader)

    def count(self, bytes topic, const int32_t[::1] partitions, int32_t broker):
        cdef const char *name = topic
        cdef size_t size = len(topic)
        cdef int64_t now = rdmeta.rdmeta_now().mono_us
        cdef Py_ssize_t i
        cdef Py_ssize_t n = 0
        with nogil:
            for i in range(partitions.shape[0]):
                n += rdmeta.rdmeta_leader(self.reader, name, size, partitions[i], now) == broker
        return n

# cython: language_level=3, binding=False, boundscheck=False
"""Lookups in a loop without the GIL, as an extension has them: `cimport rdmeta`."""

from libc.stdint cimport int32_t, int64_t
from time import thread_time_ns

cimport rdmeta

rdmeta.rdmeta_import()


def measure(cache, list topics, int64_t queries):
    """Returns {"nogil_handle": ns, "nogil_name": ns} per lookup, of at most eight hot topics."""
    cdef rdmeta.rdmeta_cache_t *c = rdmeta.rdmeta_cache_from_object(cache)
    cdef rdmeta.rdmeta_reader_t *reader = rdmeta.rdmeta_reader_new(c, 0)
    cdef rdmeta.rdmeta_handle_t *handles[8]
    cdef const char *names[8]
    cdef size_t lens[8]
    cdef int64_t now = rdmeta.rdmeta_now().mono_us
    cdef int64_t by_handle = 0, by_name = 0, i
    cdef int n = len(topics), k
    keep = [topic.encode() for topic in topics]
    for k in range(n):
        names[k] = keep[k]
        lens[k] = len(keep[k])
        handles[k] = rdmeta.rdmeta_resolve(c, names[k], lens[k])
    begin = thread_time_ns()
    with nogil:
        for i in range(queries):
            by_handle += rdmeta.rdmeta_handle_leader(reader, handles[i & 7], <int32_t> (i % 10),
                                                     now)
    between = thread_time_ns()
    with nogil:
        for i in range(queries):
            by_name += rdmeta.rdmeta_leader(reader, names[i & 7], lens[i & 7], <int32_t> (i % 10),
                                            now)
    end = thread_time_ns()
    for k in range(n):
        rdmeta.rdmeta_handle_release(handles[k])
    rdmeta.rdmeta_reader_destroy(reader)
    if by_handle != by_name or n != 8:
        raise RuntimeError("handles and names find different leaders")
    return {"nogil_handle": (between - begin) / queries, "nogil_name": (end - between) / queries}

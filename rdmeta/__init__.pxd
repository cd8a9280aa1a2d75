"""`cimport rdmeta`: the live caches of this process for other extensions, through the table.

    cimport rdmeta
    rdmeta.rdmeta_import()                # once, when the module is imported; ImportError

    cdef rdmeta.rdmeta_reader_t *reader = rdmeta.rdmeta_reader_from_object(a_cache_or_image, 0)
    with nogil:
        leader = rdmeta.rdmeta_leader(reader, name, size, 0, rdmeta.rdmeta_now().mono_us)

Every function of the public headers is here under its own name, with nogil. Compile with
`include_dirs=[rdmeta.get_include()]`; nothing is linked.
"""

from libc.stdint cimport int32_t

from rdmeta._capi cimport *


cdef extern from "rdmeta_api.h":
    int rdmeta_import() except -1
    rdmeta_cache_t *rdmeta_cache_from_object(object cache) except NULL
    rdmeta_reader_t *rdmeta_reader_from_object(object source, int32_t flags) except NULL
    rdmeta_time_t rdmeta_now() noexcept nogil

"""`cimport rdmeta`: other extensions use the live caches of this process through the C API table.

    cimport rdmeta
    rdmeta.rdmeta_import()                # once, when the module is imported; raises ImportError

    cdef rdmeta.rdmeta_reader_t *reader = rdmeta.rdmeta_reader_from_object(a_cache_or_image, 0)
    with nogil:
        leader = rdmeta.rdmeta_leader(reader, name, size, 0, rdmeta.rdmeta_now().mono_us)

Every function of the public headers is declared here under its own name, and needs no GIL. Compile
the extension with `include_dirs=[rdmeta.get_include()]`; it links no library.

rdmeta_cache_from_object() and rdmeta_reader_from_object() need the GIL and raise an exception on
NULL. The caller releases what they return, with rdmeta_cache_unref() or rdmeta_reader_destroy().
"""

from libc.stdint cimport int32_t

from rdmeta._capi cimport *


cdef extern from "rdmeta_api.h":
    int rdmeta_import() except -1
    rdmeta_cache_t *rdmeta_cache_from_object(object cache) except NULL
    rdmeta_reader_t *rdmeta_reader_from_object(object source, int32_t flags) except NULL
    rdmeta_time_t rdmeta_now() noexcept nogil

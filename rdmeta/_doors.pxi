# How other extensions reach the one copy of the C code, and a cache. Included by _core.pyx.

from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_New


cdef extern from *:
    """
    #define RDMETA_API_TABLE_ONLY
    #include "rdmeta_api.h"
    #define RDMETA_PY_ENTRY(name) name,
    static const rdmeta_api_t rdmeta_py_table = {
            RDMETA_ABI_VERSION >> 16,
            sizeof(rdmeta_api_t),
            RDMETA_API_CALLS(RDMETA_PY_ENTRY)
    };
    #undef RDMETA_PY_ENTRY
    """
    const int rdmeta_py_table


_C_API = PyCapsule_New(<void *> &rdmeta_py_table, "rdmeta._core._C_API", NULL)


cdef object cache_capsule(rdmeta_cache_t *cache):
    """A capsule with a reference of its own."""
    capsule = PyCapsule_New(cache, "rdmeta.cache", cache_capsule_end)
    rdmeta_cache_ref(cache)
    return capsule


cdef void cache_capsule_end(object capsule) noexcept:
    cdef void *cache = PyCapsule_GetPointer(capsule, "rdmeta.cache")
    with nogil:
        rdmeta_cache_unref(<rdmeta_cache_t *> cache)

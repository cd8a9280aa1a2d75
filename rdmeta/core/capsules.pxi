# PyCapsules: the table of C functions, and one per cache, image or attached file, for other
# extensions. Included by _core.pyx.

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
    """Returns a capsule that owns a reference to the cache."""
    capsule = PyCapsule_New(cache, "rdmeta.cache", cache_capsule_end)
    rdmeta_cache_ref(cache)
    return capsule


cdef void cache_capsule_end(object capsule) noexcept:
    cdef void *cache = PyCapsule_GetPointer(capsule, "rdmeta.cache")
    with nogil:
        rdmeta_cache_unref(<rdmeta_cache_t *> cache)


cdef object image_capsule(rdmeta_image_t *image):
    """Returns a capsule that owns a reference to the image."""
    capsule = PyCapsule_New(image, "rdmeta.image", image_capsule_end)
    rdmeta_image_ref(image)
    return capsule


cdef void image_capsule_end(object capsule) noexcept:
    cdef void *image = PyCapsule_GetPointer(capsule, "rdmeta.image")
    with nogil:
        rdmeta_image_unref(<rdmeta_image_t *> image)


cdef object attach_capsule(Attached attached):
    """Returns a capsule of the object's rdmeta_attach_t; it keeps the object alive."""
    capsule = PyCapsule_New(attached.attach, "rdmeta.attach", attach_capsule_end)
    PyCapsule_SetContext(capsule, <void *> attached)
    Py_INCREF(attached)
    return capsule


cdef void attach_capsule_end(object capsule) noexcept:
    Py_DECREF(<object> PyCapsule_GetContext(capsule))


def _leaders(size_t reader, topics, partitions, out, mono_us, /):
    """Calls rdmeta_leaders() with the rdmeta_reader_t at the address `reader`; returns `out`.

    rdmeta.ffi.leaders() calls it. `mono_us` is the lookup's time in microseconds. `out` and the
    errors are those of Reading.leaders(). It releases the GIL.
    """
    cdef int64_t now = integer(mono_us, "mono_us", INT64_MIN, INT64_MAX)
    cdef Names names = names_of(topics)
    cdef Numbers numbers = Numbers(partitions, names.n)
    cdef Py_buffer data
    if out is None:
        out = array("i", bytes(<Py_ssize_t> (4 * names.n)))
    get_int32(out, PyBUF_WRITABLE, names.n, &data)
    with nogil:
        rdmeta_leaders(<rdmeta_reader_t *> reader, names.items, numbers.items, names.n, now,
                       <int32_t *> data.buf)
    PyBuffer_Release(&data)
    return out

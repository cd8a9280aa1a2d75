/*
 * rdmeta_api.h: rdmeta.h for extensions of Python. Include Python.h first, then
 * this header instead of rdmeta.h.
 *
 * A Python process has one copy of the C code, inside rdmeta._core, and an
 * extension links nothing. It calls that code through a table of functions,
 * which rdmeta_import() finds once. Calls such as rdmeta_leader(...) are
 * written as usual: macros route them through the table. The address of a
 * function is rdmeta_api->rdmeta_leader.
 *
 *      extension A ──┐             rdmeta._core
 *      Cython    B ──┼─ rdmeta_api ──► { major, size, abi_version, ... }
 *      cffi      C ──┘                                   │ one code,
 *                                                        ▼ one live cache
 *
 * The table only grows, at its end. An extension needs the functions that its
 * headers listed when it was compiled. It works with every later rdmeta of the
 * same major version, and with an older one that has as many functions.
 *
 * Threads: rdmeta_import() and the ..._from_object() functions need the GIL; a
 * build without a GIL switches it on for rdmeta. No other call here needs it.
 * Release it for calls that may wait: writers, waits, walks, new readers.
 */
#ifndef RDMETA_API_H
#define RDMETA_API_H

#include "rdmeta.h"

#if defined(Py_PYTHON_H) && !defined(RDMETA_API_TABLE_ONLY)
#define RDMETA_API_ROUTED
#endif
#include "rdmeta_api_calls.h"

#ifdef __cplusplus
#define RDMETA_API_MEMBER(name) decltype(::name) *name;
#else
#define RDMETA_API_MEMBER(name) __typeof__(name) *name;
#endif

/** The table that the capsule "rdmeta._core._C_API" points to. Never freed. */
typedef struct rdmeta_api {
        uint32_t abi_major; /**< RDMETA_ABI_VERSION >> 16 */
        uint32_t size;      /**< bytes of this table, with these members */
        RDMETA_API_CALLS(RDMETA_API_MEMBER)
} rdmeta_api_t;

#undef RDMETA_API_MEMBER

#ifdef RDMETA_API_ROUTED
#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The table; NULL before rdmeta_import(). Each extension has one, however many
 *  of its files include this header. */
__attribute__((weak, visibility("hidden"))) const rdmeta_api_t *rdmeta_api;

/** Finds the table. Call it when the module is imported. Returns 0, or -1 with
 *  an exception. It is an ImportError if there is no rdmeta, or if its
 *  table has another major version or fewer functions than this header.
 *  Threads: with the GIL. */
static inline int rdmeta_import(void) {
        const rdmeta_api_t *found = (const rdmeta_api_t *)PyCapsule_Import(
                "rdmeta._core._C_API", 0);
        uint32_t has;

        if (!found)
                return -1;
        has = found->abi_major << 16;
        if (found->abi_major == RDMETA_ABI_VERSION >> 16) {
                if (found->size >= sizeof(rdmeta_api_t)) {
                        rdmeta_api = found;
                        return 0;
                }
                has = (found->rdmeta_abi_version)();
        }
        PyErr_Format(PyExc_ImportError,
                     "rdmeta here has C API %u.%u, and this extension was "
                     "compiled against %u.%u: %s", has >> 16, has & 0xffff,
                     RDMETA_ABI_VERSION >> 16, RDMETA_ABI_VERSION & 0xffff,
                     has < RDMETA_ABI_VERSION
                             ? "install a later rdmeta"
                             : "compile it against this rdmeta");
        return -1;
}

/* Returns the result of object.capsule(), or the object if it is a capsule.
 * Returns NULL without an exception if it is neither. */
static inline PyObject *rdmeta_capsule_of(PyObject *object) {
        PyObject *capsule = object;

        if (!PyCapsule_CheckExact(object))
                capsule = PyObject_CallMethod(object, "capsule", NULL);
        else
                Py_INCREF(object);
        if (!capsule && PyErr_ExceptionMatches(PyExc_AttributeError))
                PyErr_Clear();
        return capsule;
}

static inline void *rdmeta_capsule_pointer(PyObject *capsule,
                                           const char *name) {
        if (!capsule || !PyCapsule_IsValid(capsule, name))
                return NULL;
        return PyCapsule_GetPointer(capsule, name);
}

static inline void rdmeta_capsule_wrong(PyObject *object, const char *wanted) {
        if (!PyErr_Occurred())
                PyErr_Format(PyExc_TypeError, "expected %s, not %.200s",
                             wanted, Py_TYPE(object)->tp_name);
}

/** Returns the cache of a rdmeta.MetadataCache, or of the capsule that its
 *  capsule() returned: a new reference for rdmeta_cache_unref(), which does not
 *  need the object. Returns NULL with an exception (TypeError) for any other
 *  object. Threads: with the GIL. */
static inline rdmeta_cache_t *rdmeta_cache_from_object(PyObject *object) {
        PyObject *capsule = rdmeta_capsule_of(object);
        rdmeta_cache_t *cache = (rdmeta_cache_t *)rdmeta_capsule_pointer(
                capsule, "rdmeta.cache");

        if (cache)
                rdmeta_cache_ref(cache);
        else
                rdmeta_capsule_wrong(object, "a rdmeta.MetadataCache");
        Py_XDECREF(capsule);
        return cache;
}

/** Returns a new reader of a rdmeta.MetadataCache, an Image, the result of
 *  rdmeta.attach(), or a capsule that their capsule() returned. It is for
 *  rdmeta_reader_destroy() and does not need the object. `flags`:
 *  RDMETA_ALLOW_STALE or 0. Returns NULL with an exception: TypeError or
 *  MemoryError. Threads: with the GIL, which it releases while it waits. */
static inline rdmeta_reader_t *rdmeta_reader_from_object(PyObject *object,
                                                         int32_t flags) {
        PyObject *capsule = rdmeta_capsule_of(object);
        void *cache  = rdmeta_capsule_pointer(capsule, "rdmeta.cache");
        void *image  = rdmeta_capsule_pointer(capsule, "rdmeta.image");
        void *attach = rdmeta_capsule_pointer(capsule, "rdmeta.attach");
        rdmeta_reader_t *reader = NULL;

        if (!cache && !image && !attach) {
                rdmeta_capsule_wrong(object, "a cache or an image of rdmeta's");
        } else {
                Py_BEGIN_ALLOW_THREADS
                if (cache)
                        reader = rdmeta_reader_new((rdmeta_cache_t *)cache,
                                                   flags);
                else if (image)
                        reader = rdmeta_image_reader((rdmeta_image_t *)image,
                                                     flags);
                else
                        reader = rdmeta_attach_reader((rdmeta_attach_t *)attach,
                                                      flags);
                Py_END_ALLOW_THREADS
                if (!reader)
                        PyErr_NoMemory();
        }
        Py_XDECREF(capsule);
        return reader;
}

/** Returns the time by the clocks that a MetadataCache made without `clock=`
 *  uses: CLOCK_MONOTONIC and CLOCK_REALTIME. These are the coarse ones: late by
 *  a tick of 1-4 ms, and five times as cheap. Cannot fail. Threads: any, no
 *  GIL. */
static inline rdmeta_time_t rdmeta_now(void) {
#ifdef CLOCK_MONOTONIC_COARSE
        const clockid_t clocks[] = {CLOCK_MONOTONIC_COARSE,
                                    CLOCK_REALTIME_COARSE};
#else
        const clockid_t clocks[] = {CLOCK_MONOTONIC, CLOCK_REALTIME};
#endif
        struct timespec mono, wall;
        rdmeta_time_t now;

        clock_gettime(clocks[0], &mono);
        clock_gettime(clocks[1], &wall);
        now.mono_us = (int64_t)mono.tv_sec * 1000000 + mono.tv_nsec / 1000;
        now.wall_us = (int64_t)wall.tv_sec * 1000000 + wall.tv_nsec / 1000;
        return now;
}

#ifdef __cplusplus
}
#endif
#endif /* RDMETA_API_ROUTED */

#endif /* RDMETA_API_H */

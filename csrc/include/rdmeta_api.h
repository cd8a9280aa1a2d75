/*
 * rdmeta_api.h: rdmeta.h for extensions of Python. Include Python.h first, and
 * this in place of rdmeta.h.
 *
 * In a Python process there is one copy of this code, inside rdmeta._core, and
 * nothing is linked: extensions call it through a table of functions, found
 * once by rdmeta_import(). rdmeta_leader(...) and all others are then written
 * as ever; macros route them through the table. (To take a function's address:
 * rdmeta_api->rdmeta_leader.)
 *
 *      extension A ──┐             rdmeta._core
 *      Cython    B ──┼─ rdmeta_api ──► { major, size, abi_version, ... }
 *      cffi      C ──┘                                   │ one code,
 *                                                        ▼ one live cache
 *
 * The table only grows, at its end. An extension needs the functions that its
 * headers knew when it was compiled: it goes on with every later rdmeta of the
 * same major version, and with an older one if that has as many functions.
 *
 * Threads: rdmeta_import() and the ..._from_object() need the GIL, which a
 * build without one switches on for rdmeta. Nothing else here does: let go of
 * it for calls that may wait - writers, waits, walks, new readers.
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

/** What the capsule "rdmeta._core._C_API" points to. Lives for ever. */
typedef struct rdmeta_api {
        uint32_t abi_major; /**< RDMETA_ABI_VERSION >> 16 */
        uint32_t size;      /**< bytes of this table, these two included */
        RDMETA_API_CALLS(RDMETA_API_MEMBER)
} rdmeta_api_t;

#undef RDMETA_API_MEMBER

#ifdef RDMETA_API_ROUTED
#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The table; NULL before rdmeta_import(). One for each extension, however
 *  many of its files include this. */
__attribute__((weak, visibility("hidden"))) const rdmeta_api_t *rdmeta_api;

/** Find the table: call it when the module is imported. 0; or -1 with an
 *  exception: ImportError if there is no rdmeta, or one with a table of another
 *  major version, or a shorter one than was compiled against. */
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

/* What object.capsule() gives, or the object if it is a capsule; NULL without
 * an exception: neither. */
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

/** The cache of a rdmeta.MetadataCache, or of what its capsule() returned; a
 *  new reference, for rdmeta_cache_unref(), good without the object as well.
 *  NULL with an exception: TypeError for any other object. */
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

/** A new reader of a rdmeta.MetadataCache, an Image or what rdmeta.attach()
 *  gave, or of what their capsule() returned; for rdmeta_reader_destroy(), and
 *  good without the object as well. `flags`: RDMETA_ALLOW_STALE or 0. Lets go
 *  of the GIL. NULL with an exception: TypeError, MemoryError. */
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

/** The clocks that a MetadataCache made without `clock=` gives to its calls:
 *  CLOCK_MONOTONIC, here the coarse one (late by a tick of 1-4 ms and five
 *  times as cheap), and CLOCK_REALTIME. Any thread, no GIL, cannot fail. */
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

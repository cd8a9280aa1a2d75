#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "client.h"

/* apply(cache, response, api_version) -> version of the cache afterwards. The
 * other file, client.c, imported the table of functions. */
PyObject *client_apply(PyObject *module, PyObject *args) {
        rdmeta_request_t asked = {.asked = RDMETA_ASKED_ALL, .broker = -1,
                                  .reason = {"an extension asked", 18}};
        rdmeta_cache_t *cache;
        rdmeta_applied_t applied;
        rdmeta_err_t err;
        const char *bytes;
        Py_ssize_t len;
        PyObject *object;
        int version;

        (void)module;
        if (!PyArg_ParseTuple(args, "Oy#i", &object, &bytes, &len, &version))
                return NULL;
        cache = rdmeta_cache_from_object(object);
        if (!cache)
                return NULL;
        Py_BEGIN_ALLOW_THREADS
        err = rdmeta_cache_apply(cache, bytes, (size_t)len, (int16_t)version,
                                 &asked, rdmeta_now(), &applied);
        rdmeta_cache_unref(cache);
        Py_END_ALLOW_THREADS
        if (err)
                return PyErr_Format(PyExc_ValueError, "%s",
                                    rdmeta_err_name(err));
        return PyLong_FromUnsignedLongLong(applied.version);
}

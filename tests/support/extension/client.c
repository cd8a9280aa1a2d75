/* An extension module as other projects write them, for test_extension.py: two
 * files include rdmeta_api.h, and no library of rdmeta is linked. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "client.h"

/* leaders(source, topic, n) -> [leader, ...]: looks up partitions 0 .. n - 1
 * without the GIL, with one reader. */
static PyObject *leaders(PyObject *module, PyObject *args) {
        rdmeta_reader_t *reader;
        int32_t found[64];
        const char *topic;
        Py_ssize_t len;
        int i, n;
        PyObject *object, *list;

        (void)module;
        if (!PyArg_ParseTuple(args, "Os#i", &object, &topic, &len, &n))
                return NULL;
        reader = rdmeta_reader_from_object(object, 0);
        if (!reader)
                return NULL;
        Py_BEGIN_ALLOW_THREADS
        for (i = 0; i < n && i < 64; i++)
                found[i] = rdmeta_leader(reader, topic, (size_t)len, i,
                                         rdmeta_now().mono_us);
        rdmeta_reader_destroy(reader);
        Py_END_ALLOW_THREADS
        list = PyList_New(0);
        for (i = 0; list && i < n && i < 64; i++) {
                PyObject *value = PyLong_FromLong(found[i]);
                if (!value || PyList_Append(list, value))
                        Py_CLEAR(list);
                Py_XDECREF(value);
        }
        return list;
}

static PyObject *imported(PyObject *module, PyObject *none) {
        (void)module;
        (void)none;
        if (rdmeta_import())
                return NULL;
        Py_RETURN_TRUE;
}

static PyMethodDef methods[] = {
        {"leaders", leaders, METH_VARARGS, NULL},
        {"apply", client_apply, METH_VARARGS, NULL},
        {"imported", imported, METH_NOARGS, NULL},
        {NULL, NULL, 0, NULL}};

static struct PyModuleDef definition = {
        PyModuleDef_HEAD_INIT, "client", NULL, -1, methods,
        NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_client(void) {
        if (rdmeta_import())
                return NULL;
        return PyModule_Create(&definition);
}

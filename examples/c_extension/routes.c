#include <Python.h>
#include <rdmeta_api.h> /* instead of rdmeta.h */

/* Returns the number of partitions that a broker leads:
 * count_led(cache, topic, broker). */
static PyObject *count_led(PyObject *self, PyObject *args) {
        PyObject *cache;
        const char *topic;
        int broker, leader, partition = 0, led = 0;

        (void)self;
        if (!PyArg_ParseTuple(args, "Osi", &cache, &topic, &broker))
                return NULL;
        rdmeta_reader_t *r = rdmeta_reader_from_object(cache, 0);
        if (!r)
                return NULL;
        Py_BEGIN_ALLOW_THREADS /* lookups take no lock and need no GIL */
        int64_t now = rdmeta_now().mono_us;
        while ((leader = rdmeta_leader(r, topic, strlen(topic), partition,
                                       now)) > RDMETA_NOT_CACHED) {
                led += leader == broker;
                partition++;
        }
        rdmeta_reader_destroy(r);
        Py_END_ALLOW_THREADS
        return PyLong_FromLong(led);
}

static PyMethodDef methods[] = {
        {"count_led", count_led, METH_VARARGS, NULL}, {0}};
static struct PyModuleDef def = {
        PyModuleDef_HEAD_INIT, "routes", NULL, -1, methods};

PyMODINIT_FUNC PyInit_routes(void) {
        return rdmeta_import() ? NULL : PyModule_Create(&def);
}

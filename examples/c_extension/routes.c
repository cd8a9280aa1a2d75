#include <Python.h>
#include <rdmeta_api.h> /* in place of rdmeta.h */

/* count_led(cache, topic, broker) -> how many partitions the broker leads */
static PyObject *count_led(PyObject *self, PyObject *args) {
        PyObject *object;
        const char *topic;
        int broker, leader, partition = 0, led = 0;

        (void)self;
        if (!PyArg_ParseTuple(args, "Osi", &object, &topic, &broker))
                return NULL;
        rdmeta_reader_t *r;
        rdmeta_cache_t *cache = rdmeta_cache_from_object(object);
        if (!cache)
                return NULL;
        Py_BEGIN_ALLOW_THREADS /* readers take no lock and need no GIL */
        r = rdmeta_reader_new(cache, 0);
        int64_t now = rdmeta_now().mono_us;
        while (r && (leader = rdmeta_leader(r, topic, strlen(topic), partition,
                                            now)) > RDMETA_NOT_CACHED) {
                led += leader == broker;
                partition++;
        }
        rdmeta_reader_destroy(r);
        rdmeta_cache_unref(cache);
        Py_END_ALLOW_THREADS
        return r ? PyLong_FromLong(led) : PyErr_NoMemory();
}

static PyMethodDef methods[] = {
        {"count_led", count_led, METH_VARARGS, NULL}, {0}};
static struct PyModuleDef def = {
        PyModuleDef_HEAD_INIT, "routes", NULL, -1, methods};

PyMODINIT_FUNC PyInit_routes(void) {
        return rdmeta_import() ? NULL : PyModule_Create(&def);
}

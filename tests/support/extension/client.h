#ifndef CLIENT_H
#define CLIENT_H

#include <rdmeta_api.h>

PyObject *client_apply(PyObject *module, PyObject *args);

#endif

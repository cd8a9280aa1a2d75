#ifndef DOORS_H
#define DOORS_H

#include <rdmeta_api.h>

PyObject *doors_apply(PyObject *module, PyObject *args);

#endif

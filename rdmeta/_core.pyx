# cython: language_level=3, binding=False, embedsignature=True, embedsignature.format=clinic
# cython: boundscheck=False, wraparound=False, cdivision=True
# Threads share readers under one GIL. So free-threaded builds of Python switch the GIL on for this
# module, and the import below fails where a user forces it off. Sub-interpreters cannot import this
# module, since its types belong to one interpreter.
# cython: freethreading_compatible=False, subinterpreters_compatible=no
"""Converts between Python's values and the C core; algorithms and policy are in csrc/."""

from cpython.buffer cimport (PyBUF_C_CONTIGUOUS, PyBUF_FORMAT, PyBUF_SIMPLE, PyBUF_WRITABLE,
                             PyBuffer_Release, PyObject_CheckBuffer, PyObject_GetBuffer)
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.exc cimport PyErr_CheckSignals
from cpython.long cimport PyLong_AsLongLongAndOverflow
from cpython.mem cimport PyMem_Free, PyMem_Malloc, PyMem_Realloc
from cpython.number cimport PyIndex_Check
from cpython.pycapsule cimport (PyCapsule_Destructor, PyCapsule_GetContext, PyCapsule_GetPointer,
                                PyCapsule_New, PyCapsule_SetContext)
from cpython.ref cimport Py_DECREF, Py_INCREF, PyObject
from cpython.unicode cimport PyUnicode_AsEncodedString, PyUnicode_DecodeUTF8
from libc.errno cimport errno
from libc.stdint cimport (INT16_MAX, INT16_MIN, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN,
                          intptr_t, uint16_t)
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcmp, memcpy, memset
from posix.time cimport CLOCK_MONOTONIC, CLOCK_REALTIME
from posix.unistd cimport getpid, write

cimport cython

import re
import sys
import uuid
from array import array
from binascii import a2b_base64, b2a_base64
from datetime import datetime, timedelta, timezone
from operator import index
from os import fsdecode, fsencode, strerror
from os.path import abspath
from weakref import WeakValueDictionary

from rdmeta.core import waits
from rdmeta._html import arrow_html, html_text
from rdmeta.core.publisher import Publisher, permissions
from rdmeta.errors import ArgumentError, Error, MissingExtraError, from_code
from rdmeta.model import (ALL, Advice, Applied, Broker, Change, Changes, Due, DueReason, Health,
                          Partition, Request, Topic, TopicPartition, Version)

# PYTHON_GIL=0 silently overrides the declaration above. Two threads could then take the same reader
# and free its memory twice.
if hasattr(sys, "_is_gil_enabled") and not sys._is_gil_enabled():
    raise ImportError("rdmeta needs the GIL: start Python without PYTHON_GIL=0 and -X gil=0",
                      name="rdmeta._core")

include "core/values.pxi"
include "core/arrow_columns.pxi"
include "core/leaders.pxi"
include "core/keys.pxi"
include "core/walk.pxi"
include "core/reader_pool.pxi"
include "core/arrow_tables.pxi"
include "core/changes.pxi"
include "core/fold.pxi"
include "core/kraft.pxi"
include "core/wire.pxi"
include "core/lookups.pxi"
include "core/image.pxi"
include "core/attached.pxi"
include "core/cache.pxi"
include "core/capsules.pxi"
include "core/handle.pxi"

cdef int LEADER_NOT_AVAILABLE = 5  # Kafka's code

NO_LEADER = RDMETA_NO_LEADER
NOT_CACHED = RDMETA_NOT_CACHED
WAITING = RDMETA_WAITING
STALE = RDMETA_STALE
UNKNOWN_TOPIC = RDMETA_UNKNOWN_TOPIC
NO_PARTITION = RDMETA_NO_PARTITION
DENIED = RDMETA_DENIED
INVALID = RDMETA_INVALID
METADATA_MIN_VERSION = RDMETA_METADATA_MIN_VERSION
METADATA_MAX_VERSION = RDMETA_METADATA_MAX_VERSION
ABI_VERSION = rdmeta_abi_version()


def code_name(code):
    """Returns the C core's name of a Kafka or local error code, such as "RDMETA_STALE".

    TypeError, ValueError.
    """
    return rdmeta_err_name(int32(code, "code")).decode("ascii")


@cython.final
cdef class Watch:
    """Writes the version, eight bytes, to the descriptor `fd` after every change of a cache.

    With `answers` it writes after every applied answer, whether or not the answer changed anything.
    `fd` must not block. MemoryError.
    """

    cdef rdmeta_cache_t *cache
    cdef rdmeta_watch_t *watch

    def __cinit__(self, MetadataCache cache not None, int fd, bint answers=False):
        cdef void *opaque = <void *> <intptr_t> fd
        self.cache = rdmeta_cache_ref(cache.cache)
        with nogil:  # a writer may hold the lock that this takes
            if answers:
                self.watch = rdmeta_watch_answers(self.cache, watch_signal, opaque)
            else:
                self.watch = rdmeta_watch_new(self.cache, NULL, 0, watch_signal, opaque)
        if self.watch is NULL:
            raise MemoryError

    def __dealloc__(self):
        self.end()

    def close(self):
        """Ends the watch; nothing is written to the descriptor after it returns."""
        self.end()

    cdef void end(self) noexcept:
        cdef rdmeta_cache_t *cache = self.cache
        cdef rdmeta_watch_t *watch = self.watch
        self.cache = NULL
        self.watch = NULL
        if cache is NULL:
            return
        with nogil:  # it waits for a running watch_signal(), and so for that writer's thread
            rdmeta_watch_destroy(watch)
            rdmeta_cache_unref(cache)


cdef void watch_signal(void *opaque, uint64_t version) noexcept nogil:
    # A full pipe fails the write, but then its reader has been woken already.
    write(<int> <intptr_t> opaque, &version, sizeof(version))


own_methods(<PyTypeObject *> MetadataCache, Reading)
own_methods(<PyTypeObject *> Image, Reading)
own_methods(<PyTypeObject *> Attached, Reading)

# cython: language_level=3, binding=False, embedsignature=True, embedsignature.format=clinic
# cython: boundscheck=False, wraparound=False, cdivision=True
# Threads under one GIL share readers, so free-threaded builds are to switch it on, and who keeps it
# off all the same is refused below; and the types are those of one interpreter.
# cython: freethreading_compatible=False, subinterpreters_compatible=no
"""Converts between Python and the C core. No algorithms and no policy: those are in csrc/."""

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
from libc.stdlib cimport free, malloc, realloc
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

from rdmeta import _waits
from rdmeta._publish import Publisher
from rdmeta.errors import from_code
from rdmeta.model import (ALL, Advice, Applied, Broker, Change, Changes, Partition, Request, Topic,
                          TopicPartition, Version)

# PYTHON_GIL=0 overrides what is declared, without a word: two threads would take one reader, and
# its memory be freed twice.
if hasattr(sys, "_is_gil_enabled") and not sys._is_gil_enabled():
    raise ImportError("rdmeta needs the GIL: start Python without PYTHON_GIL=0 and -X gil=0",
                      name="rdmeta._core")

include "_convert.pxi"
include "_columns.pxi"
include "_bulk.pxi"
include "_collect.pxi"
include "_readers.pxi"
include "_arrow.pxi"
include "_changes.pxi"
include "_wire.pxi"
include "_reading.pxi"
include "_image.pxi"
include "_attached.pxi"
include "_state.pxi"
include "_writers.pxi"
include "_doors.pxi"
include "_handle.pxi"

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
    """The C core's name of an error code, Kafka's or its own."""
    return rdmeta_err_name(int32(code, "code")).decode("ascii")


@cython.final
cdef class Watch:
    """Writes eight bytes to a descriptor, which must not block, after every change, or answer."""

    cdef rdmeta_cache_t *cache
    cdef rdmeta_watch_t *watch

    def __cinit__(self, MetadataCache cache not None, int fd, bint answers=False):
        cdef void *to = <void *> <intptr_t> fd
        self.cache = rdmeta_cache_ref(cache.cache)
        with nogil:  # a writer may hold the lock that this takes
            if answers:
                self.watch = rdmeta_watch_answers(self.cache, watch_signal, to)
            else:
                self.watch = rdmeta_watch_new(self.cache, NULL, 0, watch_signal, to)
        if self.watch is NULL:
            raise MemoryError

    def __dealloc__(self):
        self.end()

    def close(self):
        """Return when nothing will be written any more."""
        self.end()

    cdef void end(self) noexcept:
        cdef rdmeta_cache_t *cache = self.cache
        cdef rdmeta_watch_t *watch = self.watch
        self.cache = NULL
        self.watch = NULL
        if cache is NULL:
            return
        with nogil:  # a call of it may be running, and that takes no GIL
            rdmeta_watch_destroy(watch)
            rdmeta_cache_unref(cache)


cdef void watch_signal(void *opaque, uint64_t version) noexcept nogil:
    # A full pipe has woken its reader already.
    write(<int> <intptr_t> opaque, &version, sizeof(version))


cdef class MetadataCache(CacheWriter):
    """Kafka cluster metadata in memory: fed Metadata responses, asked who leads what.

    All arguments are optional. Times are in seconds: `max_age` until a topic is stale,
    `negative_ttl` for "no such topic", `denied_ttl` at most for "not authorised", `hint_ttl` for a
    name that is being asked for, `absent_grace` from a topic's absence to its removal. `ring_bytes`
    bounds the changes kept. `seed` fixes the hash for tests. `clock` is a callable that gives
    seconds, or has `monotonic()` and `time()` as the `time` module does; by default C reads its own
    clocks, coarse ones for lookups. They are taken when the object is made: a subclass with arguments
    of its own overrides `__new__`.

    Threads may share a cache. Lookups see valid topics only; with `allow_stale=True` also the last
    known values of topics past their deadline and of partitions without a leader.
    """

    def __reduce__(self):
        raise TypeError("a MetadataCache cannot be pickled or copied: it is live state")

    def __repr__(self):
        cdef rdmeta_stats_t s
        self.read_stats(&s)
        return (f"<rdmeta.MetadataCache cluster_id={self.cluster_id!r} version={s.version}"
                f" topics={s.topics} brokers={len(self.brokers)}>")

    def resolve(self, topic, /):
        """A TopicHandle, for who asks about one topic again and again.

        The topic need not be known: then its lookups say so until it is. ArgumentError for a name
        that cannot be.
        """
        return TopicHandle(self, topic)

    @property
    def session(self):
        """A UUID that names this cache's life in change records."""
        return self.session_name

    def stats(self):
        """Counters and sizes as a dict, with the names of rdmeta_stats_t, which counts them.

        - answers: `applies`, `apply_failures`; of their topics `topics_applied`, `topics_changed`,
          `topics_unchanged` (of which `digest_hits` were not even parsed), and `topics_kept_back`,
          which lost to what was known; `leader_hints_taken`, `leader_hints_ignored`
        - what is held: `version`, `topics` valid or stale and their `partitions`, `negatives`
          (unknown, denied, invalid, absent), `hints` in flight, `retained` ids and epochs of what
          is gone, `reasons`, and `reasons_dropped` for want of room
        - who asks: `readers`, `waiters`, `watches`, `handles`, `images`
        - `bytes` that the allocator was asked for; of which `bytes_free` are had for topics and
          nobody's: when they are more than an eighth, sweep() and answers move topics
          (`topics_moved`) until less is held; `bytes_ring`, `bytes_limbo` and `bytes_images` are
          what changes, readers and images keep
        - `ring_records` changed topics are held for changes(), from version `ring_floor` on;
          `rehashes` and `reseeds` of the tables of names
        - `all_topics_age`: how many seconds ago all topics were answered, None for never
        """
        cdef rdmeta_stats_t s
        cdef dict found
        cdef int64_t now = self.now()
        self.read_stats(&s)
        found = s
        answered = answered_at(found.pop("shared_deadline_us"), self.max_age_us)
        found["all_topics_age"] = None if answered == INT64_MIN else max(now - answered, 0) / 1e6
        return found

    def changes(self, since=0):
        """What changed after the version `since`, oldest first, as Changes.

        `.until` is the version to go on from. `.resync` is True if older records than asked for are
        not held any more: then there are none here, and the state must be read anew. So it is of
        any in the child of a fork that came in the middle of a write.
        """
        cdef uint64_t start = unsigned(since, "since")
        cdef ChangeTable found = no_records(self.session_name)
        cdef uint64_t until = 0
        cdef int32_t resync = 0
        cdef rdmeta_err_t err
        with nogil:
            err = rdmeta_cache_changes(self.cache, start, record_visit, &found.records, &until,
                                       &resync)
        if err:
            raise from_code(err, "changes")
        return Changes(found, until, bool(resync))

    @classmethod
    def load(cls, path, *, copy=False, **settings):
        """A cache that begins with what a file of Image.save() or publish() holds: a warm start.

        `settings` are those of the class. Every topic is stale until an answer says it again, so
        `allow_stale=True` gives it; ids and epochs are remembered. Errors, and `copy`, as of
        Image.open(): a file that is truncated while it is loaded is fatal without it.
        """
        cdef MetadataCache cache = cls(**settings)
        cdef int32_t flags = RDMETA_IMAGE_COPY if copy else 0
        cdef bytes raw = path_bytes(path)
        cdef const char *name = raw
        cdef rdmeta_image_t *image = NULL
        cdef rdmeta_image_fault_t fault
        cdef rdmeta_time_t now
        cdef rdmeta_err_t err
        cdef rdmeta_err_t again
        cdef int number
        cache.read_clocks(&now)
        now.mono_us = cache.now()  # what is past by it is so for the next lookup
        with nogil:
            err = rdmeta_image_open(name, flags, now, &image)
            number = errno
        if err:
            raise not_opened(err, number, raw)
        with nogil:
            err = rdmeta_cache_load(cache.cache, image, now)
            again = rdmeta_image_fault(image, &fault) if err == RDMETA_ERR_MALFORMED else RDMETA_OK
            rdmeta_image_unref(image)
        if err:
            raise refused(err, 0, raw, "image", fault_text(again, &fault))
        return cache


own_methods(<PyTypeObject *> MetadataCache, Reading)
own_methods(<PyTypeObject *> Image, Reading)
own_methods(<PyTypeObject *> Attached, Reading)

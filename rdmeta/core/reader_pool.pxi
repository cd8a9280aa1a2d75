# Readers of something, and the clock they are asked with. Included by _core.pyx.

cdef extern from *:
    ctypedef struct PyMethodDef:
        pass
    ctypedef struct PyMethodDescrObject:
        PyMethodDef *d_method
    ctypedef struct PyTypeObject:
        PyObject *tp_dict
    object PyDescr_NewMethod(PyTypeObject *cls, PyMethodDef *method)
    void PyType_Modified(PyTypeObject *cls)


cdef object METHOD = type(str.join)

# What only this module has: without it nobody makes one of its objects that holds nothing.
cdef object GIVEN = object()


cdef int own_methods(PyTypeObject *cls, object base) except -1:
    """Give a class the methods of its base as its own.

    CPython specialises a call of a method in C only if the object's class is the very one that has
    it: an inherited `leader` takes a quarter longer.
    """
    cdef dict own = <dict> cls.tp_dict
    for name, method in base.__dict__.items():
        if type(method) is METHOD and name not in own:
            own[name] = PyDescr_NewMethod(cls, (<PyMethodDescrObject *> method).d_method)
    PyType_Modified(cls)
    return 0


cdef int64_t minus(int64_t a, int64_t b) noexcept:
    """Return a - b, or the nearest int64: a file may contain any time."""
    if b > 0:
        return a - b if a >= INT64_MIN + b else INT64_MIN
    return a - b if a <= INT64_MAX + b else INT64_MAX


cdef int64_t answered_at(int64_t shared_deadline_us, int64_t max_age_us) noexcept:
    """When all topics were answered; INT64_MIN for never, which C says by what is long past."""
    if shared_deadline_us < INT64_MIN // 2:
        return INT64_MIN
    return max(minus(shared_deadline_us, max_age_us), INT64_MIN + 1)


cdef void system_clocks(rdmeta_time_t *now) noexcept:
    now.mono_us = rdmeta_py_clock(CLOCK_MONOTONIC)
    now.wall_us = rdmeta_py_clock(CLOCK_REALTIME)


cdef class Readers:
    """What the lookups of Reading stand on.

    Who derives from it says how a reader of its own is made, and calls begin() when it can.
    """

    def __cinit__(self, *args, **kwargs):
        if not isinstance(self, (MetadataCache, Image, Attached)):
            raise TypeError(f"a {type(self).__name__} would read nothing: make a MetadataCache, open an"
                            " Image, or attach() to a file")

    def __dealloc__(self):
        cdef int kind
        cdef int i
        with nogil:  # whoever else has what is read may be writing to it
            for kind in range(2):
                for i in range(self.pooled[kind]):
                    rdmeta_reader_destroy(self.pool[kind][i])
            rdmeta_reader_destroy(self.strict)
            rdmeta_reader_destroy(self.lenient)

    cdef rdmeta_reader_t *make(self, int32_t flags) noexcept:
        """A new reader; NULL without memory."""
        return NULL

    cdef int set_clock(self, object clock) except -1:
        """Take the clock, None for C's own."""
        self.ticking = clock is None
        if clock is not None:
            self.monotonic = getattr(clock, "monotonic", clock)
            self.wall = getattr(clock, "time", clock)
            if not (callable(self.monotonic) and callable(self.wall)):
                raise TypeError("clock must be callable, or have monotonic() and time()")
        return 0

    cdef int begin(self) except -1:
        """Make the two readers that threads share, and one to take of each kind.

        Now, since it takes the writers' lock: no lookup shall be the first to wait for that.
        """
        self.pid = getpid()
        self.strict = self.make(0)
        self.lenient = self.make(RDMETA_ALLOW_STALE)
        if self.strict is NULL or self.lenient is NULL:
            raise MemoryError
        self.give(False, self.take(False))
        self.give(True, self.take(True))
        return 0

    cdef int64_t now(self) except? -1:
        """The clock of lookups, microseconds."""
        if self.ticking:
            return rdmeta_py_clock(CLOCK_MONOTONIC_COARSE)
        return microseconds(self.monotonic(), "clock")

    cdef int read_clocks(self, rdmeta_time_t *now) except -1:
        """The clocks of writers."""
        if self.ticking:
            system_clocks(now)
        else:
            now.mono_us = microseconds(self.monotonic(), "clock")
            now.wall_us = microseconds(self.wall(), "clock")
        return 0

    cdef rdmeta_reader_t *take(self, bint allow_stale) except NULL:
        """A reader of the caller's own, MemoryError."""
        cdef rdmeta_reader_t *reader
        if self.pooled[allow_stale]:
            self.pooled[allow_stale] -= 1
            return self.pool[allow_stale][self.pooled[allow_stale]]
        reader = self.make(RDMETA_ALLOW_STALE if allow_stale else 0)
        if reader is NULL:
            raise MemoryError
        return reader

    cdef rdmeta_reader_t *take_brokers(self) except NULL:
        """take(), for calls that are not told the time: a reader that follows a file has looked."""
        return self.take(False)

    cdef void give(self, bint allow_stale, rdmeta_reader_t *reader) noexcept:
        if self.pooled[allow_stale] == POOLED_READERS:
            with nogil:
                rdmeta_reader_destroy(reader)
            return
        self.pool[allow_stale][self.pooled[allow_stale]] = reader
        self.pooled[allow_stale] += 1


cdef str refresh_of(source):
    """Return what makes a reading newer, in words for an error."""
    if isinstance(source, MetadataCache):
        return "refresh it with rdmeta.fetch(cache, bootstrap)"
    if isinstance(source, Attached):
        return "the process that publishes it must refresh it"
    return "take a newer image"


cdef int64_t partitions_of(Reading source, topic) except -1:
    """How many partitions a topic has, stale ones as well; 0 for one that is not known."""
    cdef rdmeta_str_t name
    cdef rdmeta_topic_info_t info
    cdef const rdmeta_topic_t *found
    cdef int64_t count = 0
    cdef int64_t now = source.now()
    keep = view(topic, "topic", &name)
    rdmeta_reader_enter(source.lenient)  # nothing until leave can let go of the GIL
    if not rdmeta_topic_find(source.lenient, name.data, name.len, now, &found):
        rdmeta_topic_info(source.lenient, found, now, &info)
        count = info.partitions
    rdmeta_reader_leave(source.lenient)
    return count


cdef object lookup_error(Reading source, int32_t code, topic, partition):
    """The exception of a lookup, which says what to do where the caller can do something."""
    cdef int64_t count
    what = f"topic {topic!r}" if partition is None else f"partition {partition} of {topic!r}"
    if code == RDMETA_NO_PARTITION and partition is not None:
        number, count = index(partition), partitions_of(source, topic)
        known = count > 0 and not 0 <= number < count  # if not, a writer has changed it just now
        has = f": the topic has {count} partition{'' if count == 1 else 's'}" if known else ""
        error = from_code(code, what + has)
        error.partitions = count if known else None
        error.retriable = number >= 0
        return error
    if code == RDMETA_NOT_CACHED:
        what += f": nothing is known of it; {refresh_of(source)}"
    elif code == RDMETA_WAITING:
        what += ": it was asked for and not answered yet; wait_for_topic() waits for the answer"
    elif code == RDMETA_STALE:
        what += (f": its last answer is too old; {refresh_of(source)}, or read the last known values"
                 " with allow_stale=True or last_leader()")
    return broken(source, LEADER_NOT_AVAILABLE if code == RDMETA_NO_LEADER else code, what)

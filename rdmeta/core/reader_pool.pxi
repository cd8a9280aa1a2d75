# The readers of a MetadataCache, an Image or an Attached, the clock of its lookups, and the errors
# of lookups. Included by _core.pyx.

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

# The argument with which this module makes an Image or an ArrowTable. No user has it, so no user
# makes an empty one.
cdef object GIVEN = object()


cdef object not_made(Readers source):
    """Returns the exception for what C could not make: MemoryError, or ForkedError in a child."""
    if getpid() == source.pid:
        return MemoryError()
    return from_code(RDMETA_ERR_FORKED, "this child can only look up: it was made without fork"
                     " handlers, or a write took more than 2 s; make a new MetadataCache, or"
                     " attach() anew")


cdef int own_methods(PyTypeObject *cls, object base) except -1:
    """Copies the methods of a base class into the dict of a derived class.

    CPython specialises the call of a C method only if the object's own class defines the method: an
    inherited `leader` takes a quarter longer.
    """
    cdef dict own = <dict> cls.tp_dict
    for name, method in base.__dict__.items():
        if type(method) is METHOD and name not in own:
            own[name] = PyDescr_NewMethod(cls, (<PyMethodDescrObject *> method).d_method)
    PyType_Modified(cls)
    return 0


cdef int64_t minus(int64_t a, int64_t b) noexcept:
    """Returns a - b, or the nearest int64: a file may contain any time."""
    if b > 0:
        return a - b if a >= INT64_MIN + b else INT64_MIN
    return a - b if a <= INT64_MAX + b else INT64_MAX


cdef int64_t answered_at(int64_t shared_deadline_us, int64_t max_age_us) noexcept:
    """Returns the time of the last all-topics answer in microseconds, INT64_MIN for none.

    C marks "none" with a shared deadline in the far past.
    """
    if shared_deadline_us < INT64_MIN // 2:
        return INT64_MIN
    return max(minus(shared_deadline_us, max_age_us), INT64_MIN + 1)


cdef void system_clocks(rdmeta_time_t *now) noexcept:
    """Reads the system's monotonic clock and wall clock."""
    now.mono_us = rdmeta_py_clock(CLOCK_MONOTONIC)
    now.wall_us = rdmeta_py_clock(CLOCK_REALTIME)


cdef class Readers:
    """The base class of Reading: a pool of readers, and the clock of lookups.

    A derived class overrides make(), and calls begin() as soon as make() can work.
    """

    def __cinit__(self, *args, **kwargs):
        if not isinstance(self, (MetadataCache, Image, Attached)):
            raise TypeError(f"a {type(self).__name__} would read nothing: make a MetadataCache,"
                            " open an Image, or attach() to a file")

    def __dealloc__(self):
        cdef int kind
        cdef int i
        with nogil:  # a writer may hold the lock that rdmeta_reader_destroy() takes
            for kind in range(2):
                for i in range(self.pooled[kind]):
                    rdmeta_reader_destroy(self.pool[kind][i])
            rdmeta_reader_destroy(self.strict)
            rdmeta_reader_destroy(self.lenient)

    cdef rdmeta_reader_t *make(self, int32_t flags) noexcept:
        """Returns a new reader for rdmeta_reader_destroy(); NULL without memory."""
        return NULL

    cdef int set_clock(self, object clock) except -1:
        """Sets the clock; None stands for the system's clocks. TypeError."""
        self.ticking = clock is None
        if clock is not None:
            self.monotonic = getattr(clock, "monotonic", clock)
            self.wall = getattr(clock, "time", clock)
            if not (callable(self.monotonic) and callable(self.wall)):
                raise TypeError("clock must be callable, or have monotonic() and time(), not"
                                f" {type(clock).__name__}")
        return 0

    cdef int begin(self) except -1:
        """Makes the two readers that threads share, and one pooled reader per kind. MemoryError.

        It makes them early, since rdmeta_reader_new() takes the writers' lock, and no lookup shall
        wait for a writer.
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
        """Returns the time for lookups in microseconds. Raises what the user's clock raises."""
        if self.ticking:
            return rdmeta_py_clock(CLOCK_MONOTONIC_COARSE)
        return microseconds(self.monotonic(), "clock")

    cdef int read_clocks(self, rdmeta_time_t *now) except -1:
        """Reads the two clocks for writers. Raises what the user's clocks raise."""
        if self.ticking:
            system_clocks(now)
        else:
            now.mono_us = microseconds(self.monotonic(), "clock")
            now.wall_us = microseconds(self.wall(), "clock")
        return 0

    cdef rdmeta_reader_t *take(self, bint allow_stale) except NULL:
        """Returns a reader for the caller alone, to be given back with give(). MemoryError,
        ForkedError.
        """
        cdef rdmeta_reader_t *reader
        if self.pooled[allow_stale]:
            self.pooled[allow_stale] -= 1
            return self.pool[allow_stale][self.pooled[allow_stale]]
        reader = self.make(RDMETA_ALLOW_STALE if allow_stale else 0)
        if reader is NULL:
            raise not_made(self)
        return reader

    cdef rdmeta_reader_t *take_brokers(self) except NULL:
        """Returns what take(False) returns, for C calls on brokers, which get no time argument.

        A class that follows a file overrides it, to look for a new file first.
        """
        return self.take(False)

    cdef void give(self, bint allow_stale, rdmeta_reader_t *reader) noexcept:
        """Takes a reader back into the pool; destroys it if the pool is full."""
        if self.pooled[allow_stale] == POOLED_READERS:
            with nogil:
                rdmeta_reader_destroy(reader)
            return
        self.pool[allow_stale][self.pooled[allow_stale]] = reader
        self.pooled[allow_stale] += 1


cdef str refresh_of(source):
    """Returns how the user can refresh the source, in words for an error."""
    if isinstance(source, MetadataCache):
        return "let a Client refresh it, or call rdmeta.fetch(cache, bootstrap)"
    if isinstance(source, Attached):
        return "the process that publishes it must refresh it"
    return "take a newer image"


cdef int64_t partitions_of(Reading source, topic) except -1:
    """Returns how many partitions a valid or stale topic has; 0 if it is not known."""
    cdef rdmeta_str_t name
    cdef rdmeta_topic_info_t info
    cdef const rdmeta_topic_t *found
    cdef int64_t count = 0
    cdef int64_t now = source.now()
    keep = view(topic, "topic", &name)
    rdmeta_reader_enter(source.lenient)  # no call until leave may release the GIL
    if not rdmeta_topic_find(source.lenient, name.data, name.len, now, &found):
        rdmeta_topic_info(source.lenient, found, now, &info)
        count = info.partitions
    rdmeta_reader_leave(source.lenient)
    return count


cdef object lookup_error(Reading source, int32_t code, topic, partition):
    """Returns the exception for a lookup's code; its message says what the caller can do."""
    cdef int64_t count
    what = f"topic {topic!r}" if partition is None else f"partition {partition} of {topic!r}"
    if code == RDMETA_NO_PARTITION and partition is not None:
        number, count = index(partition), partitions_of(source, topic)
        # A writer may have changed the topic after the lookup: then its count explains nothing.
        known = count > 0 and not 0 <= number < count
        has = f": the topic has {count} partition{'' if count == 1 else 's'}" if known else ""
        error = from_code(code, what + has)
        error.partitions = count if known else None
        error.retriable = number >= 0
        return error
    if code == RDMETA_NOT_CACHED:
        what += f": nothing is known about it; {refresh_of(source)}"
    elif code == RDMETA_WAITING:
        what += ": a request for it is in flight; wait_for_topic() waits for the answer"
    elif code == RDMETA_STALE:
        what += (f": its last answer is too old; {refresh_of(source)}, or read the last known"
                 " values with allow_stale=True or last_leader()")
    return broken(source, LEADER_NOT_AVAILABLE if code == RDMETA_NO_LEADER else code, what)

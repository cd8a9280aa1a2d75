# The life of a cache, its clocks and its readers. Included by _core.pyx.

cdef class CacheState:
    """What the methods of MetadataCache stand on."""

    def __cinit__(self, *args, max_age=None, negative_ttl=None, denied_ttl=None, hint_ttl=None,
                  absent_grace=None, ring_bytes=None, seed=None, clock=None, **unknown):
        cdef rdmeta_conf_t conf
        if args or unknown:
            wrong = f"its setting {next(iter(unknown))!r}" if unknown else "settings without a name"
            raise TypeError(f"MetadataCache does not know {wrong}; a subclass with arguments of its"
                            " own overrides __new__")
        rdmeta_conf_init(&conf)
        if max_age is not None:
            conf.max_age_us = lifetime(max_age, "max_age")
        if negative_ttl is not None:
            conf.negative_ttl_us = microseconds(negative_ttl, "negative_ttl")
        if denied_ttl is not None:
            conf.denied_ttl_us = microseconds(denied_ttl, "denied_ttl")
        if hint_ttl is not None:
            conf.hint_ttl_us = lifetime(hint_ttl, "hint_ttl")
        if absent_grace is not None:
            conf.absent_grace_us = microseconds(absent_grace, "absent_grace")
        if ring_bytes is not None:
            conf.ring_bytes = <size_t> integer(ring_bytes, "ring_bytes", 0, INT64_MAX)
        if seed is not None:
            conf.seed = unsigned(seed, "seed")
        if clock is not None:
            self.monotonic = getattr(clock, "monotonic", clock)
            self.wall = getattr(clock, "time", clock)
            if not (callable(self.monotonic) and callable(self.wall)):
                raise TypeError("clock must be callable, or have monotonic() and time()")
        self.max_age_us = conf.max_age_us
        self.session_name = str(uuid.uuid4())
        self._loops = WeakValueDictionary()
        self.pid = getpid()
        self.cache = rdmeta_cache_new(&conf)
        if self.cache is NULL:
            raise MemoryError
        self.strict = rdmeta_reader_new(self.cache, 0)
        self.lenient = rdmeta_reader_new(self.cache, RDMETA_ALLOW_STALE)
        if self.strict is NULL or self.lenient is NULL:
            raise MemoryError

    def __bool__(self):
        """True also while it is empty: `if cache` asks whether there is one."""
        return True

    def __dealloc__(self):
        cdef int kind
        cdef int i
        for kind in range(2):
            for i in range(self.pooled[kind]):
                rdmeta_reader_destroy(self.pool[kind][i])
        rdmeta_reader_destroy(self.strict)
        rdmeta_reader_destroy(self.lenient)
        if self.cache is not NULL:
            rdmeta_cache_unref(self.cache)

    cdef int64_t now(self) except? -1:
        """The clock of lookups, microseconds."""
        if self.monotonic is None:
            return rdmeta_py_clock(CLOCK_MONOTONIC_COARSE)
        return microseconds(self.monotonic(), "clock")

    cdef int read_clocks(self, rdmeta_time_t *now) except -1:
        """The clocks of writers."""
        if self.monotonic is None:
            now.mono_us = rdmeta_py_clock(CLOCK_MONOTONIC)
            now.wall_us = rdmeta_py_clock(CLOCK_REALTIME)
        else:
            now.mono_us = microseconds(self.monotonic(), "clock")
            now.wall_us = microseconds(self.wall(), "clock")
        return 0

    cdef int read_stats(self, rdmeta_stats_t *out) except -1:
        with nogil:
            rdmeta_cache_stats(self.cache, out)
        return 0

    cdef rdmeta_reader_t *take(self, bint allow_stale) except NULL:
        """A reader of the caller's own, MemoryError."""
        cdef rdmeta_reader_t *reader
        if self.pooled[allow_stale]:
            self.pooled[allow_stale] -= 1
            return self.pool[allow_stale][self.pooled[allow_stale]]
        with nogil:  # a writer may hold the lock that this takes
            reader = rdmeta_reader_new(self.cache, RDMETA_ALLOW_STALE if allow_stale else 0)
        if reader is not NULL:
            return reader
        if getpid() == self.pid:
            raise MemoryError
        # In the child of a fork there are no writers to be kept from freeing anything.
        return self.lenient if allow_stale else self.strict

    cdef void give(self, bint allow_stale, rdmeta_reader_t *reader) noexcept:
        if reader is self.strict or reader is self.lenient:
            return
        if self.pooled[allow_stale] == POOLED_READERS:
            with nogil:
                rdmeta_reader_destroy(reader)
            return
        self.pool[allow_stale][self.pooled[allow_stale]] = reader
        self.pooled[allow_stale] += 1

    cdef object missing(self, int32_t code, topic, partition, default):
        """What a lookup does about a code < 0: the default, or an exception."""
        if default is not ...:
            return default
        what = f"topic {topic!r}" if partition is None else f"partition {partition} of {topic!r}"
        raise from_code(LEADER_NOT_AVAILABLE if code == RDMETA_NO_LEADER else code, what)

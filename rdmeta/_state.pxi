# The life of a cache. Included by _core.pyx.

cdef class CacheState(Reading):
    """A cache, and the lookups in it."""

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
        self.set_clock(clock)
        self.max_age_us = conf.max_age_us
        self._loops = WeakValueDictionary()
        self.cache = rdmeta_cache_new(&conf)
        if self.cache is NULL:
            raise MemoryError
        self.begin()
        self.session_name = session_of(self.cache)

    def __dealloc__(self):
        if self.cache is not NULL:
            rdmeta_cache_unref(self.cache)  # its readers hold it as well

    cdef rdmeta_reader_t *make(self, int32_t flags) noexcept:
        cdef rdmeta_reader_t *reader
        with nogil:  # a writer may hold the lock that this takes
            reader = rdmeta_reader_new(self.cache, flags)
        return reader

    cdef uint64_t version_now(self) except? 0:
        return rdmeta_cache_version(self.cache)

    cdef int64_t answered_us(self) except? -1:
        cdef rdmeta_stats_t s
        self.read_stats(&s)
        return answered_at(s.shared_deadline_us, self.max_age_us)

    def image(self):
        """What the cache says now, held, as an Image: costs no copy.

        `then = cache.image()`, and later `then.diff(cache.image())`. It is written with save().
        """
        cdef rdmeta_image_t *image
        cdef rdmeta_time_t now
        self.read_clocks(&now)
        with nogil:
            image = rdmeta_cache_image(self.cache, now)
        return image_of(image)

    cdef int read_stats(self, rdmeta_stats_t *out) except -1:
        with nogil:
            rdmeta_cache_stats(self.cache, out)
        return 0


cdef str session_of(rdmeta_cache_t *cache):
    """The UUID of a cache's life, which its images tell. MemoryError."""
    cdef rdmeta_image_info_t info
    cdef rdmeta_time_t never = [0, 0]
    cdef rdmeta_image_t *image = rdmeta_cache_image(cache, never)
    if image is NULL:
        raise MemoryError
    rdmeta_image_info(image, &info)  # nobody else has the cache yet
    rdmeta_image_unref(image)
    return session_text(info.session)

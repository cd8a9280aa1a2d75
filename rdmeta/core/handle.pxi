# Names that lead to their topic without a search. Included by _core.pyx.

@cython.final
@cython.no_gc_clear  # its reader is the cache's: it must not lose that before itself
cdef class TopicHandle:
    """A topic of a cache, or of what is attached, found once: their `resolve()` makes it.

    It stays true whatever happens to the topic: refreshed, deleted, created again, purged, told by
    another process. The name need not be known. Threads may share one; it keeps the cache alive.
    """

    def __cinit__(self, Reading source not None, topic, /):
        self.keep = view(topic, "topic", &self.name)
        if not 0 < self.name.len <= LONGEST_NAME:
            raise from_code(RDMETA_ERR_ARGUMENT, f"a topic's name has 1 to {<int> LONGEST_NAME}"
                                                 f" bytes, not {self.name.len}")
        self.source = source
        self.strict = source.strict
        self.coarse = source.monotonic is None
        if isinstance(source, MetadataCache):
            self.find((<MetadataCache> source).cache)
        elif not isinstance(source, Attached):
            raise TypeError("a TopicHandle is of a MetadataCache or of an Attached, not of this"
                            f" {type(source).__name__}")

    cdef int find(self, rdmeta_cache_t *owner) except -1:
        """Find it in a cache; a file has a name at another place in each state."""
        cdef rdmeta_str_t name = self.name
        with nogil:  # a writer may hold the lock that this takes
            self.handle = rdmeta_resolve(owner, name.data, name.len)
        if self.handle is NULL:
            raise MemoryError
        return 0

    cdef int32_t lead(self, rdmeta_reader_t *reader, int32_t partition, int64_t now) noexcept:
        if self.handle is NULL:
            return rdmeta_leader(reader, self.name.data, self.name.len, partition, now)
        return rdmeta_handle_leader(reader, self.handle, partition, now)

    def __dealloc__(self):
        cdef rdmeta_handle_t *handle = self.handle
        if handle is not NULL:
            with nogil:
                rdmeta_handle_release(handle)

    def __bool__(self):
        """True also while the topic is not known."""
        return True

    def __reduce__(self):
        raise TypeError("a TopicHandle cannot be pickled or copied: it is of live state")

    def __repr__(self):
        cdef int32_t count = self.count()
        what = f"partitions={count}" if count >= 0 else code_name(count).removeprefix("RDMETA_")
        return f"<rdmeta.TopicHandle {self.topic!r} {what}>"

    def leader(self, partition, /, default=...):
        """The broker id of a partition's leader; `default` and errors as of MetadataCache.leader()."""
        cdef int32_t number
        cdef int32_t found
        if not rdmeta_py_small(partition, &number):
            number = int32(partition, "partition")
        found = self.lead(
            self.strict, number,
            rdmeta_py_clock(CLOCK_MONOTONIC_COARSE) if self.coarse else self.source.now())
        if found >= 0:
            return found
        return self.source.missing(found, self.topic, partition, default)

    def last_leader(self, partition, /, default=...):
        """leader(), but the last one known of a stale topic or a leaderless partition will do."""
        cdef int32_t number = int32(partition, "partition")
        cdef int64_t now = self.source.now()
        cdef int32_t found = self.lead(self.source.lenient, number, now)
        if found >= 0:
            return found
        return self.source.missing(found, self.topic, partition, default)

    def state(self, partition=None, /):
        """What leader() would say without an exception: 0, or NOT_CACHED, STALE, NO_LEADER ...

        Without a partition it is said of the topic.
        """
        cdef int32_t number
        cdef int64_t now
        if partition is None:
            return min(self.count(), 0)
        number = int32(partition, "partition")
        now = self.source.now()
        return min(self.lead(self.strict, number, now), 0)

    def partition_for(self, key, /, default=..., *, allow_stale=False):
        """The partition that Kafka's Java producer puts a record with this key into.

        `key` is bytes or a buffer of them: what the key's serializer gives. murmur2 of it, without
        the sign, modulo the number of partitions; librdkafka's `partitioner=murmur2_random`. None, a
        record without a key, gets one at random each time, of those that have a leader; of all where
        none has. `default`, `allow_stale` and errors as of topic().
        """
        cdef rdmeta_reader_t *reader = self.source.lenient if allow_stale else self.strict
        cdef rdmeta_str_t raw
        cdef int64_t now = self.source.now()
        keep = key_view(key, &raw)
        cdef int32_t found
        if self.handle is NULL:
            found = rdmeta_partition_for(reader, self.name.data, self.name.len, raw.data, raw.len, now)
        else:
            found = rdmeta_handle_partition_for(reader, self.handle, raw.data, raw.len, now)
        if found >= 0:
            return found
        return self.source.missing(found, self.topic, None, default)

    def __len__(self):
        """How many partitions; errors as of topic()."""
        cdef int32_t count = self.count()
        if count < 0:
            self.source.missing(count, self.topic, None, ...)
        return count

    @property
    def partitions(self):
        """How many partitions, as len() tells."""
        return len(self)

    @property
    def topic(self):
        """The name."""
        return text(self.name)

    cdef int32_t count(self) except? -1:
        """How many partitions the valid topic has, or a code < 0."""
        cdef rdmeta_topic_info_t info
        cdef const rdmeta_topic_t *found
        cdef int64_t now = self.source.now()
        cdef rdmeta_err_t code
        rdmeta_reader_enter(self.strict)  # nothing until leave can let go of the GIL
        if self.handle is NULL:
            code = rdmeta_topic_find(self.strict, self.name.data, self.name.len, now, &found)
        else:
            code = rdmeta_handle_find(self.strict, self.handle, now, &found)
        if not code:
            rdmeta_topic_info(self.strict, found, now, &info)
        rdmeta_reader_leave(self.strict)
        return code if code else <int32_t> info.partitions

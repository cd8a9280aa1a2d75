# Topic handles: a topic's name is resolved once, and each lookup then needs no search.
# Included by _core.pyx.

@cython.final
@cython.no_gc_clear  # its reader belongs to `source`, so it must keep `source` to its own end
cdef class TopicHandle:
    """One topic of a MetadataCache or an Attached, for repeated lookups; resolve() returns it.

    It stays right when the topic is refreshed, deleted, created again or purged, and when another
    process publishes a new state. The topic need not be known. Threads may share a handle. It keeps
    its cache alive.
    """

    def __cinit__(self, Reading source not None, topic, /):
        self.keep = view(topic, "topic", &self.name)
        if not 0 < self.name.len <= LONGEST_NAME:
            raise from_code(RDMETA_ERR_ARGUMENT,
                            f"a topic's name must have 1 to {<int> LONGEST_NAME} bytes, not"
                            f" {self.name.len}")
        self.source = source
        self.strict = source.strict
        self.coarse = source.monotonic is None
        if isinstance(source, MetadataCache):
            self.resolve((<MetadataCache> source).cache)
        elif not isinstance(source, Attached):
            raise TypeError("source must be a MetadataCache or an Attached, not"
                            f" {type(source).__name__}")

    cdef int resolve(self, rdmeta_cache_t *cache) except -1:
        """Makes the handle in a cache. MemoryError.

        An Attached has no handle in C: a name lies at another place in each published file.
        """
        cdef rdmeta_str_t name = self.name
        with nogil:  # a writer may hold the lock that rdmeta_resolve() takes
            self.handle = rdmeta_resolve(cache, name.data, name.len)
        if self.handle is NULL:
            raise not_made(self.source)
        return 0

    cdef int32_t leader_or_code(self, rdmeta_reader_t *reader, int32_t partition,
                                int64_t now) noexcept:
        """Returns the leader's broker id, or a code < 0."""
        if self.handle is NULL:
            return rdmeta_leader(reader, self.name.data, self.name.len, partition, now)
        return rdmeta_handle_leader(reader, self.handle, partition, now)

    def __dealloc__(self):
        cdef rdmeta_handle_t *handle = self.handle
        if handle is not NULL:
            with nogil:
                rdmeta_handle_release(handle)

    def __bool__(self):
        """Returns True, also while the topic is not known."""
        return True

    def __reduce__(self):
        raise TypeError("a TopicHandle cannot be pickled or copied: it reads live state;"
                        " call resolve() there")

    def __repr__(self):
        cdef int32_t count = self.count()
        what = f"partitions={count}" if count >= 0 else code_name(count).removeprefix("RDMETA_")
        return f"<rdmeta.TopicHandle {self.topic!r} {what}>"

    def leader(self, partition, /, default=...):
        """Returns the broker id of a partition's leader, without a search for the topic.

        `default` and the errors are those of MetadataCache.leader().
        """
        cdef int32_t number
        cdef int32_t found
        if not rdmeta_py_small(partition, &number):
            number = int32(partition, "partition")
        found = self.leader_or_code(
            self.strict, number,
            rdmeta_py_clock(CLOCK_MONOTONIC_COARSE) if self.coarse else self.source.now())
        if found >= 0:
            return found
        return self.source.missing(found, self.topic, partition, default)

    def last_leader(self, partition, /, default=...):
        """Returns what leader() returns, or the last known leader if stale or leaderless.

        `default` and the errors are those of MetadataCache.leader().
        """
        cdef int32_t number = int32(partition, "partition")
        cdef int64_t now = self.source.now()
        cdef int32_t found = self.leader_or_code(self.source.lenient, number, now)
        if found >= 0:
            return found
        return self.source.missing(found, self.topic, partition, default)

    def state(self, partition=None, /):
        """Returns 0 if leader() would return a leader, otherwise the code of its error.

        The codes are those of MetadataCache.state(). Without `partition` it returns the topic's
        state.
        """
        cdef int32_t number
        cdef int64_t now
        if partition is None:
            return min(self.count(), 0)
        number = int32(partition, "partition")
        now = self.source.now()
        return min(self.leader_or_code(self.strict, number, now), 0)

    def partition_for(self, key, /, default=..., *, allow_stale=False):
        """Returns the partition that Kafka's Java producer puts a record with this key into.

        `key` is what the key's serializer returns: bytes or a buffer of bytes. The partition is the
        key's murmur2 hash, its sign bit cleared, modulo the number of partitions. librdkafka does
        the same with `partitioner=murmur2_random`.

        A record without a key (None) gets a random partition at each call. It is one that has a
        leader, or any one if no partition has a leader. `default`, `allow_stale` and the errors are
        those of MetadataCache.topic(). TypeError for another kind of key.
        """
        cdef rdmeta_reader_t *reader = self.source.lenient if allow_stale else self.strict
        cdef rdmeta_str_t raw
        cdef int64_t now = self.source.now()
        keep = key_view(key, &raw)
        cdef int32_t found
        if self.handle is NULL:
            found = rdmeta_partition_for(reader, self.name.data, self.name.len, raw.data, raw.len,
                                         now)
        else:
            found = rdmeta_handle_partition_for(reader, self.handle, raw.data, raw.len, now)
        if found >= 0:
            return found
        return self.source.missing(found, self.topic, None, default)

    def __len__(self):
        """Returns the number of partitions. The errors are those of MetadataCache.topic()."""
        cdef int32_t count = self.count()
        if count < 0:
            self.source.missing(count, self.topic, None, ...)
        return count

    @property
    def partitions(self):
        """The number of partitions, as len() returns it, with the same errors."""
        return len(self)

    @property
    def topic(self):
        """The topic's name."""
        return text(self.name)

    cdef int32_t count(self) except? -1:
        """Returns how many partitions the valid topic has, or a code < 0."""
        cdef rdmeta_topic_info_t info
        cdef const rdmeta_topic_t *found
        cdef int64_t now = self.source.now()
        cdef rdmeta_err_t code
        rdmeta_reader_enter(self.strict)  # no call until leave may release the GIL
        if self.handle is NULL:
            code = rdmeta_topic_find(self.strict, self.name.data, self.name.len, now, &found)
        else:
            code = rdmeta_handle_find(self.strict, self.handle, now, &found)
        if not code:
            rdmeta_topic_info(self.strict, found, now, &info)
        rdmeta_reader_leave(self.strict)
        return code if code else <int32_t> info.partitions

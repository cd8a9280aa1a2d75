# Walks over topics: C visits the topics without the GIL, and the caller makes objects of them
# later. Included by _core.pyx.

# Making objects needs the GIL, and a loop of Cython never releases it by itself. So a loop that
# makes many objects releases it every TURN_US. That is longer than the 5 ms after which a waiting
# thread insists: with a shorter turn the waiting thread wakes again and again, and always too late.

cdef inline void let_others_run(int64_t *since) noexcept:
    """Releases the GIL for a moment if TURN_US have passed since `since`; then sets `since`."""
    cdef int64_t now = rdmeta_py_clock(CLOCK_MONOTONIC_COARSE)
    if now - since[0] >= TURN_US:
        since[0] = now
        with nogil:
            pass


# ---- names that C lends for one call ----------------------------------------------------------

@cython.auto_pickle(False)  # a copy would have the same buffer
@cython.final
@cython.no_gc
cdef class Copied:
    """Copies of the names that a visit gets, each with a number, in one growing buffer."""

    cdef char *data  # per name: uint32 number, uint32 length, the bytes
    cdef size_t used
    cdef size_t capacity
    cdef size_t read

    def __dealloc__(self):
        free(self.data)

    cdef int32_t add(self, rdmeta_str_t name, uint32_t number) noexcept nogil:
        """Copies one name. NO_MEMORY."""
        cdef size_t need = self.used + 8 + name.len
        cdef uint32_t head[2]
        cdef char *grown
        if need > self.capacity:
            grown = <char *> realloc(self.data, 2 * need + 256)
            if grown is NULL:
                return RDMETA_ERR_NO_MEMORY
            self.data = grown
            self.capacity = 2 * need + 256
        head[0] = number
        head[1] = <uint32_t> name.len
        memcpy(self.data + self.used, head, 8)
        memcpy(self.data + self.used + 8, name.data, name.len)
        self.used = need
        return 0

    cdef bint next(self, rdmeta_str_t *name, uint32_t *number) noexcept:
        """Lends the next name with its number; returns False after the last one."""
        cdef uint32_t head[2]
        if self.read == self.used:
            return False
        memcpy(head, self.data + self.read, 8)
        number[0] = head[0]
        name.len = head[1]
        name.data = self.data + self.read + 8
        self.read += 8 + name.len
        return True


cdef int32_t due_visit(void *opaque, const rdmeta_due_t *due) noexcept nogil:
    """Adds a due topic to the Copied at `opaque`, for C to call. NO_MEMORY."""
    return (<Copied> opaque).add(due.topic, due.reasons)


cdef int32_t name_visit(void *opaque, const rdmeta_str_t *topic) noexcept nogil:
    """Adds a name to the Copied at `opaque`, for C to call. NO_MEMORY."""
    return (<Copied> opaque).add(topic[0], 0)


# ---- a walk over topics ---------------------------------------------------------------------

cdef struct FoundTopics:
    const rdmeta_topic_t **topics
    size_t n
    size_t capacity


cdef int32_t find_visit(void *opaque, const rdmeta_topic_t *topic) noexcept nogil:
    """Appends a topic to the FoundTopics at `opaque`, for C to call. NO_MEMORY."""
    cdef FoundTopics *found = <FoundTopics *> opaque
    cdef const rdmeta_topic_t **grown
    cdef size_t capacity
    if found.n == found.capacity:
        capacity = 2 * found.capacity + 64
        grown = <const rdmeta_topic_t **> realloc(found.topics, capacity * sizeof(void *))
        if grown is NULL:
            return RDMETA_ERR_NO_MEMORY
        found.topics = grown
        found.capacity = capacity
    found.topics[found.n] = topic
    found.n += 1
    return 0


@cython.final
@cython.no_gc
cdef class Walk:
    """The topics of one version, borrowed until this object is freed."""

    cdef Reading source
    cdef rdmeta_reader_t *reader
    cdef FoundTopics found
    cdef int64_t now
    cdef rdmeta_topic_info_t info

    def __cinit__(self, Reading source not None, object prefix, int32_t which):
        cdef rdmeta_str_t start
        cdef rdmeta_err_t err
        keep = view(prefix, "prefix", &start)
        self.now = source.now()
        self.reader = source.take(False)
        self.source = source
        rdmeta_reader_enter(self.reader)
        with nogil:
            err = rdmeta_reader_walk(self.reader, start.data, start.len, which, self.now,
                                     find_visit, &self.found)
        if err:
            raise broken(source, err, "a walk over topics")

    def __dealloc__(self):
        free(self.found.topics)
        if self.reader is not NULL:
            rdmeta_reader_leave(self.reader)
            self.source.give(False, self.reader)

    cdef const rdmeta_topic_info_t *at(self, size_t i) noexcept:
        """Returns the i-th topic's properties, valid until the next call."""
        rdmeta_topic_info(self.reader, self.found.topics[i], self.now, &self.info)
        return &self.info


# ---- counts of partitions and brokers ---------------------------------------------------------

@cython.final
@cython.no_gc
cdef class BrokerCounts:
    """The result of rdmeta_reader_health(), with room for its brokers."""

    cdef rdmeta_health_t sum

    def __cinit__(self):
        self.sum.broker_count = 112  # with less room, most calls would count twice
        self.grow()

    def __dealloc__(self):
        free(self.sum.brokers)

    cdef bint cut(self) noexcept:
        """Returns whether the last call had more brokers than there was room for."""
        return self.sum.broker_count > self.sum.capacity

    cdef int grow(self) except -1:
        """Makes room for the brokers of the last call, and some that may come. MemoryError."""
        cdef uint32_t capacity = self.sum.broker_count + 16
        free(self.sum.brokers)
        self.sum.capacity = 0
        self.sum.brokers = <rdmeta_broker_health_t *> malloc(
            capacity * sizeof(rdmeta_broker_health_t))
        if self.sum.brokers is NULL:
            raise MemoryError
        self.sum.capacity = capacity
        return 0

    cdef object health(self):
        """Returns the result as a model.Health."""
        cdef dict leaders = {}
        cdef dict replicas = {}
        cdef rdmeta_broker_health_t *b
        cdef uint32_t i
        for i in range(self.sum.broker_count):
            b = &self.sum.brokers[i]
            leaders[b.broker] = b.leaders
            replicas[b.broker] = b.replicas
        return Health(self.sum.topics, self.sum.partitions, self.sum.replicas,
                      self.sum.leaderless, self.sum.under_replicated, self.sum.offline,
                      self.sum.non_preferred, leaders, replicas)

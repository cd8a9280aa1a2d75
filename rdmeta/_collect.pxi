# What C visits while no GIL is held, kept until Python objects can be made of it. Included by
# _core.pyx.

# Objects are made with the GIL held, and nothing in a loop of C lets go of it by itself: so who
# makes many lets go now and then. Not more often than a thread waits before it insists (5 ms), or
# it is woken again and again and always too late.

cdef inline void let_others_run(int64_t *since) noexcept:
    cdef int64_t now = rdmeta_py_clock(CLOCK_MONOTONIC_COARSE)
    if now - since[0] >= TURN_US:
        since[0] = now
        with nogil:
            pass


# ---- a walk over topics ---------------------------------------------------------------------

cdef struct Found:
    const rdmeta_topic_t **topics
    size_t n
    size_t capacity


cdef int32_t find_visit(void *opaque, const rdmeta_topic_t *topic) noexcept nogil:
    cdef Found *found = <Found *> opaque
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
    """Topics as they stood at one version, borrowed until this object goes."""

    cdef Reading source
    cdef rdmeta_reader_t *reader
    cdef Found found
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
            raise from_code(err, "walk over topics")

    def __dealloc__(self):
        free(self.found.topics)
        if self.reader is not NULL:
            rdmeta_reader_leave(self.reader)
            self.source.give(False, self.reader)

    cdef const rdmeta_topic_info_t *at(self, size_t i) noexcept:
        rdmeta_topic_info(self.reader, self.found.topics[i], self.now, &self.info)
        return &self.info


# ---- change records -------------------------------------------------------------------------
#
# Records lie one behind the other in one allocation, each followed by the bytes that its pointers
# pointed to, in the order of `record_read`:
#
#     rdmeta_change_t | cluster id | topic | topic id | detail | old isr | ... | rdmeta_change_t ...
#
# The pointers inside are not valid there, their lengths and being NULL or not are.

cdef struct Records:
    char *bytes
    size_t n
    size_t used
    size_t capacity


cdef bint record_put(Records *r, const void *data, size_t size) noexcept nogil:
    cdef size_t padded = (size + 7) & ~(<size_t> 7)
    cdef size_t capacity
    cdef char *grown
    if padded > r.capacity - r.used:
        capacity = 2 * r.capacity + padded + 4096
        grown = <char *> realloc(r.bytes, capacity)
        if grown is NULL:
            return False
        r.bytes = grown
        r.capacity = capacity
    if size:
        memcpy(r.bytes + r.used, data, size)
    r.used += padded
    return True


cdef bint record_put_ids(Records *r, rdmeta_ids_t ids) noexcept nogil:
    return ids.ids is NULL or record_put(r, ids.ids, ids.count * sizeof(int32_t))


cdef int32_t record_visit(void *opaque, const rdmeta_change_t *c) noexcept nogil:
    cdef Records *r = <Records *> opaque
    if not (record_put(r, c, sizeof(c[0]))
            and (c.cluster_id.data is NULL or record_put(r, c.cluster_id.data, c.cluster_id.len))
            and (c.topic.data is NULL or record_put(r, c.topic.data, c.topic.len))
            and (c.topic_id is NULL or record_put(r, c.topic_id, 16))
            and (c.detail.data is NULL or record_put(r, c.detail.data, c.detail.len))
            and record_put_ids(r, c.old_isr) and record_put_ids(r, c.new_isr)
            and record_put_ids(r, c.old_replicas) and record_put_ids(r, c.new_replicas)):
        return RDMETA_ERR_NO_MEMORY
    r.n += 1
    return 0


cdef const char *record_take(const char **at, size_t size) noexcept:
    cdef const char *start = at[0]
    at[0] = start + ((size + 7) & ~(<size_t> 7))
    return start


cdef object record_text(const char **at, rdmeta_str_t s):
    if s.data is not NULL:
        s.data = record_take(at, s.len)
    return text(s)


cdef object record_ids(const char **at, rdmeta_ids_t ids):
    if ids.ids is NULL:
        return None
    return ids_tuple(<const int32_t *> record_take(at, ids.count * sizeof(int32_t)), ids.count)


cdef object record_read(const char **at, str session):
    """The next record as a model.Change; `at` moves behind it."""
    cdef const rdmeta_change_t *c = <const rdmeta_change_t *> record_take(at, sizeof(c[0]))
    cluster_id = record_text(at, c.cluster_id)
    topic = record_text(at, c.topic)
    topic_id = None if c.topic_id is NULL else topic_id_text(<uint8_t *> record_take(at, 16))
    detail = record_text(at, c.detail)
    old_isr = record_ids(at, c.old_isr)
    new_isr = record_ids(at, c.new_isr)
    old_replicas = record_ids(at, c.old_replicas)
    new_replicas = record_ids(at, c.new_replicas)
    return new_tuple(Change, (
        c.version, cluster_id, session, EPOCH + timedelta(microseconds=c.wall_us),
        rdmeta_source_name(c.source).decode("ascii"), some(c.source_broker),
        rdmeta_change_kind_name(c.kind).decode("ascii"), topic, topic_id, some(c.partition),
        some(c.broker), some(c.old_leader), some(c.new_leader), some(c.old_leader_epoch),
        some(c.new_leader_epoch), old_isr, new_isr, old_replicas, new_replicas,
        c.offset if c.offset >= 0 else None, detail))

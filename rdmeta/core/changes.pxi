# Change records as C visits them, copied; a caller makes objects or Arrow columns of them later.
# Included by _core.pyx.
#
# All records lie one behind the other in one allocation. After each record come copies of the bytes
# that its pointers pointed to, in the order in which record_view() reads them:
#
#     rdmeta_change_t | cluster id | topic | topic id | detail | old isr | ... | rdmeta_change_t ...
#
# A pointer inside a stored record must not be followed. Its length, and whether it is NULL, are
# valid. Each piece begins at a multiple of 8 bytes.

cdef struct RecordBuffer:
    char *bytes
    size_t n
    size_t used
    size_t capacity


cdef bint record_put(RecordBuffer *r, const void *data, size_t size) noexcept nogil:
    """Appends a copy of `size` bytes; returns False without memory."""
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


cdef bint record_put_ids(RecordBuffer *r, rdmeta_ids_t ids) noexcept nogil:
    return ids.ids is NULL or record_put(r, ids.ids, ids.count * sizeof(int32_t))


cdef int32_t record_visit(void *opaque, const rdmeta_change_t *c) noexcept nogil:
    """Appends a copy of one record to the RecordBuffer at `opaque`, for C to call. NO_MEMORY."""
    cdef RecordBuffer *r = <RecordBuffer *> opaque
    if not (record_put(r, c, sizeof(c[0]))
            and (c.cluster_id.data is NULL or record_put(r, c.cluster_id.data, c.cluster_id.len))
            and (c.topic.data is NULL or record_put(r, c.topic.data, c.topic.len))
            and (c.topic_id is NULL or record_put(r, c.topic_id, 16))
            and (c.detail.data is NULL or record_put(r, c.detail.data, c.detail.len))
            and record_put_ids(r, c.old_isr) and record_put_ids(r, c.new_isr)
            and record_put_ids(r, c.old_replicas) and record_put_ids(r, c.new_replicas)
            and record_put_ids(r, c.old_offline) and record_put_ids(r, c.new_offline)
            and record_put_ids(r, c.new_adding) and record_put_ids(r, c.new_removing)
            and record_put_ids(r, c.new_elr)):
        return RDMETA_ERR_NO_MEMORY
    r.n += 1
    return 0


cdef const char *record_take(const char **at, size_t size) noexcept nogil:
    """Returns the position `at`, and moves it past `size` bytes and their padding."""
    cdef const char *start = at[0]
    at[0] = start + ((size + 7) & ~(<size_t> 7))
    return start


cdef void record_text(const char **at, rdmeta_str_t *s) noexcept nogil:
    if s.data is not NULL:
        s.data = record_take(at, s.len)


cdef void record_ids(const char **at, rdmeta_ids_t *ids) noexcept nogil:
    if ids.ids is not NULL:
        ids.ids = <const int32_t *> record_take(at, ids.count * sizeof(int32_t))


cdef void record_view(const char **at, rdmeta_change_t *out) noexcept nogil:
    """Copies the next record to `out`, with valid pointers, and moves `at` past it."""
    out[0] = (<const rdmeta_change_t *> record_take(at, sizeof(out[0])))[0]
    record_text(at, &out.cluster_id)
    record_text(at, &out.topic)
    if out.topic_id is not NULL:
        out.topic_id = <const uint8_t *> record_take(at, 16)
    record_text(at, &out.detail)
    record_ids(at, &out.old_isr)
    record_ids(at, &out.new_isr)
    record_ids(at, &out.old_replicas)
    record_ids(at, &out.new_replicas)
    record_ids(at, &out.old_offline)
    record_ids(at, &out.new_offline)
    record_ids(at, &out.new_adding)
    record_ids(at, &out.new_removing)
    record_ids(at, &out.new_elr)


cdef struct KindCounts:
    # More than there are kinds: rdmeta_kinds.h.
    int64_t n[64]


cdef int32_t count_visit(void *opaque, const rdmeta_change_t *c) noexcept nogil:
    """Counts one record in the KindCounts at `opaque`, for C to call."""
    (<KindCounts *> opaque).n[c.kind & 63] += 1
    return 0


cdef object some_ids(rdmeta_ids_t ids):
    return None if ids.ids is NULL else ids_tuple(ids.ids, ids.count)


cdef object change_of(const rdmeta_change_t *c, str session):
    return new_tuple(Change, (
        c.version, text(c.cluster_id), session, wall_datetime(c.wall_us),
        rdmeta_source_name(c.source).decode("ascii"), some(c.source_broker),
        rdmeta_change_kind_name(c.kind).decode("ascii"), text(c.topic), topic_id_text(c.topic_id),
        some(c.partition), some(c.broker), some(c.old_leader), some(c.new_leader),
        some(c.old_leader_epoch), some(c.new_leader_epoch), some_ids(c.old_isr),
        some_ids(c.new_isr), some_ids(c.old_replicas), some_ids(c.new_replicas),
        c.offset if c.offset >= 0 else None, text(c.detail), some_ids(c.old_offline),
        some_ids(c.new_offline), some(c.partition_epoch),
        c.broker_epoch if c.broker_epoch >= 0 else None, some_ids(c.new_adding),
        some_ids(c.new_removing), some_ids(c.new_elr),
        c.unseen_us if c.unseen_us >= 0 else None))


@cython.final
cdef class ChangeTable(ArrowTable):
    """The records of a Changes, as Change objects or as Arrow columns."""

    cdef RecordBuffer records
    cdef str session
    cdef bytes session_bytes
    cdef const char *session_text

    def __dealloc__(self):
        free(self.records.bytes)

    def __len__(self):
        return self.records.n

    def read(self):
        """Returns all records as a tuple of Change, in their order."""
        cdef int64_t turn = rdmeta_py_clock(CLOCK_MONOTONIC_COARSE)
        cdef const char *at = self.records.bytes
        cdef rdmeta_change_t change
        cdef list found = []
        cdef size_t i
        for i in range(self.records.n):
            record_view(&at, &change)
            found.append(change_of(&change, self.session))
            let_others_run(&turn)
        return tuple(found)

    cdef rdmeta_err_t open(self, ArrowArrayStream *out) noexcept nogil:
        cdef rdmeta_arrow_changes_t *changes = rdmeta_arrow_changes_new(self.session_text)
        cdef const char *at = self.records.bytes
        cdef rdmeta_err_t err = RDMETA_OK
        cdef rdmeta_change_t change
        cdef size_t i
        if changes is NULL:
            return RDMETA_ERR_NO_MEMORY
        for i in range(self.records.n):
            record_view(&at, &change)
            err = rdmeta_arrow_changes_add(changes, &change)
            if err:
                rdmeta_arrow_changes_destroy(changes)
                return err
        return rdmeta_arrow_changes_stream(changes, out)


cdef ChangeTable no_records(str session):
    """Returns an empty ChangeTable for record_visit() to fill; all records have this `session`."""
    cdef ChangeTable made = ChangeTable.__new__(ChangeTable, GIVEN)
    made.table = RDMETA_ARROW_CHANGES
    made.session = session
    if session is not None:
        made.session_bytes = session.encode()
        made.session_text = made.session_bytes
    return made


cdef void changed_among(rdmeta_cache_t *cache, uint64_t since, const rdmeta_str_t *topics, size_t n,
                        uint8_t *hits) noexcept nogil:
    """Sets hits[i] to 1 for each topic that changed after `since`; `hits` must be zeroed.

    It halves the list until no topic of a part has changed: usually only few topics have.
    """
    cdef size_t half = n // 2
    if not n or not rdmeta_cache_wait(cache, since, topics, n, 0):
        return
    if n == 1:
        hits[0] = 1
        return
    changed_among(cache, since, topics, half, hits)
    changed_among(cache, since, topics + half, n - half, hits + half)

# The metadata log: batches, records as JSON, and the replay to a state. Included by _core.pyx.
#
# Callers pass bytes that they have read: the objects must not change during a call, which releases
# the GIL. A whole batch is the least that a call uses.

cdef tuple KRAFT_FAULTS = (
    None, "cut", "zeros", "no_batch", "old_format", "bad_crc", "compressed", "bad_record", "gap",
    "contradicts", "reached",
)

@cython.final
@cython.internal
cdef class LogBytes:
    """Borrows the bytes of a caller's object, from a byte on."""

    cdef Py_buffer held
    cdef const uint8_t *p
    cdef size_t size

    def __cinit__(self, data, start=0):
        PyObject_GetBuffer(data, &self.held, PyBUF_SIMPLE)
        cdef Py_ssize_t at = integer(start, "start", 0, self.held.len)
        self.p = <const uint8_t *> self.held.buf + at
        self.size = <size_t> (self.held.len - at)

    def __dealloc__(self):
        PyBuffer_Release(&self.held)


cdef struct LineBuffer:
    char *bytes
    size_t used
    size_t capacity


cdef struct RecordFilter:
    uint64_t types  # bits of api keys
    uint32_t controls  # bits of control records' types
    rdmeta_str_t topic  # data NULL: any
    int64_t since, until  # offsets of records
    int32_t partition  # RDMETA_NONE: any
    int32_t broker
    int32_t flags  # of the JSON


cdef rdmeta_err_t lines_add(LineBuffer *lines, const rdmeta_kraft_record_t *record,
                            rdmeta_str_t topic, int32_t flags) noexcept nogil:
    """Appends a record and a newline. NO_MEMORY, MALFORMED."""
    cdef rdmeta_err_t err = RDMETA_ERR_TOO_SMALL
    cdef size_t capacity, size = 0
    cdef char *grown
    while err == RDMETA_ERR_TOO_SMALL:
        if size + 1 > lines.capacity - lines.used:
            capacity = 2 * lines.capacity + size + 4096
            grown = <char *> realloc(lines.bytes, capacity)
            if grown is NULL:
                return RDMETA_ERR_NO_MEMORY
            lines.bytes = grown
            lines.capacity = capacity
        err = rdmeta_kraft_record_json(record, topic, flags, lines.bytes + lines.used,
                                       lines.capacity - lines.used - 1, &size)
    if not err:
        lines.bytes[lines.used + size] = 10
        lines.used += size + 1
    return err


cdef rdmeta_err_t batch_lines(const rdmeta_kraft_state_t *state, const rdmeta_kraft_batch_t *batch,
                              const RecordFilter *wanted, LineBuffer *lines) noexcept nogil:
    """Appends the records of a batch that are wanted. NO_MEMORY; MALFORMED: bad bytes.

    The batch was replayed: the state has the names of its topics.
    """
    cdef rdmeta_kraft_record_t record
    cdef rdmeta_kraft_about_t about
    cdef rdmeta_kraft_place_t place
    cdef rdmeta_kraft_topic_t topic
    cdef rdmeta_err_t err
    cdef int32_t got
    memset(&place, 0, sizeof(place))
    while True:
        got = rdmeta_kraft_record_next(batch, &place, &record)
        if got <= 0:
            return RDMETA_OK if got == 0 else RDMETA_ERR_MALFORMED
        if record.offset < wanted.since or record.offset >= wanted.until:
            continue
        if record.type < 64 and not (((wanted.controls if record.control else wanted.types)
                                      >> record.type) & 1):
            continue
        rdmeta_kraft_record_about(&record, &about)
        if about.topic.data is NULL and about.topic_id is not NULL:
            rdmeta_kraft_topic_find_id(state, about.topic_id, &topic)
            about.topic = topic.name
        if wanted.topic.data is not NULL and (
                about.topic.data is NULL or about.topic.len != wanted.topic.len
                or memcmp(about.topic.data, wanted.topic.data, about.topic.len) != 0):
            continue
        if wanted.partition != RDMETA_NONE and about.partition != wanted.partition:
            continue
        if wanted.broker != RDMETA_NONE and about.broker != wanted.broker:
            continue
        err = lines_add(lines, &record, about.topic, wanted.flags)
        if err:
            return err


cdef object kraft_json(const rdmeta_kraft_record_t *record, int32_t flags):
    """Returns the data of a record as a str of JSON. MemoryError."""
    cdef LineBuffer lines
    cdef rdmeta_str_t none
    none.data = NULL
    none.len = 0
    memset(&lines, 0, sizeof(lines))
    try:
        if lines_add(&lines, record, none, flags | RDMETA_KRAFT_DATA_ALONE):
            raise MemoryError
        return PyUnicode_DecodeUTF8(lines.bytes, <Py_ssize_t> lines.used - 1, "strict")
    finally:
        free(lines.bytes)


cdef object kraft_type(int32_t control, int32_t type_):
    """Returns the name of a type, or its number if the table has none."""
    cdef const char *name = rdmeta_kraft_type_name(control, type_)
    return type_ if name is NULL else name.decode("ascii")


cdef tuple kraft_mark(const rdmeta_kraft_mark_t *mark):
    """Returns offset, microseconds since 1970, epoch or None, and whether it is "at or before"."""
    return (mark.offset, mark.time_us, some(mark.epoch), bool(mark.at_or_before))


cdef tuple kraft_ids(rdmeta_wire_ids_t ids):
    cdef uint32_t i
    return tuple([big_endian(ids.be + 4 * i, 4) for i in range(ids.count)])


cdef tuple kraft_uuids(const uint8_t *p, uint32_t n):
    cdef uint32_t i
    return tuple([uuid_text(p + 16 * i) for i in range(n)])


cdef object uuid_text(const uint8_t *p):
    """Returns a UUID as Kafka writes it, all zeros too."""
    return b2a_base64((<const char *> p)[:16], newline=False).decode("ascii").replace(
        "+", "-").replace("/", "_")[:22]


def kraft_batch(data, start=0, /):
    """Reads the record batch at the byte `start` of `data`, and checks its CRC.

    Returns (fault, size, base_offset, last_offset, time_ms, epoch, records, control). `fault` is
    None for a good batch; "cut" if `data` ends within it: `size` is then what it takes at least, as
    far as it is known; or "zeros", "no_batch", "old_format", "bad_crc", "compressed".
    """
    cdef LogBytes given = LogBytes(data, start)
    cdef rdmeta_kraft_batch_t b
    cdef int32_t fault = rdmeta_kraft_batch(given.p, given.size, &b)
    return (KRAFT_FAULTS[fault], b.size, b.base_offset, b.last_offset, b.time_ms, b.epoch, b.count,
            bool(b.control))


cdef int64_t big_endian(const uint8_t *p, int n) noexcept nogil:
    """Reads a signed number of n bytes."""
    cdef int64_t v = <signed char> p[0]
    cdef int i
    for i in range(1, n):
        v = v << 8 | p[i]
    return v


def kraft_plain(data, start, end, epoch, least_ms, most_ms, stop, /):
    """Passes over whole batches from a byte on that bring nothing new, by their heads alone.

    Such a batch begins at the offset `end`, is of that epoch, no control batch, ends before the
    offset `stop`, and its time is `least_ms` to `most_ms`; no time goes back. Returns the byte, the
    offset and the time behind them.
    """
    cdef LogBytes given = LogBytes(data, start)
    cdef const uint8_t *p = given.p
    cdef int64_t next_ = end, time_ms = least_ms, most = most_ms, before = stop, size, last, ms
    cdef int64_t left = given.size
    cdef int32_t of = epoch
    while left >= 61:
        size = 12 + big_endian(p + 8, 4)
        last = next_ + big_endian(p + 23, 4)
        ms = big_endian(p + 35, 8)
        if (size < 61 or size > left or big_endian(p, 8) != next_ or last < next_
                or last >= before - 1 or big_endian(p + 12, 4) != of or p[16] != 2
                or p[22] & 0x27 or ms < time_ms or ms > most):
            break
        p += size
        left -= size
        next_ = last + 1
        time_ms = ms
    return start + (p - given.p), next_, time_ms


cdef uint64_t mixed(uint64_t x) noexcept nogil:
    """Returns a number of which each bit follows from all bits of another one (splitmix64)."""
    x ^= x >> 30
    x *= 0xbf58476d1ce4e5b9u
    x ^= x >> 27
    x *= 0x94d049bb133111ebu
    return x ^ x >> 31


cdef void sum_batch(const uint8_t *p, uint64_t *high, uint64_t *low) noexcept nogil:
    """Adds 128 bits that stand for a batch's offset, epoch and CRC."""
    cdef uint64_t offset = <uint64_t> big_endian(p, 8)
    cdef uint64_t about = (<uint64_t> big_endian(p + 12, 4) << 32
                           | <uint32_t> big_endian(p + 17, 4))
    cdef uint64_t more = mixed(mixed(offset + 0x9e3779b97f4a7c15u) ^ about)
    low[0] += more
    high[0] += mixed(mixed(about + 0x9e3779b97f4a7c15u) ^ offset) + (low[0] < more)


def kraft_sum(data, start=0, /):
    """Returns a number of 128 bits for the offset, epoch and CRC of the batch at a byte."""
    cdef LogBytes given = LogBytes(data, start)
    cdef uint64_t high = 0, low = 0
    if given.size < 61:
        raise ValueError(f"no head of a batch at byte {start}")
    sum_batch(given.p, &high, &low)
    return (<object> high << 64) | low


def kraft_summed(data, start, end, epoch, least_ms, most_ms, stop, /):
    """Passes over whole batches from a byte on, as kraft_plain() does, and checks their CRCs.

    One that is not good is not passed over. Returns the byte, the offset and the time behind them,
    the number of their records, and the sum of kraft_sum(), modulo 2**128.
    """
    cdef LogBytes given = LogBytes(data, start)
    cdef const uint8_t *p = given.p
    cdef size_t left = given.size
    cdef int64_t next_ = end, time_ms = least_ms, most = most_ms, before = stop, records = 0
    cdef int32_t of = epoch
    cdef uint64_t high = 0, low = 0
    cdef rdmeta_kraft_batch_t b
    with nogil:
        while not rdmeta_kraft_batch(p, left, &b):
            if (b.base_offset != next_ or b.last_offset >= before - 1 or b.epoch != of
                    or b.control or b.time_ms < time_ms or b.time_ms > most):
                break
            sum_batch(p, &high, &low)
            next_ = b.last_offset + 1
            time_ms = b.time_ms
            records += b.count
            p += b.size
            left -= b.size
    return start + (p - given.p), next_, time_ms, records, (<object> high << 64) | low


def kraft_records(data, start=0, /, *, show_secrets=False):
    """Returns the records of the good batch at the byte `start` of `data`.

    Each is (offset, microseconds since 1970, epoch, type, version, JSON of its data). The type is a
    name, or a number where it is unknown; of such a one, the JSON is its value in base64.
    MalformedError for a batch or a record that is not good.
    """
    cdef LogBytes given = LogBytes(data, start)
    cdef rdmeta_kraft_batch_t b
    cdef rdmeta_kraft_record_t r
    cdef rdmeta_kraft_place_t place
    cdef list found = []
    cdef int32_t flags = RDMETA_KRAFT_SHOW_SECRETS if show_secrets else 0
    cdef int32_t got = -1
    memset(&place, 0, sizeof(place))
    if not rdmeta_kraft_batch(given.p, given.size, &b):
        got = rdmeta_kraft_record_next(&b, &place, &r)
    while got > 0:
        found.append((r.offset, r.time_us, r.epoch, kraft_type(r.control, r.type), r.version,
                      kraft_json(&r, flags)))
        got = rdmeta_kraft_record_next(&b, &place, &r)
    if got < 0:
        raise from_code(RDMETA_ERR_MALFORMED, f"no good batch of a metadata log at byte {start}")
    return found


cdef struct Columns:
    size_t count, capacity
    int64_t *offsets
    int64_t *times
    int32_t *epochs
    int32_t *types  # a control record's type is negative, less one
    int32_t *versions
    int32_t *partitions
    int32_t *brokers
    int32_t *data_ends
    int32_t *name_ends
    char *ids  # 16 bytes for each; zeros: none
    LineBuffer data
    LineBuffer names


def kraft_summary(data, /):
    """Reads whole batches, one after the other, and checks their CRCs.

    Returns (fault, bytes used, first offset, end, earliest ms, latest ms, topics): `topics` are the
    (id of 16 bytes, name) of Topic records. Without a batch both offsets are -1. `fault` says what
    follows, as kraft_batch() does; also "bad_record".
    """
    cdef LogBytes given = LogBytes(data)
    cdef rdmeta_kraft_batch_t b
    cdef rdmeta_kraft_record_t r
    cdef rdmeta_kraft_about_t about
    cdef rdmeta_kraft_place_t place
    cdef size_t used = 0
    cdef int64_t first = -1, end = -1, least = INT64_MAX, most = INT64_MIN
    cdef int32_t fault = RDMETA_KRAFT_OK, got
    cdef list topics = []
    while used < given.size:
        fault = rdmeta_kraft_batch(given.p + used, given.size - used, &b)
        if fault:
            break
        memset(&place, 0, sizeof(place))
        got = 0 if b.control else rdmeta_kraft_record_next(&b, &place, &r)
        while got > 0:
            if r.type == RDMETA_KRAFT_TOPIC:
                rdmeta_kraft_record_about(&r, &about)
                if about.topic_id is not NULL and about.topic.data is not NULL:
                    topics.append(((<const char *> about.topic_id)[:16], text(about.topic)))
            got = rdmeta_kraft_record_next(&b, &place, &r)
        if got < 0:
            fault = RDMETA_KRAFT_BAD_RECORD
            break
        first = b.base_offset if first < 0 else first
        end = b.last_offset + 1
        least = min(least, b.base_time_ms)
        most = max(most, b.time_ms)
        used += b.size
    return KRAFT_FAULTS[fault], used, first, end, least, most, topics


def kraft_columns(data, since, until, /, bint with_data=True):
    """Returns the records of the offsets `since` to before `until` in whole batches, by columns.

    That is a dict: `count`, and bytes of numbers as the machine has them: `offset`, `time` (int64,
    microseconds), `epoch`, `type`, `version`, `partition`, `broker` (int32; -2**31 for none). A
    control record's `type` is -1 - its number. `topic_id` has 16 bytes for each, zeros for none.
    `data` (JSON without secrets; that of an unknown record is its value in base64) and `topic` (a
    name, if the record has it) are texts one after the other; `data_ends` and `topic_ends` (int32)
    say where each ends. MalformedError for what is no good batch.
    """
    cdef LogBytes given = LogBytes(data)
    cdef int64_t begin = since, end = until
    cdef rdmeta_err_t err
    cdef Columns c
    memset(&c, 0, sizeof(c))
    try:
        with nogil:
            err = columns_of(given.p, given.size, begin, end, with_data, &c)
        if err == RDMETA_ERR_NO_MEMORY:
            raise MemoryError
        if err:
            raise from_code(err, "no good batch of a metadata log")
        return {
            "count": c.count,
            "offset": bytes_of(c.offsets, 8 * c.count), "time": bytes_of(c.times, 8 * c.count),
            "epoch": bytes_of(c.epochs, 4 * c.count), "type": bytes_of(c.types, 4 * c.count),
            "version": bytes_of(c.versions, 4 * c.count),
            "partition": bytes_of(c.partitions, 4 * c.count),
            "broker": bytes_of(c.brokers, 4 * c.count),
            "topic_id": bytes_of(c.ids, 16 * c.count),
            "data": bytes_of(c.data.bytes, c.data.used),
            "data_ends": bytes_of(c.data_ends, 4 * c.count),
            "topic": bytes_of(c.names.bytes, c.names.used),
            "topic_ends": bytes_of(c.name_ends, 4 * c.count),
        }
    finally:
        for p in (<size_t> c.offsets, <size_t> c.times, <size_t> c.epochs, <size_t> c.types,
                  <size_t> c.versions, <size_t> c.partitions, <size_t> c.brokers,
                  <size_t> c.data_ends, <size_t> c.name_ends, <size_t> c.ids,
                  <size_t> c.data.bytes, <size_t> c.names.bytes):
            free(<void *> <size_t> p)


cdef bytes bytes_of(const void *p, size_t size):
    return PyBytes_FromStringAndSize(<const char *> p, <Py_ssize_t> size)


cdef rdmeta_err_t columns_of(const uint8_t *p, size_t size, int64_t since, int64_t until,
                             bint with_data, Columns *c) noexcept nogil:
    """Appends the records of all batches. NO_MEMORY, MALFORMED."""
    cdef rdmeta_kraft_batch_t batch
    cdef rdmeta_kraft_record_t record
    cdef rdmeta_kraft_place_t place
    cdef rdmeta_err_t err
    cdef size_t used = 0
    cdef int32_t got
    while used < size:
        if rdmeta_kraft_batch(p + used, size - used, &batch):
            return RDMETA_ERR_MALFORMED
        used += batch.size
        if batch.last_offset < since or batch.base_offset >= until:
            continue
        if columns_grow(c, c.count + <size_t> batch.count):
            return RDMETA_ERR_NO_MEMORY
        memset(&place, 0, sizeof(place))
        got = rdmeta_kraft_record_next(&batch, &place, &record)
        while got > 0:
            if since <= record.offset < until:
                err = columns_add(c, &record, with_data)
                if err:
                    return err
            got = rdmeta_kraft_record_next(&batch, &place, &record)
        if got < 0:
            return RDMETA_ERR_MALFORMED
    return RDMETA_OK


cdef rdmeta_err_t columns_add(Columns *c, const rdmeta_kraft_record_t *record,
                              bint with_data) noexcept nogil:
    """Appends a record, for which there is room. NO_MEMORY, MALFORMED."""
    cdef rdmeta_kraft_about_t about
    cdef rdmeta_str_t none
    cdef rdmeta_err_t err
    cdef size_t n = c.count
    c.offsets[n] = record.offset
    c.times[n] = record.time_us
    c.epochs[n] = record.epoch
    c.types[n] = -1 - record.type if record.control else record.type
    c.versions[n] = record.version
    rdmeta_kraft_record_about(record, &about)
    c.partitions[n] = about.partition
    c.brokers[n] = about.broker
    if about.topic_id is not NULL:
        memcpy(c.ids + 16 * n, about.topic_id, 16)
    else:
        memset(c.ids + 16 * n, 0, 16)
    if about.topic.data is not NULL:
        if lines_room(&c.names, about.topic.len):
            return RDMETA_ERR_NO_MEMORY
        memcpy(c.names.bytes + c.names.used, about.topic.data, about.topic.len)
        c.names.used += about.topic.len
    c.name_ends[n] = <int32_t> c.names.used
    if with_data:
        none.data = NULL
        none.len = 0
        err = lines_add(&c.data, record, none, RDMETA_KRAFT_DATA_ALONE)
        if err:
            return err
        c.data.used -= 1  # the newline
    c.data_ends[n] = <int32_t> c.data.used
    c.count = n + 1
    return RDMETA_OK


cdef int lines_room(LineBuffer *lines, size_t size) noexcept nogil:
    """Makes room for so many bytes; returns -1 without memory."""
    cdef size_t capacity = 2 * lines.capacity + size + 4096
    cdef char *grown
    if size > lines.capacity - lines.used:
        grown = <char *> realloc(lines.bytes, capacity)
        if grown is NULL:
            return -1
        lines.bytes = grown
        lines.capacity = capacity
    return 0


cdef int columns_grow(Columns *c, size_t count) noexcept nogil:
    """Makes room for so many records; returns -1 without memory."""
    cdef size_t n = 2 * count + 256
    if count <= c.capacity:
        return 0
    if (number_grow(<void **> &c.offsets, 8 * n) or number_grow(<void **> &c.times, 8 * n)
            or number_grow(<void **> &c.epochs, 4 * n) or number_grow(<void **> &c.types, 4 * n)
            or number_grow(<void **> &c.versions, 4 * n)
            or number_grow(<void **> &c.partitions, 4 * n)
            or number_grow(<void **> &c.brokers, 4 * n)
            or number_grow(<void **> &c.data_ends, 4 * n)
            or number_grow(<void **> &c.name_ends, 4 * n) or number_grow(<void **> &c.ids, 16 * n)):
        return -1
    c.capacity = n
    return 0


cdef int number_grow(void **p, size_t size) noexcept nogil:
    cdef void *grown = realloc(p[0], size)
    if grown is NULL:
        return -1
    p[0] = grown
    return 0


def kraft_types():
    """Returns the names of types: each with whether it is a control record's, and its number."""
    cdef int32_t control, number
    cdef dict found = {}
    for control in range(2):
        for number in range(64):
            name = kraft_type(control, number)
            if name != number:
                found[name] = (bool(control), number)
    return found


def kraft_is_sensitive(str key not None, /):
    """Returns whether the name of a configuration says that its value is a secret."""
    cdef rdmeta_str_t name
    owner = view(key, "key", &name)
    return bool(rdmeta_kraft_is_sensitive(name))


@cython.final
cdef class KraftReplay:
    """Replays a metadata log to a state, and makes the change records on the way.

        replay = KraftReplay(session=str(uuid.uuid4()))
        replay.snapshot(path.read_bytes(), end, epoch)
        used = replay.replay(segment.read_bytes())
        replay.partition("orders", 3), replay.changes().to_arrow()

    With a `session` the changes are kept, for changes(). The replay ends before the first batch
    that reaches beyond `until_offset`, or is later than `until_us`. `listener` names the endpoint
    of brokers; by default it is their first one. `epoch`, `leader` and `latest_us` are what is
    known of the log before the first batch. With `skip` it goes on behind records that contradict
    the state, and behind gaps; the state is then partial. ValueError, MemoryError. One thread at a
    time may use it; others get RuntimeError.
    """

    cdef rdmeta_kraft_replay_t *replay_
    cdef ChangeTable kept
    cdef bytes cluster, listener
    cdef bint busy

    def __cinit__(self, *, str cluster_id=None, str listener=None, str session=None,
                  until_offset=INT64_MAX, until_us=INT64_MAX, epoch=None, leader=None,
                  latest_us=INT64_MIN,
                  skip=False, show_secrets=False):
        cdef rdmeta_kraft_conf_t conf
        rdmeta_kraft_conf_init(&conf)
        self.cluster = None if cluster_id is None else cluster_id.encode("utf-8", "surrogateescape")
        self.listener = None if listener is None else listener.encode("utf-8", "surrogateescape")
        conf.cluster_id = bytes_view(self.cluster)
        conf.listener = bytes_view(self.listener)
        conf.until_offset = integer(until_offset, "until_offset", 0, INT64_MAX)
        conf.until_us = integer(until_us, "until_us", INT64_MIN, INT64_MAX)
        if epoch is not None:
            conf.epoch = <int32_t> integer(epoch, "epoch", 0, INT32_MAX)
        if leader is not None:
            conf.leader = <int32_t> integer(leader, "leader", 0, INT32_MAX)
        conf.latest_us = integer(latest_us, "latest_us", INT64_MIN, INT64_MAX)
        conf.skip = bool(skip)
        conf.show_secrets = bool(show_secrets)
        if session is not None:
            self.kept = no_records(session)
            conf.visit = record_visit
            conf.opaque = &self.kept.records
        if rdmeta_kraft_replay_new(&conf, &self.replay_):
            raise MemoryError

    def __dealloc__(self):
        rdmeta_kraft_replay_destroy(self.replay_)

    def __reduce__(self):
        raise TypeError("a KraftReplay cannot be pickled or copied")

    cdef int begin(self) except -1:
        """Begins a call in this thread. RuntimeError if another thread is in one."""
        if self.busy:
            raise RuntimeError("another thread uses this replay: one thread at a time may use it")
        self.busy = True
        return 0

    cdef const rdmeta_kraft_state_t *state(self) except NULL:
        """Returns the state. RuntimeError while another thread replays."""
        if self.busy:
            raise RuntimeError("another thread uses this replay: one thread at a time may use it")
        return rdmeta_kraft_replay_state(self.replay_)

    cdef int check(self, rdmeta_err_t err) except -1:
        if err == RDMETA_ERR_NO_MEMORY:
            raise MemoryError
        if err:
            raise from_code(err, self.fault[4] or "the snapshot and the log are out of turn")
        return 0

    def until(self, offset, time_us=INT64_MAX, /):
        """Moves the end: the replay ends before the first batch that reaches beyond it."""
        cdef int64_t at = integer(offset, "offset", 0, INT64_MAX)
        cdef int64_t us = integer(time_us, "time_us", INT64_MIN, INT64_MAX)
        self.state()
        rdmeta_kraft_replay_until(self.replay_, at, us)

    cdef size_t give(self, data, bint is_snapshot, int64_t end, int32_t epoch,
                     int32_t *ended) except? 0:
        """Gives bytes of a log or of a snapshot to C. Returns how many it used."""
        cdef LogBytes given = LogBytes(data)
        cdef size_t used = 0
        cdef rdmeta_err_t err
        self.begin()
        with nogil:
            if is_snapshot:
                err = rdmeta_kraft_replay_snapshot(self.replay_, given.p, given.size, end, epoch,
                                                   &used, ended)
            else:
                err = rdmeta_kraft_replay(self.replay_, given.p, given.size, &used)
        self.busy = False
        self.check(err)
        return used

    def replay(self, data, /):
        """Applies the whole batches of `data`. Returns the bytes used.

        `fault` says what follows them: None, or "cut", "zeros", "reached". A batch that was applied
        before changes nothing. MalformedError: `fault` says which record or batch is bad; what
        precedes it is applied. ArgumentError within a snapshot. MemoryError: the same call goes on.
        """
        return self.give(data, False, 0, 0, NULL)

    def snapshot(self, data, end, epoch, /):
        """Applies batches of the snapshot that ends at `end`, in `epoch`, as replay() does.

        Returns the bytes used, and whether the snapshot has ended; then the log goes on at `end`.
        The state must be empty before. MalformedError, ArgumentError, MemoryError.
        """
        cdef int32_t ended = 0
        cdef size_t used = self.give(data, True, integer(end, "end", 0, INT64_MAX),
                                     <int32_t> integer(epoch, "epoch", 0, INT32_MAX), &ended)
        return used, bool(ended)

    def lines(self, data, /, *, since=0, until=INT64_MAX, types=None, controls=None,
              str topic=None, partition=None, broker=None, show_secrets=False):
        """Applies batches as replay() does, and returns (their records as lines of JSON, used).

        Only records of the offsets from `since` to before `until` come; a batch behind them ends
        the call. `types` and `controls` are sets of api keys and of control records' types; without
        either, all records come. A record has the name that its topic has or had in its batch. Of a
        bad batch `fault` tells; it ends the call, without an exception. MemoryError.
        """
        cdef LogBytes given = LogBytes(data)
        cdef RecordFilter wanted
        cdef LineBuffer lines
        cdef rdmeta_err_t err
        cdef size_t used = 0
        wanted.types = kraft_bits(types) if types is not None or controls is None else 0
        wanted.controls = <uint32_t> (kraft_bits(controls)
                                      if controls is not None or types is None else 0)
        owner = None
        wanted.topic.data = NULL
        if topic is not None:
            owner = view(topic, "topic", &wanted.topic)
        wanted.since = integer(since, "since", 0, INT64_MAX)
        wanted.until = integer(until, "until", 0, INT64_MAX)
        wanted.partition = RDMETA_NONE if partition is None else int32(partition, "partition")
        wanted.broker = RDMETA_NONE if broker is None else int32(broker, "broker")
        wanted.flags = RDMETA_KRAFT_SHOW_SECRETS if show_secrets else 0
        memset(&lines, 0, sizeof(lines))
        self.begin()
        with nogil:
            err = self.each_batch(given.p, given.size, &wanted, &lines, &used)
        self.busy = False
        try:
            if err == RDMETA_ERR_NO_MEMORY:
                raise MemoryError
            return PyBytes_FromStringAndSize(lines.bytes, <Py_ssize_t> lines.used), used
        finally:
            free(lines.bytes)

    cdef rdmeta_err_t each_batch(self, const uint8_t *p, size_t size, const RecordFilter *wanted,
                                 LineBuffer *lines, size_t *used) noexcept nogil:
        """Writes and applies one batch after the other; MALFORMED, NO_MEMORY."""
        cdef const rdmeta_kraft_state_t *state = rdmeta_kraft_replay_state(self.replay_)
        cdef rdmeta_kraft_batch_t batch
        cdef rdmeta_err_t err = RDMETA_OK
        cdef size_t step
        while True:
            step = size - used[0]
            if step and rdmeta_kraft_batch(p + used[0], step, &batch) == RDMETA_KRAFT_OK:
                step = batch.size if batch.base_offset < wanted.until else 0
            err = rdmeta_kraft_replay(self.replay_, p + used[0], step, &step)
            if err or not step:
                return err
            err = batch_lines(state, &batch, wanted, lines)
            if err:
                return err
            used[0] += step

    @property
    def fault(self):
        """How the last call ended: (code or None, offset or None, byte, needed bytes, text)."""
        cdef const rdmeta_kraft_fault_t *f = rdmeta_kraft_fault(self.replay_)
        return (KRAFT_FAULTS[f.code], f.offset if f.offset >= 0 else None, f.byte, f.needed,
                (<const char *> f.text).decode("utf-8", "replace"))

    def info(self):
        """Returns where the state ends and what it has, as a dict of rdmeta_kraft_info_t."""
        cdef rdmeta_kraft_info_t i
        rdmeta_kraft_info(self.replay_, &i)
        return {
            "next": i.next, "snapshot_end": i.snapshot_end, "snapshot_us": i.snapshot_us,
            "latest_us": None if i.latest_us == INT64_MIN else i.latest_us,
            "transaction": None if i.transaction < 0 else i.transaction, "pending": i.pending,
            "topics": i.topics, "partitions": i.partitions, "brokers": i.brokers,
            "facts": i.facts, "directories": i.directories, "unknown": i.unknown,
            "skipped": i.skipped, "clocks_back": i.clocks_back, "epoch": some(i.epoch),
            "leader": some(i.leader), "partial": bool(i.partial),
        }

    def changes(self):
        """Returns the changes since the last call, as a table for Arrow with read().

        ValueError without a session.
        """
        cdef ChangeTable found = self.kept
        if found is None:
            raise ValueError("this replay keeps no changes: give it a session")
        self.state()
        found = no_records(self.kept.session)
        found.records = self.kept.records
        memset(&self.kept.records, 0, sizeof(RecordBuffer))
        return found

    def whole(self, wall_us, /, str session=None):
        """Returns the changes that tell the state from nothing, all at this time, as a table.

        MemoryError.
        """
        cdef ChangeTable found = no_records(session)
        cdef int64_t when = integer(wall_us, "wall_us", INT64_MIN, INT64_MAX)
        cdef rdmeta_err_t err
        self.begin()
        with nogil:
            err = rdmeta_kraft_state_changes(self.replay_, when, record_visit, &found.records)
        self.busy = False
        self.check(err)
        return found

    def topics(self):
        """Returns (name, id, number of partitions, mark) of each topic, by name."""
        cdef const rdmeta_kraft_state_t *state = self.state()
        cdef rdmeta_kraft_topic_t t
        cdef list found = []
        memset(&t, 0, sizeof(t))
        while rdmeta_kraft_topic_next(state, t.name, &t):
            found.append((text(t.name), uuid_text(t.id), t.partitions, kraft_mark(&t.mark)))
        return found

    cdef tuple partition_of(self, const rdmeta_kraft_partition_t *p):
        cdef list directories = []
        cdef const rdmeta_kraft_state_t *state = rdmeta_kraft_replay_state(self.replay_)
        for number in kraft_ids(p.directories):
            directories.append(uuid_text(rdmeta_kraft_directory_id(state, <uint32_t> number)))
        return (p.id, p.leader, p.leader_epoch, p.partition_epoch, bool(p.recovery),
                kraft_ids(p.replicas), kraft_ids(p.isr), kraft_ids(p.removing),
                kraft_ids(p.adding), kraft_ids(p.elr), kraft_ids(p.last_elr), tuple(directories),
                kraft_mark(&p.mark))

    def partitions(self, str topic not None, /):
        """Returns the partitions of a topic in the order of ids; none for an unknown topic.

        Each is (id, leader or -1, leader epoch, partition epoch, recovering, replicas, ISR,
        removing, adding, ELR, last known ELR, directories, mark).
        """
        cdef const rdmeta_kraft_state_t *state = self.state()
        cdef rdmeta_kraft_partition_t p
        cdef rdmeta_kraft_topic_t t
        cdef rdmeta_str_t name
        cdef list found = []
        cdef uint32_t i
        owner = view(topic, "topic", &name)
        if rdmeta_kraft_topic_find(state, name, &t):
            for i in range(t.partitions):
                rdmeta_kraft_partition_at(state, t.id, i, &p)
                found.append(self.partition_of(&p))
        return found

    def partition(self, str topic not None, partition, /):
        """Returns one partition as partitions() does; None: there is none."""
        cdef const rdmeta_kraft_state_t *state = self.state()
        cdef rdmeta_kraft_partition_t p
        cdef rdmeta_kraft_topic_t t
        cdef rdmeta_str_t name
        owner = view(topic, "topic", &name)
        if rdmeta_kraft_topic_find(state, name, &t) and rdmeta_kraft_partition_find(
                state, t.id, int32(partition, "partition"), &p):
            return self.partition_of(&p)
        return None

    def brokers(self):
        """Returns (id, epoch, fenced, shutting down, log dirs, cordoned or None, JSON of its
        registration, mark) of each broker, by id.
        """
        cdef const rdmeta_kraft_state_t *state = self.state()
        cdef rdmeta_kraft_broker_t b
        cdef list found = []
        b.id = -1
        while rdmeta_kraft_broker_next(state, b.id, &b):
            found.append((
                b.id, b.epoch, bool(b.fenced), bool(b.shutting_down),
                kraft_uuids(b.log_dirs, b.n_log_dirs),
                None if b.cordoned is NULL else kraft_uuids(b.cordoned, b.n_cordoned),
                kraft_json(&b.registration, 0), kraft_mark(&b.mark)))
        return found

    def facts(self, *, show_secrets=False):
        """Returns (type, JSON of its last record, mark) of all that is no row, by type and key."""
        cdef const rdmeta_kraft_state_t *state = self.state()
        cdef int32_t flags = RDMETA_KRAFT_SHOW_SECRETS if show_secrets else 0
        cdef rdmeta_kraft_fact_t f
        cdef list found = []
        memset(&f, 0, sizeof(f))
        while rdmeta_kraft_fact_next(state, f.record.control, f.record.type, f.key, f.key_len, &f):
            found.append((kraft_type(f.record.control, f.record.type),
                          kraft_json(&f.record, flags), kraft_mark(&f.mark)))
        return found

    def answer(self, str listener=None):
        """Returns the state as the body of a Metadata answer of version 12, for apply().

        Brokers are those that are not fenced, with the endpoint of `listener`, by default that of
        the replay. MemoryError.
        """
        cdef const rdmeta_kraft_state_t *state = self.state()
        cdef void *made = NULL
        cdef size_t size = 0
        cdef rdmeta_err_t err
        cdef rdmeta_str_t cluster = bytes_view(self.cluster)
        cdef bytes name = (self.listener if listener is None
                           else listener.encode("utf-8", "surrogateescape"))
        cdef rdmeta_str_t named = bytes_view(name)
        self.begin()
        with nogil:
            err = rdmeta_kraft_answer(state, cluster, named, &made, &size)
        self.busy = False
        if err:
            self.check(err)
        try:
            return PyBytes_FromStringAndSize(<const char *> made, <Py_ssize_t> size)
        finally:
            rdmeta_kraft_answer_free(made)


cdef rdmeta_str_t bytes_view(bytes data) noexcept:
    """Borrows the bytes of an object; None is null."""
    cdef rdmeta_str_t s
    s.data = NULL
    s.len = 0
    if data is not None:
        s.data = PyBytes_AS_STRING(data)
        s.len = <size_t> PyBytes_GET_SIZE(data)
    return s


cdef uint64_t kraft_bits(object types) except? 0:
    """Returns a set of types as bits; None: all."""
    cdef uint64_t bits = 0
    if types is None:
        return ~(<uint64_t> 0)
    for each in types:
        bits |= (<uint64_t> 1) << integer(each, "type", 0, 63)
    return bits

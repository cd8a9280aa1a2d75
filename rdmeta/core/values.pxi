# Conversions between Python's values and C's: names, numbers, ids, times, partitions, requests.
# Included by _core.pyx.

cdef extern from *:
    """
    /* Points into the UTF-8 of an ASCII str and returns 1; or returns 0, and
     * view() then converts the object. */
    static inline int rdmeta_py_ascii(PyObject *o, const char **data,
                                      size_t *len) {
            if (!PyUnicode_Check(o) || !PyUnicode_IS_COMPACT_ASCII(o))
                    return 0;
            *data = (const char *)PyUnicode_DATA(o);
            *len  = (size_t)PyUnicode_GET_LENGTH(o);
            return 1;
    }

    /* Copies an int of one digit (30 bits), not negative, and returns 1; or
     * returns 0, and int32() then converts the object. */
    static inline int rdmeta_py_small(PyObject *o, int32_t *out) {
            if (!PyLong_Check(o))
                    return 0;
    #if PY_VERSION_HEX >= 0x030C0000
            if (!PyUnstable_Long_IsCompact((PyLongObject *)o))
                    return 0;
            *out = (int32_t)PyUnstable_Long_CompactValue((PyLongObject *)o);
            return *out >= 0;
    #else
            if ((size_t)Py_SIZE(o) > 1)
                    return 0;
            *out = Py_SIZE(o) ? (int32_t)((PyLongObject *)o)->ob_digit[0] : 0;
            return 1;
    #endif
    }

    /* The coarse clock is late by up to a tick (1-4 ms) and costs a fifth of
     * the precise one. */
    #ifndef CLOCK_MONOTONIC_COARSE
    #define CLOCK_MONOTONIC_COARSE CLOCK_MONOTONIC
    #endif
    /* The kernel's own function, where the vDSO has it: the C library's wrapper
     * costs a third of a coarse reading. */
    #include <dlfcn.h>
    static int (*rdmeta_py_gettime)(clockid_t, struct timespec *) =
            clock_gettime;
    static void rdmeta_py_clock_init(void) {
            void *vdso = dlopen("linux-vdso.so.1", RTLD_LAZY | RTLD_NOLOAD);
            void *f = vdso ? dlsym(vdso, "__vdso_clock_gettime") : NULL;
            struct timespec ts;
            int (*gettime)(clockid_t, struct timespec *);

            memcpy(&gettime, &f, sizeof(gettime));
            if (f && gettime(CLOCK_MONOTONIC_COARSE, &ts) == 0)
                    rdmeta_py_gettime = gettime;
    }
    static inline int64_t rdmeta_py_clock(clockid_t clock) {
            struct timespec ts;
            rdmeta_py_gettime(clock, &ts);
            return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
    }
    """
    void rdmeta_py_clock_init()
    bint rdmeta_py_ascii(object o, const char **data, size_t *len) noexcept
    bint rdmeta_py_small(object o, int32_t *out) noexcept
    int64_t rdmeta_py_clock(int clock) noexcept nogil
    const int CLOCK_MONOTONIC_COARSE


cdef enum:
    # A century: longer TTLs and time-outs are cut to it, so that no sum overflows.
    FOREVER_US = 3_155_760_000_000_000
    # The time between two looks of a wait for Ctrl-C.
    SLICE_US = 50_000
    # The time for which a loop that makes many objects keeps the GIL: see let_others_run().
    TURN_US = 8_000
    # The most bytes of a topic's name: the longest string of Kafka's protocol.
    LONGEST_NAME = 32767
    # The most bytes of a reason that the cache keeps.
    REASON_BYTES = 255
    # The most ids of a partition's list that are read without an allocation.
    INLINE_IDS = 32


rdmeta_py_clock_init()
cdef object EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
# The first and the last time that a datetime can have: years 1 to 9999, in microseconds since 1970.
cdef int64_t FIRST_US = -62135596800 * 1000000
cdef int64_t LAST_US = 253402300800 * 1000000 - 1
cdef object new_tuple = tuple.__new__


# ---- names ----------------------------------------------------------------------------------

cdef object text(rdmeta_str_t s):
    """Returns a str, None for a null; bytes that are not UTF-8 become surrogates (PEP 383)."""
    if s.data is NULL:
        return None
    return PyUnicode_DecodeUTF8(s.data, <Py_ssize_t> s.len, "surrogateescape")


cdef object view(object name, str what, rdmeta_str_t *out):
    """Points `out` to the UTF-8 of a str; returns the object that owns those bytes.

    The caller keeps that object as long as it uses `out`. TypeError for anything but a str,
    ValueError for a str that has no UTF-8. `what` is the argument's name in the error.
    """
    cdef Py_ssize_t size
    cdef bytes raw
    if not isinstance(name, str):
        raise TypeError(f"{what} must be str, not {type(name).__name__}")
    if rdmeta_py_ascii(name, &out.data, &out.len):
        return name
    # str(name) would not do: a subclass, such as an Enum, may return any text there.
    raw = PyUnicode_AsEncodedString(name, "utf-8", "surrogateescape")
    out.data = PyBytes_AS_STRING(raw)
    out.len = <size_t> PyBytes_GET_SIZE(raw)
    return raw


cdef object wall_datetime(int64_t wall_us):
    """Returns a wall time as a datetime in UTC.

    A time that no datetime can have becomes the first or the last one: a file, or a user's clock,
    may contain any time.
    """
    return EPOCH + timedelta(microseconds=min(max(wall_us, FIRST_US), LAST_US))


# ---- numbers --------------------------------------------------------------------------------

cdef int64_t integer(object value, str what, int64_t low, int64_t high) except? -1:
    """Returns the value of any integer object. TypeError; ValueError outside of low .. high."""
    cdef int overflow = 0
    cdef long long n
    if not PyIndex_Check(value):
        raise TypeError(f"{what} must be an int, not {type(value).__name__}")
    n = PyLong_AsLongLongAndOverflow(index(value), &overflow)
    if overflow or n < low or n > high:
        raise ValueError(f"{what} must be in {low} .. {high}, not {value!r}")
    return n


cdef int32_t int32(object value, str what) except? -1:
    return <int32_t> integer(value, what, INT32_MIN, INT32_MAX)


cdef uint64_t unsigned(object value, str what) except? 0:
    """Returns a version, or any other integer of 64 bits without a sign. TypeError, ValueError."""
    if not PyIndex_Check(value):
        raise TypeError(f"{what} must be an int, not {type(value).__name__}")
    value = index(value)
    if not 0 <= value < 1 << 64:
        raise ValueError(f"{what} must be in 0 .. 2**64 - 1, not {value!r}")
    return <uint64_t> value


cdef int64_t microseconds(object seconds, str what) except -1:
    """Returns a number of seconds as microseconds, a century at most.

    TypeError; ValueError if it is negative or NaN.
    """
    cdef double s = waits.seconds_of(seconds, what)
    return <int64_t> min(s * 1e6 + 0.5, <double> FOREVER_US)


cdef int64_t lifetime(object seconds, str what) except -1:
    """Returns what microseconds() returns; ValueError also for 0."""
    cdef int64_t us = microseconds(seconds, what)
    if us == 0:
        raise ValueError(f"{what} must be more than 0 seconds, not {seconds!r}")
    return us


cdef object key_view(object key, rdmeta_str_t *out):
    """Points `out` to the bytes of a record's key, to NULL for None; returns their owner.

    The caller keeps the owner as long as it uses `out`. TypeError.
    """
    cdef object raw  # not `bytes`: Cython would refuse an object of a subclass
    cdef Py_buffer data
    out.data = NULL
    out.len = 0
    if key is None:
        return None
    if isinstance(key, bytes):
        raw = key
    elif PyObject_CheckBuffer(key):
        PyObject_GetBuffer(key, &data, PyBUF_SIMPLE)
        try:
            raw = PyBytes_FromStringAndSize(<char *> data.buf, data.len)
        finally:
            PyBuffer_Release(&data)
    else:
        raise TypeError("key must be bytes or a buffer of bytes, or None, not"
                        f" {type(key).__name__}: serialize it first")
    out.data = PyBytes_AS_STRING(raw)  # never NULL, which would mean that there is no key
    out.len = <size_t> PyBytes_GET_SIZE(raw)
    return raw


cdef inline object some(int32_t value):
    """Returns an id or epoch, None for a negative one: in C that means absent."""
    return value if value >= 0 else None


cdef inline object given(int32_t value):
    """Returns a bit field of authorized operations (KIP-430), None if it was not asked for."""
    return None if value == RDMETA_NONE else value


cdef int get_int32(object buffer, int flags, size_t n, Py_buffer *out) except -1:
    """Opens a contiguous buffer of n native int32; the caller releases it.

    BufferError or TypeError for an object without such a buffer, ValueError for another size or
    type of the items.
    """
    PyObject_GetBuffer(buffer, out, PyBUF_FORMAT | PyBUF_C_CONTIGUOUS | flags)
    if number_format(out) != 4 or <size_t> out.len != 4 * n:
        PyBuffer_Release(out)
        raise ValueError(f"out must be a contiguous buffer of {n} native int32")
    return 0


cdef char NATIVE_ORDER = c"<" if sys.byteorder == "little" else c">"


cdef int number_format(const Py_buffer *data) noexcept:
    """Returns 4 or 8, the size of native signed integers, or 0 for any other items."""
    cdef const char *format = data.format
    if format is NULL:
        return 0
    # The formats of ctypes begin with the byte order.
    if format[0] in (b"@", b"=", NATIVE_ORDER):
        format += 1
    if format[0] in (b"i", b"l", b"q") and format[1] == 0 and data.itemsize in (4, 8):
        return <int> data.itemsize
    return 0


# ---- topic ids ------------------------------------------------------------------------------

cdef object topic_id_text(const uint8_t *raw):
    """Returns a topic id in Kafka's spelling: URL-safe base64 without padding.

    Returns None for NULL and for 16 zeros.
    """
    if raw is NULL or memcmp(raw, ZERO_ID, 16) == 0:
        return None
    encoded = b2a_base64(raw[:16], newline=False)
    return encoded[:22].translate(URL_SAFE).decode("ascii")


cdef bytes topic_id_bytes(object value):
    """Returns the 16 bytes of a topic id: of Kafka's spelling, a uuid.UUID or 16 bytes.

    TypeError, ValueError.
    """
    cdef object raw = getattr(value, "bytes", value)
    if isinstance(value, str):
        try:
            raw = a2b_base64(value.encode("ascii").translate(STANDARD) + b"==")
        except ValueError:
            raw = b""
        if len(raw) != 16 or len(value) != 22:
            raise ValueError("a topic id must be 22 characters of URL-safe base64, not"
                             f" {value!r}")
    if not isinstance(raw, bytes):
        raise TypeError(f"a topic id must be str, uuid.UUID or bytes, not {type(value).__name__}")
    if len(raw) != 16:
        raise ValueError(f"a topic id must have 16 bytes, not {len(raw)}")
    return bytes(raw)  # a copy: Cython would refuse to return an object of a subclass of bytes


cdef uint8_t[16] ZERO_ID
memset(ZERO_ID, 0, 16)
cdef bytes URL_SAFE = bytes.maketrans(b"+/", b"-_")
cdef bytes STANDARD = bytes.maketrans(b"-_", b"+/")


# ---- partitions -----------------------------------------------------------------------------

@cython.final
cdef class Lists:
    """One partition as C returns it, with room for its three lists of broker ids."""

    cdef rdmeta_partition_t value
    cdef int32_t few[3][INLINE_IDS]
    cdef int32_t *large

    def __cinit__(self):
        self.set_room(&self.few[0][0], INLINE_IDS)

    def __dealloc__(self):
        PyMem_Free(self.large)

    cdef void set_room(self, int32_t *ids, uint32_t capacity) noexcept:
        """Lets the lists use `ids`, which has 3 * capacity ids."""
        self.value.replicas.ids = ids
        self.value.isr.ids = ids + capacity
        self.value.offline_replicas.ids = ids + 2 * capacity
        self.value.replicas.capacity = capacity
        self.value.isr.capacity = capacity
        self.value.offline_replicas.capacity = capacity

    cdef bint cut(self) noexcept:
        """Returns whether a list was longer than its room, so that C cut it."""
        return self.need() > self.value.replicas.capacity

    cdef uint32_t need(self) noexcept:
        """Returns the number of ids of the longest list."""
        return max(self.value.replicas.count, self.value.isr.count,
                   self.value.offline_replicas.count)

    cdef bint grow(self) noexcept:
        """Makes room for the longest list; returns False without memory."""
        cdef uint32_t need = self.need()
        cdef int32_t *ids
        ids = <int32_t *> PyMem_Realloc(self.large, 3 * sizeof(int32_t) * need)
        if ids is NULL:
            return False
        self.large = ids
        self.set_room(ids, need)
        return True

    cdef bint led_by(self, int32_t broker, bint last) noexcept:
        """Returns whether a broker is the leader; with `last`, the last leader if leaderless."""
        cdef int32_t leader = self.value.leader
        return (self.value.last_leader if last and leader < 0 else leader) == broker

    cdef bint has_replica(self, int32_t broker) noexcept:
        cdef uint32_t i
        for i in range(self.value.replicas.count):
            if self.value.replicas.ids[i] == broker:
                return True
        return False

    cdef object partition(self, object topic, object topic_id, bint last):
        """Returns a model.Partition; with `last`, a leaderless one has its last leader."""
        cdef rdmeta_partition_t *p = &self.value
        cdef int32_t leader = p.last_leader if last and p.leader < 0 else p.leader
        cdef tuple replicas = ids_tuple(p.replicas.ids, p.replicas.count)
        cdef tuple isr
        if p.isr.count == p.replicas.count and not memcmp(
                p.isr.ids, p.replicas.ids, p.isr.count * sizeof(int32_t)):
            isr = replicas
        else:
            isr = ids_tuple(p.isr.ids, p.isr.count)
        return new_tuple(Partition, (
            topic, topic_id, p.partition, some(leader), some(p.leader_epoch), replicas, isr,
            ids_tuple(p.offline_replicas.ids, p.offline_replicas.count), p.error,
            bool(p.unreachable), p.leader < 0))


cdef int read_partition(rdmeta_reader_t *reader, const rdmeta_topic_t *topic, uint32_t i,
                        Lists lists) except -1:
    """Reads the i-th partition of a borrowed topic; with `reader` NULL, `unreachable` stays 0.

    MemoryError, MalformedError.
    """
    cdef rdmeta_err_t err = rdmeta_topic_partition_at(reader, topic, i, &lists.value)
    if not err and lists.cut():
        if not lists.grow():
            raise MemoryError
        err = rdmeta_topic_partition_at(reader, topic, i, &lists.value)
    if err:
        raise from_code(err, f"the partition at index {i} of a topic")
    return 0


cdef tuple ids_tuple(const int32_t *ids, uint32_t count):
    cdef uint32_t i
    return tuple([ids[i] for i in range(count)])


cdef object broker_of(const rdmeta_broker_t *b):
    return Broker(b.id, text(b.host), b.port, text(b.rack))


# ---- requests and results -------------------------------------------------------------------

@cython.final
cdef class Asked:
    """A rdmeta_request_t, and the objects that own the memory it points to."""

    cdef rdmeta_request_t request
    cdef Names names
    cdef bytes ids
    cdef object reason

    cdef int topics(self, object asked) except -1:
        """Sets the topics: None, ALL, names (str), ids (uuid.UUID or 16 bytes), or () for none.

        TypeError, ValueError, MemoryError.
        """
        cdef int64_t turn = rdmeta_py_clock(CLOCK_MONOTONIC_COARSE)
        cdef Py_ssize_t named = 0
        cdef bytes raw
        cdef char *next_id
        if asked is None:
            self.request.asked = RDMETA_ASKED_UNKNOWN
            return 0
        if asked is ALL:
            self.request.asked = RDMETA_ASKED_ALL
            return 0
        if isinstance(asked, (str, bytes)):
            raise TypeError("the topics of a request must be ALL, names or ids, not one"
                            f" {type(asked).__name__}")
        asked = tuple(asked)
        for topic in asked:
            named += isinstance(topic, str)
            let_others_run(&turn)
        if not asked:
            self.request.asked = RDMETA_ASKED_BROKERS
        elif named == len(asked):
            self.names = Names(asked)
            self.request.asked = RDMETA_ASKED_NAMES
            self.request.names = self.names.items
        elif named:
            raise ValueError("the topics of a request must be all names or all ids, not both"
                             " (KIP-516)")
        else:
            self.ids = PyBytes_FromStringAndSize(NULL, 16 * len(asked))
            next_id = PyBytes_AS_STRING(self.ids)
            for topic in asked:
                raw = topic_id_bytes(topic)
                memcpy(next_id, PyBytes_AS_STRING(raw), 16)
                next_id += 16
                let_others_run(&turn)
            self.request.asked = RDMETA_ASKED_IDS
            self.request.ids = <void *> PyBytes_AS_STRING(self.ids)
        self.request.n = len(asked)
        return 0

    cdef int set_reason(self, object reason) except -1:
        """Sets the reason, a str; None leaves it empty. TypeError, ValueError."""
        if reason is not None:
            self.reason = view(reason, "reason", &self.request.reason)
        return 0

    cdef str fault(self):
        """Returns why the C core refuses the topics, None if it accepts them."""
        cdef size_t i
        if self.names is not None:
            return self.names.fault()
        for i in range(self.request.n):
            if self.ids[16 * i:16 * i + 16] == ZERO_ID[:16]:
                return f"topics[{i}] is an id of zeros"
        return None

    cdef int flag(self, bint on, int32_t flag) except -1:
        """Adds a flag if `on` is true."""
        if on:
            self.request.flags |= flag
        return 0


cdef Asked asked_of(object asked, object broker, object sent_version, object sent_hints,
                    uint64_t version):
    """Returns the request for apply(): a Request, or the arguments of apply().

    `sent_version` None means the Request's own or, without one, `version`, the cache's version now.
    `sent_hints` None means the Request's own or, without one, not known.
    TypeError, ValueError.
    """
    cdef Asked a = Asked.__new__(Asked)
    if isinstance(asked, Request):
        a.flag(asked.allow_auto_create, RDMETA_REQ_AUTO_CREATE)
        a.flag(asked.topic_authorized_operations, RDMETA_REQ_TOPIC_OPS)
        a.flag(asked.cluster_authorized_operations, RDMETA_REQ_CLUSTER_OPS)
        if sent_version is None:
            sent_version = asked.sent_version
        if sent_hints is None:
            sent_hints = asked.sent_hints
        asked = asked.topics
    a.topics(asked)
    a.request.broker = -1 if broker is None else int32(broker, "broker")
    a.flag(True, RDMETA_REQ_SENT_VERSION)
    a.request.sent_version = version
    if sent_version is not None:
        a.request.sent_version = unsigned(sent_version, "sent_version")
    if sent_hints is not None:
        a.flag(True, RDMETA_REQ_SENT_HINTS)
        a.request.sent_hints = unsigned(sent_hints, "sent_hints")
    return a


cdef tuple endpoint(node, leader):
    """Returns the (host, port, rack) of a leader hint's node. TypeError, ValueError."""
    if isinstance(node, Broker):
        if node.id != leader:
            raise ValueError("node must be the leader: it is broker"
                             f" {node.id}, but the leader is {leader}")
        return node.host, node.port, node.rack
    if not isinstance(node, (tuple, list)) or len(node) not in (2, 3):
        raise TypeError(f"node must be a Broker, (host, port) or (host, port, rack), not {node!r}")
    return tuple(node) if len(node) == 3 else (*node, None)


cdef object applied_of(const rdmeta_applied_t *a):
    return Applied(a.version, a.changed, a.topics, a.unchanged, a.kept_back, a.negative, a.absent,
                   a.leaderless, a.listener_not_found, a.unreachable,
                   bool(a.brokers_changed), Advice(a.advice), a.throttle_ms, a.error)

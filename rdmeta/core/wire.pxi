# Metadata requests are encoded and responses decoded here, without a cache. Included by _core.pyx.

cdef str _cannot_ask(int16_t version, rdmeta_request_t *request):
    """Returns why no request of a version can carry what is asked for, and what to change."""
    cdef int32_t flags = request.flags
    if request.asked == RDMETA_ASKED_IDS and version < 12:
        return f"a Metadata v{version} request cannot ask for topic ids, which need v12: give names"
    if version < 4 and not flags & RDMETA_REQ_AUTO_CREATE and request.asked != RDMETA_ASKED_BROKERS:
        return (f"a Metadata v{version} request cannot forbid the broker to create topics, which"
                " needs v4 (Kafka 0.11): set allow_auto_create (allow.auto.create.topics)")
    if flags & RDMETA_REQ_TOPIC_OPS and version < 8:
        return (f"a Metadata v{version} request cannot ask for operations, which needs v8"
                " (Kafka 2.3): leave operations out")
    return f"a Metadata v{version} request cannot carry these topics and flags"


def encode_metadata_request(version, topics=ALL, *, allow_auto_create=False,
                            topic_authorized_operations=False,
                            cluster_authorized_operations=False):
    """Returns the body of a Metadata request as bytes, without the request header.

        body = rdmeta.encode_metadata_request(12, ["orders"])

    `topics` is ALL, names, ids (uuid.UUID or 16 bytes), or () for brokers only.

    UnsupportedVersionError: the version cannot carry the request. v0 cannot ask for brokers only.
    Ids need v12 (KIP-516), auto-create off needs v4, and topic operations need v8. Cluster
    operations need v8 to v10 (KIP-430). ArgumentError: a name is empty or longer than 32 767 bytes,
    or an id is all zeros. TypeError, ValueError.
    """
    cdef Asked asked = Asked.__new__(Asked)
    cdef int16_t v = <int16_t> integer(version, "version", INT16_MIN, INT16_MAX)
    cdef size_t need = 0
    cdef bytes body
    cdef rdmeta_err_t err
    if topics is None:
        raise TypeError("topics must be ALL, names, ids or (), not None")
    asked.topics(topics)
    asked.flag(allow_auto_create, RDMETA_REQ_AUTO_CREATE)
    asked.flag(topic_authorized_operations, RDMETA_REQ_TOPIC_OPS)
    asked.flag(cluster_authorized_operations, RDMETA_REQ_CLUSTER_OPS)
    asked.request.broker = -1
    err = rdmeta_metadata_request_encode(v, &asked.request, NULL, 0, &need)
    if err == RDMETA_ERR_ARGUMENT:
        raise from_code(err, asked.fault())
    if err not in (RDMETA_OK, RDMETA_ERR_TOO_SMALL):
        raise from_code(err, _cannot_ask(v, &asked.request))
    body = PyBytes_FromStringAndSize(NULL, <Py_ssize_t> need)
    err = rdmeta_metadata_request_encode(v, &asked.request, PyBytes_AS_STRING(body), need, &need)
    if err:
        raise from_code(err, f"Metadata v{v} request")
    return body


def decode_metadata_response(body, version, *, tolerate_trailing=False):
    """Returns the body of a Metadata response as a plain dict; `body` has no response header.

    Its keys are throttle_ms (milliseconds), brokers, cluster_id, controller, topics, operations and
    error. Each broker, topic and partition is a dict as well. An absent id or bit field of
    operations is None. `tolerate_trailing` accepts one byte too many at the end, which librdkafka's
    mock brokers send from v9 on.

    MalformedError: the message gives the byte. UnsupportedVersionError. TypeError, ValueError.
    """
    cdef Tree tree = Tree.__new__(Tree)
    cdef int16_t v = <int16_t> integer(version, "version", INT16_MIN, INT16_MAX)
    cdef rdmeta_wire_visitor_t visitor
    cdef rdmeta_err_t err
    cdef size_t offset = 0
    cdef Py_buffer data
    visitor.broker = tree_broker
    visitor.head = tree_head
    visitor.topic = tree_topic
    visitor.partition = tree_partition
    visitor.topic_end = tree_topic_end
    visitor.end = tree_end
    tree.root = {"brokers": [], "topics": []}
    PyObject_GetBuffer(body, &data, PyBUF_SIMPLE)
    try:
        err = rdmeta_metadata_response_decode(
            data.buf, <size_t> data.len, v,
            RDMETA_REQ_TOLERATE_TRAILING if tolerate_trailing else 0, &visitor, <void *> tree,
            &offset)
    finally:
        PyBuffer_Release(&data)
    if err:
        where = f" at byte {offset}" if err == RDMETA_ERR_MALFORMED else ""
        raise from_code(err, f"Metadata v{v} response{where}")
    return tree.root


def encode_metadata_response(answer):
    """Returns the body of a Metadata v12 response, without a header, as bytes.

        body = rdmeta.encode_metadata_response(rdmeta.decode_metadata_response(other, 12))

    `answer` is a dict as decode_metadata_response() returns it. Version 12 has no error of its own
    and no operations on the cluster, so that `error` and `operations` are not read, and throttle_ms
    becomes 0.

    KeyError: an entry is missing. ArgumentError: a string is longer than 32 767 bytes, or a host
    is None. TypeError, ValueError.
    """
    cdef AnswerToEncode made = AnswerToEncode.__new__(AnswerToEncode)
    cdef rdmeta_err_t err
    cdef size_t need = 0
    cdef bytes body
    made.fill(answer)
    err = made.encode(NULL, 0, &need)
    if err != RDMETA_ERR_TOO_SMALL:
        raise from_code(err, "a string is too long for a Metadata response, or a host is None")
    body = PyBytes_FromStringAndSize(NULL, <Py_ssize_t> need)
    err = made.encode(PyBytes_AS_STRING(body), need, &need)
    if err:
        raise from_code(err, "Metadata v12 response")
    return body


@cython.final
@cython.internal
cdef class AnswerToEncode:
    """An answer of a caller as C takes it; `kept` owns what it points to."""

    cdef rdmeta_wire_head_t head
    cdef rdmeta_broker_t *brokers
    cdef rdmeta_wire_topic_t *topics
    cdef rdmeta_wire_partition_t *partitions
    cdef list kept

    def __cinit__(self):
        self.kept = []

    def __dealloc__(self):
        free(self.brokers)
        free(self.topics)
        free(self.partitions)

    cdef rdmeta_err_t encode(self, char *buf, size_t capacity, size_t *len) noexcept:
        return rdmeta_metadata_response_encode(&self.head, self.brokers, self.topics,
                                               self.partitions, buf, capacity, len)

    cdef int fill(self, object answer) except -1:
        cdef list brokers = list(answer["brokers"]), topics = list(answer["topics"])
        cdef list partitions = [list(each["partitions"]) for each in topics]
        cdef size_t i, k, at = 0
        self.brokers = <rdmeta_broker_t *> calloc(len(brokers) + 1, sizeof(rdmeta_broker_t))
        self.topics = <rdmeta_wire_topic_t *> calloc(len(topics) + 1, sizeof(rdmeta_wire_topic_t))
        self.partitions = <rdmeta_wire_partition_t *> calloc(
            sum(map(len, partitions)) + 1, sizeof(rdmeta_wire_partition_t))
        if self.brokers is NULL or self.topics is NULL or self.partitions is NULL:
            raise MemoryError
        self.head.brokers = <uint32_t> len(brokers)
        self.head.topics = <uint32_t> len(topics)
        self.text(answer["cluster_id"], &self.head.cluster_id)
        self.head.controller = maybe_int32(answer["controller"], "the controller", -1)
        for i in range(len(brokers)):
            self.broker(brokers[i], &self.brokers[i])
        for i in range(len(topics)):
            self.topic(topics[i], &self.topics[i])
            self.topics[i].partitions = <uint32_t> len(partitions[i])
            for k in range(self.topics[i].partitions):
                self.partition(partitions[i][k], &self.partitions[at])
                at += 1
        return 0

    cdef int broker(self, object given, rdmeta_broker_t *out) except -1:
        out.id = int32(given["id"], "a broker's id")
        out.port = int32(given["port"], "a port")
        self.text(given["host"], &out.host)
        self.text(given["rack"], &out.rack)
        return 0

    cdef int topic(self, object given, rdmeta_wire_topic_t *out) except -1:
        cdef bytes raw = bytes(16)
        if given["topic_id"] is not None:
            raw = topic_id_bytes(given["topic_id"])
        self.kept.append(raw)
        self.text(given["name"], &out.name)
        out.id = <const uint8_t *> PyBytes_AS_STRING(raw)
        out.error = <int32_t> integer(given["error"], "an error", INT16_MIN, INT16_MAX)
        out.internal = bool(given["internal"])
        out.operations = maybe_int32(given["operations"], "operations", INT32_MIN)
        return 0

    cdef int partition(self, object given, rdmeta_wire_partition_t *out) except -1:
        out.id = int32(given["partition"], "a partition")
        out.error = <int32_t> integer(given["error"], "an error", INT16_MIN, INT16_MAX)
        out.leader = maybe_int32(given["leader"], "a leader", -1)
        out.leader_epoch = maybe_int32(given["leader_epoch"], "a leader epoch", -1)
        self.ids(given["replicas"], &out.replicas)
        self.ids(given["isr"], &out.isr)
        self.ids(given["offline_replicas"], &out.offline_replicas)
        return 0

    cdef int text(self, object value, rdmeta_str_t *out) except -1:
        """Points `out` to the UTF-8 of a str; None is null."""
        if value is not None:
            self.kept.append(view(value, "a string of an answer", out))
        return 0

    cdef int ids(self, object given, rdmeta_wire_ids_t *out) except -1:
        """Points `out` to the numbers of brokers as the wire has them."""
        cdef bytes raw = b"".join([
            (<object> int32(each, "a broker's id")).to_bytes(4, "big", signed=True)
            for each in given])
        self.kept.append(raw)
        out.be = <const uint8_t *> PyBytes_AS_STRING(raw)
        out.count = <uint32_t> (len(raw) // 4)
        return 0


cdef int32_t maybe_int32(object value, str what, int32_t none) except? -1:
    return none if value is None else int32(value, what)


def _head_in(body, version, /):
    """Returns the head of a Metadata response: its throttle time (ms), brokers and cluster id.

    The brokers are a tuple of Broker. It reads no further. A cache refuses a malformed response;
    of one that is damaged in its head this returns 0, the brokers before the fault, and None.
    """
    cdef int16_t v = <int16_t> integer(version, "version", INT16_MIN, INT16_MAX)
    cdef Py_buffer data
    PyObject_GetBuffer(body, &data, PyBUF_SIMPLE)
    try:
        return head_of(&data, v)
    finally:
        PyBuffer_Release(&data)


cdef tuple head_of(const Py_buffer *data, int16_t version):
    cdef list brokers = []
    cdef list found = [brokers, 0, None]
    cdef rdmeta_wire_visitor_t visitor
    memset(&visitor, 0, sizeof(visitor))
    visitor.broker = listed_broker
    visitor.head = listed_head
    rdmeta_metadata_response_decode(data.buf, <size_t> data.len, version, 0, &visitor,
                                    <void *> found, NULL)
    return found[1], tuple(brokers), found[2]


cdef int32_t listed_broker(void *opaque, const rdmeta_broker_t *b) except -1:
    (<list> (<list> opaque)[0]).append(broker_of(b))
    return 0


cdef int32_t listed_head(void *opaque, const rdmeta_wire_head_t *head) except -1:
    cdef list found = <list> opaque
    found[1], found[2] = head.throttle_ms, text(head.cluster_id)
    return 1  # ends the decoding


cdef extern from "rdmeta.h":
    # The same function for a visitor without calls, which needs no GIL.
    rdmeta_err_t decode_unseen "rdmeta_metadata_response_decode"(
        const void *response, size_t len, int16_t version, int32_t flags,
        const rdmeta_wire_visitor_t *visitor, void *opaque, size_t *offset) noexcept nogil


cdef str malformed_at(const Py_buffer *data, int16_t version, int32_t flags):
    """Returns why a cache refuses a response: the byte of the fault, or what cannot be true."""
    cdef rdmeta_wire_visitor_t no_calls
    cdef rdmeta_err_t err
    cdef size_t offset = 0
    memset(&no_calls, 0, sizeof(no_calls))
    with nogil:  # the response may be large
        err = decode_unseen(data.buf, <size_t> data.len, version,
                            flags & RDMETA_REQ_TOLERATE_TRAILING, &no_calls, NULL, &offset)
    if err == RDMETA_ERR_MALFORMED:
        return f" at byte {offset}"
    return (": it can be decoded, but a broker, topic or partition occurs twice, or an id, port or"
            " name is not valid")


cdef class Tree:
    """A decoded response under construction."""

    cdef dict root
    cdef dict topic
    cdef list partitions


cdef int32_t tree_broker(void *opaque, const rdmeta_broker_t *b) except -1:
    (<list> (<Tree> opaque).root["brokers"]).append(
        {"id": b.id, "host": text(b.host), "port": b.port, "rack": text(b.rack)})
    return 0


cdef int32_t tree_head(void *opaque, const rdmeta_wire_head_t *head) except -1:
    cdef dict root = (<Tree> opaque).root
    root["throttle_ms"] = head.throttle_ms
    root["cluster_id"] = text(head.cluster_id)
    root["controller"] = some(head.controller)
    return 0


cdef int32_t tree_topic(void *opaque, const rdmeta_wire_topic_t *t) except -1:
    cdef Tree tree = <Tree> opaque
    tree.partitions = []
    tree.topic = {"error": t.error, "name": text(t.name), "topic_id": topic_id_text(t.id),
                  "internal": bool(t.internal), "partitions": tree.partitions}
    return 0


cdef int32_t tree_partition(void *opaque, const rdmeta_wire_partition_t *p) except -1:
    (<Tree> opaque).partitions.append(
        {"error": p.error, "partition": p.id, "leader": some(p.leader),
         "leader_epoch": some(p.leader_epoch), "replicas": wire_ids(p.replicas),
         "isr": wire_ids(p.isr), "offline_replicas": wire_ids(p.offline_replicas)})
    return 0


cdef int32_t tree_topic_end(void *opaque, const rdmeta_wire_topic_t *t) except -1:
    cdef Tree tree = <Tree> opaque
    tree.topic["operations"] = given(t.operations)
    (<list> tree.root["topics"]).append(tree.topic)
    return 0


cdef int32_t tree_end(void *opaque, const rdmeta_wire_head_t *head) except -1:
    cdef dict root = (<Tree> opaque).root
    root["operations"] = given(head.operations)
    root["error"] = head.error
    return 0


cdef list wire_ids(rdmeta_wire_ids_t ids):
    cdef uint32_t i
    cdef const uint8_t *p = ids.be
    return [<int32_t> (<uint32_t> p[4 * i] << 24 | <uint32_t> p[4 * i + 1] << 16
                       | <uint32_t> p[4 * i + 2] << 8 | p[4 * i + 3]) for i in range(ids.count)]

# Every lookup, once, whatever is read. Included by _core.pyx.

cdef class Reading(Readers):
    """The lookups of MetadataCache.

    They see valid topics only; with `allow_stale=True` also the last known values of topics past
    their deadline and of partitions without a leader. Threads may share one.
    """

    def __bool__(self):
        """True also while it is empty: `if cache` asks whether there is one."""
        return True

    @property
    def version(self):
        """The version of what is read: 0 for a new cache, higher after every change."""
        return self.version_now()

    cdef uint64_t version_now(self) except? 0:
        return 0

    def leader(self, topic, partition, /, default=...):
        """The broker id of a partition's leader.

        With a `default` absence never raises; without one it raises NotCachedError, StaleError,
        UnknownTopicError, NoSuchPartitionError, LeaderNotAvailableError, TopicAuthorizationError or
        InvalidTopicError. What cannot be raises either way, here and in every lookup: TypeError for a
        topic that is no str or a partition that is no int, ValueError for a partition beyond int32 or
        a str that is no UTF-8.
        """
        cdef rdmeta_str_t name
        cdef int32_t number
        cdef int32_t found
        cdef int64_t now
        if not (rdmeta_py_ascii(topic, &name.data, &name.len) and rdmeta_py_small(partition, &number)):
            return self.leader_of(self.strict, topic, partition, default)
        now = rdmeta_py_clock(CLOCK_MONOTONIC_COARSE) if self.ticking else self.now()
        found = rdmeta_leader(self.strict, name.data, name.len, number, now)
        if found >= 0:
            return found
        return self.missing(found, topic, partition, default)

    def last_leader(self, topic, partition, /, default=...):
        """leader(), but the last one known of a stale topic or a leaderless partition will do."""
        return self.leader_of(self.lenient, topic, partition, default)

    cdef object leader_of(self, rdmeta_reader_t *reader, topic, partition, default):
        """leader() of any str and any integer."""
        cdef rdmeta_str_t name
        cdef int32_t found
        cdef int64_t now = self.now()
        cdef int32_t number = int32(partition, "partition")
        keep = view(topic, "topic", &name)
        found = rdmeta_leader(reader, name.data, name.len, number, now)
        if found >= 0:
            return found
        return self.missing(found, topic, partition, default)

    def state(self, topic, partition=None, /):
        """What leader() would say without an exception: 0, or NOT_CACHED, STALE, NO_LEADER ...

        Without a partition it is said of the topic.
        """
        cdef rdmeta_str_t name
        cdef const rdmeta_topic_t *found
        cdef rdmeta_err_t code
        cdef int64_t now = self.now()
        cdef int32_t number = 0 if partition is None else int32(partition, "partition")
        keep = view(topic, "topic", &name)
        if partition is None:  # nothing between these two can let go of the GIL
            rdmeta_reader_enter(self.strict)
            code = rdmeta_topic_find(self.strict, name.data, name.len, now, &found)
            rdmeta_reader_leave(self.strict)
        else:
            code = rdmeta_leader(self.strict, name.data, name.len, number, now)
        return min(code, 0)

    def partition(self, topic, partition, default=..., *, allow_stale=False):
        """Everything about one partition, as a Partition; `default` and errors as of leader().

        A partition without a leader is no error here: its `leader` is None. With `allow_stale` a
        topic past its deadline will do, and `leader` is the last one known; `leaderless` says that
        there is none now.
        """
        cdef rdmeta_str_t name
        cdef rdmeta_err_t err
        cdef rdmeta_topic_info_t info
        cdef const rdmeta_topic_t *before
        cdef const rdmeta_topic_t *after = NULL
        cdef bint stale = bool(allow_stale)
        cdef int32_t number = int32(partition, "partition")
        cdef int64_t now = self.now()
        cdef Lists lists = Lists.__new__(Lists)
        cdef rdmeta_reader_t *reader = self.lenient if stale else self.strict
        keep = view(topic, "topic", &name)
        memset(&info, 0, sizeof(info))
        rdmeta_reader_enter(reader)  # nothing until leave can let go of the GIL
        rdmeta_topic_find(reader, name.data, name.len, now, &after)
        while True:
            before = after
            err = rdmeta_partition(reader, name.data, name.len, number, now, &lists.value)
            if not err and lists.cut():
                if not lists.grow():
                    err = RDMETA_ERR_NO_MEMORY
                    break
                continue
            rdmeta_topic_find(reader, name.data, name.len, now, &after)
            if before is after:  # the id and the partition are of one version
                break
        if not err:
            rdmeta_topic_info(reader, after, now, &info)
        rdmeta_reader_leave(reader)
        if err == RDMETA_ERR_NO_MEMORY:
            raise MemoryError
        if err:
            return self.missing(err, topic, partition, default)
        return lists.partition(text(name), topic_id_text(info.topic_id), stale)

    def topic(self, topic, default=..., *, allow_stale=False):
        """A topic with all its partitions, as a Topic; `default` and errors as of leader().

        With `allow_stale` one past its deadline will do, and each partition has its last leader.
        """
        cdef rdmeta_str_t name
        cdef rdmeta_err_t err
        cdef const rdmeta_topic_t *found
        cdef bint stale = bool(allow_stale)
        cdef int64_t now = self.now()
        cdef rdmeta_reader_t *reader = self.take(stale)
        rdmeta_reader_enter(reader)
        try:
            keep = view(topic, "topic", &name)
            err = rdmeta_topic_find(reader, name.data, name.len, now, &found)
            if not err:
                return self.topic_of(reader, found, now, stale)
        finally:
            rdmeta_reader_leave(reader)
            self.give(stale, reader)
        return self.missing(err, topic, None, default)

    def topic_by_id(self, topic_id, default=..., *, allow_stale=False):
        """topic() by its id: Kafka's base64, a uuid.UUID, or 16 bytes (KIP-516).

        `allow_stale` as of topic().
        """
        cdef rdmeta_err_t err
        cdef const rdmeta_topic_t *found
        cdef bint stale = bool(allow_stale)
        cdef bytes raw = topic_id_bytes(topic_id)
        cdef int64_t now = self.now()
        cdef rdmeta_reader_t *reader = self.take(stale)
        rdmeta_reader_enter(reader)
        try:
            err = rdmeta_topic_find_id(reader, <const uint8_t *> PyBytes_AS_STRING(raw), now, &found)
            if not err:
                return self.topic_of(reader, found, now, stale)
        finally:
            rdmeta_reader_leave(reader)
            self.give(stale, reader)
        return self.missing(err, topic_id_text(<const uint8_t *> PyBytes_AS_STRING(raw)), None, default)

    cdef object topic_of(self, rdmeta_reader_t *reader, const rdmeta_topic_t *found, int64_t now,
                         bint stale):
        """A borrowed topic as a model.Topic."""
        cdef rdmeta_topic_info_t info
        cdef Lists lists = Lists.__new__(Lists)
        cdef list partitions = []
        cdef int64_t turn = rdmeta_py_clock(CLOCK_MONOTONIC_COARSE)
        cdef uint32_t i
        rdmeta_topic_info(reader, found, now, &info)
        name = text(info.name)
        topic_id = topic_id_text(info.topic_id)
        for i in range(info.partitions):
            read_partition(reader, found, i, lists)
            partitions.append(lists.partition(name, topic_id, stale))
            let_others_run(&turn)
        return Topic(name, topic_id, bool(info.internal), tuple(partitions), info.error,
                     given(info.operations), info.version)

    def __contains__(self, topic):
        return self.state(topic) == RDMETA_OK

    def __len__(self):
        """How many topics are valid now."""
        return (<Walk> Walk(self, "", RDMETA_WALK_VALID)).found.n

    def __iter__(self):
        """The names of the valid topics as they stood at one version, in the order of their bytes."""
        return iter(self.names())

    def names(self, *, prefix="", internal=None, allow_stale=False, state=None):
        """The names of topics as a list; what topics() would give, at a fraction of its cost.

        `allow_stale` takes those past their deadline as well. `state` takes those that a broker
        would not tell of instead: UNKNOWN_TOPIC, DENIED, INVALID.
        """
        cdef int32_t which = RDMETA_WALK_VALID | (RDMETA_WALK_STALE if allow_stale else 0)
        cdef int32_t wanted = 0 if state is None else int32(state, "state")
        cdef Walk walk = Walk(self, prefix, RDMETA_WALK_NEGATIVE if wanted else which)
        cdef const rdmeta_topic_info_t *info
        cdef list found = []
        cdef int64_t turn = rdmeta_py_clock(CLOCK_MONOTONIC_COARSE)
        cdef size_t i
        for i in range(walk.found.n):
            let_others_run(&turn)
            info = walk.at(i)
            if (not wanted or info.state == wanted) and (
                    internal is None or bool(info.internal) == bool(internal)):
                found.append(text(info.name))
        return found

    def topics(self, *, prefix="", pattern=None, internal=None, allow_stale=False):
        """Valid topics as they stood at one version, in the order of their names' bytes.

        `pattern`, a str or a compiled one, must match the whole name, as in Kafka's own clients.
        `internal` True or False takes only Kafka's own topics or all others. With `allow_stale`
        topics past their deadline are among them, and each partition has its last leader. Names
        alone are cheaper had by iterating over the cache.
        """
        cdef int32_t stale = RDMETA_WALK_STALE if allow_stale else 0
        cdef Walk walk = Walk(self, prefix, RDMETA_WALK_VALID | stale)
        cdef const rdmeta_topic_info_t *info
        cdef list found = []
        cdef int64_t turn = rdmeta_py_clock(CLOCK_MONOTONIC_COARSE)
        cdef size_t i
        matches = None if pattern is None else re.compile(pattern).fullmatch
        for i in range(walk.found.n):
            let_others_run(&turn)
            info = walk.at(i)
            if internal is not None and bool(info.internal) != bool(internal):
                continue
            if matches is None or matches(text(info.name)):
                found.append(self.topic_of(walk.reader, walk.found.topics[i], walk.now, stale))
        return found

    def partitions_on(self, broker, role="leader", *, allow_stale=False):
        """The partitions of valid topics that a broker leads, or, role "replica", holds.

        With `allow_stale` those of topics past their deadline too, and, of partitions without a
        leader, those that it was the last to lead.
        """
        cdef int32_t wanted = int32(broker, "broker")
        cdef Walk walk
        cdef Lists lists = Lists.__new__(Lists)
        cdef list found = []
        cdef int64_t turn = rdmeta_py_clock(CLOCK_MONOTONIC_COARSE)
        cdef size_t i
        cdef uint32_t k, partitions
        if role not in ("leader", "replica"):
            raise ValueError(f'role must be "leader" or "replica", not {role!r}')
        if wanted < 0:
            return found  # no broker, but what stands for no leader
        cdef bint led = role == "leader", stale = bool(allow_stale)
        walk = Walk(self, "", RDMETA_WALK_VALID | (RDMETA_WALK_STALE if stale else 0))
        for i in range(walk.found.n):
            let_others_run(&turn)
            partitions = walk.at(i).partitions
            for k in range(partitions):
                read_partition(NULL, walk.found.topics[i], k, lists)
                if lists.led_by(wanted, stale) if led else lists.has_replica(wanted):
                    found.append(TopicPartition(text(walk.info.name), lists.value.partition))
        return found

    def available(self, topic, default=..., *, allow_stale=False):
        """The ids of a topic's partitions whose leader is known and among the brokers.

        `default`, `allow_stale` and errors as of topic().
        """
        found = self.topic(topic, None if default is not ... else ..., allow_stale=allow_stale)
        if found is None:
            return default
        # Not with the brokers of another moment, but for last leaders, which are of one themselves.
        alive = {broker.id for broker in self.brokers} if allow_stale else ()
        return tuple([
            p.partition for p in found.partitions
            if (p.leader in alive if p.leaderless else not p.unreachable)])

    def partition_for(self, topic, key, /, default=..., *, allow_stale=False):
        """The partition that Kafka's Java producer puts a record with this key into.

        `key` is bytes or a buffer of them, as of TopicHandle.partition_for(). For None, a record
        without a key, it is another one at random each time, of those that have a leader; of all
        where none has. A producer would stay with one for a whole batch (KIP-480): so may the
        caller. `default`, `allow_stale` and errors as of topic().
        """
        cdef rdmeta_reader_t *reader = self.lenient if allow_stale else self.strict
        cdef rdmeta_str_t name
        cdef rdmeta_str_t raw
        cdef int64_t now = self.now()
        keep = view(topic, "topic", &name)
        keep_key = key_view(key, &raw)
        cdef int32_t found = rdmeta_partition_for(reader, name.data, name.len, raw.data, raw.len, now)
        if found >= 0:
            return found
        return self.missing(found, topic, None, default)

    def leaders(self, topics, partitions, out=None, *, allow_stale=False):
        """The leaders of many partitions at once, in an int32 buffer: `out`, or a new array("i").

        `topics` is a list of names, a column of Arrow's (pyarrow, polars ...; a dictionary's as well), or
        what rdmeta.ffi.prepare() made of either; `partitions` as many integers, in a list, a buffer of
        32 or 64 bit (NumPy ...), or a column. What leader() would raise is a negative number here:
        NOT_CACHED, NO_LEADER, STALE ... With `allow_stale` each row is last_leader().
        """
        cdef bint plain = type(topics) is list or type(topics) is tuple
        cdef Names names = None if plain else names_of(topics)
        cdef size_t n = <size_t> len(topics) if plain else names.n
        cdef Numbers numbers = Numbers(partitions, n)
        cdef bint stale = bool(allow_stale)
        cdef int64_t now = self.now()
        cdef rdmeta_reader_t *reader = self.lenient if stale else self.strict
        cdef Py_buffer data
        if out is None:
            out = array("i", bytes(<Py_ssize_t> (4 * n)))
        get_int32(out, PyBUF_WRITABLE, n, &data)
        try:
            if plain and leaders_of_str(reader, topics, numbers, now, <int32_t *> data.buf):
                return out
            if plain:
                names = Names(topics)
                numbers.check_counts(names.n, n)
            reader = self.take(stale)
            with nogil:
                rdmeta_leaders(reader, names.items, numbers.items, n, now, <int32_t *> data.buf)
            self.give(stale, reader)
        finally:
            PyBuffer_Release(&data)
        return out

    def to_arrow(self, table, *, allow_stale=False):
        """What is read, as a table for whoever speaks Arrow: see ArrowTable.

        `table` is "brokers" (broker, host, port, rack, controller, cluster_id), "topics" (topic,
        topic_id, internal, partitions, error, operations, version, state, source_broker, reason, age in
        seconds), "partitions" (topic, topic_id, partition, leader, leader_epoch, replicas, isr,
        offline_replicas, error, unreachable, leaderless, stale) or "replicas" (topic, topic_id,
        partition, broker, position, leader, in_sync, offline, preferred: a row for each replica).
        Topics come as in topics(), and None is null. With `allow_stale` topics past their deadline
        are among them, marked as such, and partitions that are leaderless have their last leader.
        ValueError for another name.
        """
        cdef rdmeta_reader_t *reader
        cdef bint stale = bool(allow_stale)
        cdef int64_t now = self.now()
        if table not in ARROW_TABLES:
            raise ValueError(f"no table {table!r}; there are {', '.join(ARROW_TABLES)}")
        reader = self.take(False)
        try:
            return arrow_table(reader, ARROW_TABLES[table], stale, now)
        finally:
            self.give(False, reader)

    @property
    def brokers(self):
        """The brokers of the last answer, in the order of their ids."""
        cdef rdmeta_broker_t b
        cdef const rdmeta_brokers_t *table
        cdef list found = []
        cdef uint32_t i
        cdef rdmeta_reader_t *reader = self.take_brokers()
        rdmeta_reader_enter(reader)
        try:
            table = rdmeta_brokers(reader)
            for i in range(rdmeta_brokers_count(table)):
                rdmeta_brokers_at(table, i, &b)
                found.append(broker_of(&b))
        finally:
            rdmeta_reader_leave(reader)
            self.give(False, reader)
        return tuple(found)

    def broker(self, id, default=...):
        """One broker by its id; without a `default` NotCachedError for one that is not known."""
        cdef rdmeta_broker_t b
        cdef int32_t number = int32(id, "broker")
        cdef rdmeta_reader_t *reader = self.take_brokers()
        rdmeta_reader_enter(reader)
        try:
            if rdmeta_brokers_find(rdmeta_brokers(reader), number, &b) == RDMETA_OK:
                return broker_of(&b)
        finally:
            rdmeta_reader_leave(reader)
            self.give(False, reader)
        if default is not ...:
            return default
        raise from_code(RDMETA_NOT_CACHED, f"broker {number}; {refresh_of(self)}")

    @property
    def controller(self):
        """The id of a broker that forwards to the controller, None if not known.

        On KRaft it is any broker that is alive, and changes with every answer.
        """
        cdef int32_t found
        cdef rdmeta_reader_t *reader = self.take_brokers()
        rdmeta_reader_enter(reader)
        found = rdmeta_brokers_controller(rdmeta_brokers(reader))
        rdmeta_reader_leave(reader)
        self.give(False, reader)
        return some(found)

    @property
    def cluster_id(self):
        """The cluster's id, None if not known (before Metadata v2)."""
        cdef rdmeta_reader_t *reader = self.take_brokers()
        rdmeta_reader_enter(reader)
        try:
            return text(rdmeta_brokers_cluster_id(rdmeta_brokers(reader)))
        finally:
            rdmeta_reader_leave(reader)
            self.give(False, reader)

    cdef int topic_info(self, topic, rdmeta_topic_info_t *info, int64_t now,
                        int64_t *ttl_us) except -1:
        """What a topic, valid or stale, says but for pointers; and its TTL there, if not NULL."""
        cdef rdmeta_str_t name
        cdef const rdmeta_topic_t *found
        cdef rdmeta_err_t err
        keep = view(topic, "topic", &name)
        rdmeta_reader_enter(self.lenient)
        err = rdmeta_topic_find(self.lenient, name.data, name.len, now, &found)
        if not err:
            rdmeta_topic_info(self.lenient, found, now, info)
            if ttl_us is not NULL:
                ttl_us[0] = self.ttl_us(now)
        rdmeta_reader_leave(self.lenient)
        if err:
            self.missing(err, topic, None, ...)
        return 0

    cdef int64_t ttl_us(self, int64_t now) noexcept:
        """A valid topic's TTL, as `lenient` reads it just now."""
        return self.max_age_us

    cdef int64_t answered_us(self) except? -1:
        """When all topics were answered; INT64_MIN for never."""
        return INT64_MIN

    def _full_answer(self, /):
        """What tells the last answer about all topics, None past max_age; for rdmeta.compat."""
        cdef int64_t said = self.answered_us()
        return None if said == INT64_MIN or self.now() - said > self.max_age_us else said

    def age(self, topic=...):
        """Seconds since a broker last said what is known of a topic; errors as of topic().

        A stale topic has an age as well, above `max_age`. A leader hint does not make it younger.
        Without a topic: since all topics were last answered at once, None for never.
        """
        cdef rdmeta_topic_info_t info
        cdef int64_t said, ttl, now = self.now()
        if topic is ...:
            said = self.answered_us()
            return None if said == INT64_MIN else max(minus(now, said), 0) / 1e6
        self.topic_info(topic, &info, now, &ttl)
        return max(minus(now, minus(info.deadline_us, ttl)), 0) / 1e6

    def source(self, topic):
        """The id of the broker that last answered about a topic, None if that is not known.

        A leader hint (KIP-951) is not an answer: its leader is told of in changes(), as of `hint`.
        """
        cdef rdmeta_topic_info_t info
        self.topic_info(topic, &info, self.now(), NULL)
        return some(info.source_broker)

    def reason(self, topic):
        """Why the last answer about a topic was asked for, in the words of who asked.

        That is `reason` of the apply(), or of its Request, whose broker source() names; None if it was
        not said, or the cache had no room for it. Errors as of age().
        """
        cdef char words[REASON_BYTES]
        cdef rdmeta_topic_info_t info
        cdef rdmeta_str_t name
        cdef const rdmeta_topic_t *found
        cdef rdmeta_err_t err
        cdef int64_t now = self.now()
        keep = view(topic, "topic", &name)
        memset(&info, 0, sizeof(info))
        rdmeta_reader_enter(self.lenient)  # nothing until leave can let go of the GIL
        err = rdmeta_topic_find(self.lenient, name.data, name.len, now, &found)
        if not err:
            rdmeta_topic_info(self.lenient, found, now, &info)
            info.reason.len = min(info.reason.len, <size_t> REASON_BYTES)
            if info.reason.data is not NULL:
                memcpy(words, info.reason.data, info.reason.len)
                info.reason.data = words
        rdmeta_reader_leave(self.lenient)
        if err:
            return self.missing(err, topic, None, ...)
        return text(info.reason)

    cdef object missing(self, int32_t code, topic, partition, default):
        """What a lookup does about a code < 0: the default, or an exception."""
        if default is not ...:
            return default
        raise lookup_error(self, code, topic, partition)

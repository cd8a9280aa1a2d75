# Reading: the lookups of caches, images and attached files. Included by _core.pyx.

cdef class Reading(Readers):
    """The lookups of MetadataCache, Image and Attached.

    A lookup reads valid topics only. With `allow_stale=True` it also reads the last known values of
    topics past their deadline and of partitions without a leader. Threads may share a Reading.
    """

    def __bool__(self):
        """Returns True, also for an empty cache: so `if cache` tests for None."""
        return True

    @property
    def version(self):
        """The version of the state that is read: 0 for a new cache, higher after every change."""
        return self.version_now()

    cdef uint64_t version_now(self) except? 0:
        """Returns the version; a derived class overrides it."""
        return 0

    def leader(self, topic, partition, /, default=...):
        """Returns the broker id of a partition's leader.

            cache.leader("orders", 3)           # 1, or an exception
            cache.leader("orders", 3, None)     # 1, or None

        Without a leader it returns `default`, if given, and otherwise raises one of these:

        - NotCachedError: nothing is known about the topic, or a request for it is in flight.
        - StaleError: the topic is past its deadline; last_leader() returns the last known leader.
        - UnknownTopicError: a broker answered that there is no such topic.
        - NoSuchPartitionError: the topic has no such partition.
        - LeaderNotAvailableError: the partition has no leader now.
        - TopicAuthorizationError: the principal may not describe the topic.
        - InvalidTopicError: the name is not a legal topic name.

        Wrong arguments raise in every lookup, with a `default` too. TypeError: the topic is not a
        str, or the partition is not an int. ValueError: the partition is beyond int32, or the str
        has no UTF-8 encoding.
        """
        cdef rdmeta_str_t name
        cdef int32_t number
        cdef int32_t found
        cdef int64_t now
        if not (rdmeta_py_ascii(topic, &name.data, &name.len)
                and rdmeta_py_small(partition, &number)):
            return self.leader_of(self.strict, topic, partition, default)
        now = rdmeta_py_clock(CLOCK_MONOTONIC_COARSE) if self.ticking else self.now()
        found = rdmeta_leader(self.strict, name.data, name.len, number, now)
        if found >= 0:
            return found
        return self.missing(found, topic, partition, default)

    def last_leader(self, topic, partition, /, default=...):
        """Returns what leader() returns, or the last known leader if stale or leaderless.

        `default` and the errors are those of leader(): a topic past its deadline is no error here.
        """
        return self.leader_of(self.lenient, topic, partition, default)

    cdef object leader_of(self, rdmeta_reader_t *reader, topic, partition, default):
        """Does the lookup of leader() for any str and any integer object."""
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
        """Returns 0 if leader() would return a leader, otherwise the code of its error.

        The codes are NOT_CACHED, WAITING (a request is in flight), STALE, UNKNOWN_TOPIC,
        NO_PARTITION, NO_LEADER, DENIED and INVALID of the module rdmeta. Without `partition` it
        returns the topic's state. TypeError, ValueError.
        """
        cdef rdmeta_str_t name
        cdef const rdmeta_topic_t *found
        cdef rdmeta_err_t code
        cdef int64_t now = self.now()
        cdef int32_t number = 0 if partition is None else int32(partition, "partition")
        keep = view(topic, "topic", &name)
        if partition is None:  # no call between enter and leave may release the GIL
            rdmeta_reader_enter(self.strict)
            code = rdmeta_topic_find(self.strict, name.data, name.len, now, &found)
            rdmeta_reader_leave(self.strict)
        else:
            code = rdmeta_leader(self.strict, name.data, name.len, number, now)
        return min(code, 0)

    def partition(self, topic, partition, default=..., *, allow_stale=False):
        """Returns one partition as a Partition; `default` and the errors are those of leader().

        A partition without a leader is no error here: its `leader` is None. With `allow_stale` it
        also returns a partition of a topic past its deadline. Then `leader` is the last known one,
        and `leaderless` is True if there is no leader now.
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
        rdmeta_reader_enter(reader)  # no call until leave may release the GIL
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
            if before is after:  # the topic's id and the partition belong to one version
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
        """Returns a topic with all its partitions as a Topic, all of one version.

        `default` and the errors are those of leader(). With `allow_stale` it also returns a topic
        past its deadline, and each leaderless partition has its last known leader.
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
        """Returns the Topic of a topic id (KIP-516): Kafka's base64, a uuid.UUID or 16 bytes.

        `default`, `allow_stale` and the errors are those of topic(). TypeError, ValueError for
        anything that is not a topic id.
        """
        cdef rdmeta_err_t err
        cdef const rdmeta_topic_t *found
        cdef bint stale = bool(allow_stale)
        cdef bytes raw = topic_id_bytes(topic_id)
        cdef int64_t now = self.now()
        cdef rdmeta_reader_t *reader = self.take(stale)
        rdmeta_reader_enter(reader)
        try:
            err = rdmeta_topic_find_id(reader, <const uint8_t *> PyBytes_AS_STRING(raw), now,
                                       &found)
            if not err:
                return self.topic_of(reader, found, now, stale)
        finally:
            rdmeta_reader_leave(reader)
            self.give(stale, reader)
        return self.missing(err, topic_id_text(<const uint8_t *> PyBytes_AS_STRING(raw)), None,
                            default)

    cdef object topic_of(self, rdmeta_reader_t *reader, const rdmeta_topic_t *found, int64_t now,
                         bint stale):
        """Returns a borrowed topic as a model.Topic."""
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

    def __getitem__(self, topic):
        """Returns a valid topic as a Topic. Raises KeyError, whose cause is the error of topic()."""
        try:
            return self.topic(topic)
        except Error as error:
            raise KeyError(topic) from error

    def get(self, topic, default=None):
        """Returns a valid topic as a Topic, and `default` without one. TypeError."""
        return self.topic(topic, default)

    def keys(self):
        """Returns the names of the valid topics: so dict(cache) works."""
        return self.names()

    def values(self):
        """Returns the valid topics, all of one version."""
        return self.topics()

    def items(self):
        """Returns pairs of name and Topic of the valid topics, all of one version."""
        return [(topic.name, topic) for topic in self.topics()]

    def __len__(self):
        """Returns how many topics are valid now."""
        return (<Walk> Walk(self, "", RDMETA_WALK_VALID)).found.n

    def __iter__(self):
        """Returns an iterator over the names of the valid topics of one version.

        The names are in the order of their bytes.
        """
        return iter(self.names())

    def names(self, *, prefix="", internal=None, allow_stale=False, state=None):
        """Returns the names of the topics that topics() would return, at a fraction of its cost.

        `prefix`, `internal` and `allow_stale` are those of topics(). With `state` it returns the
        topics for which a broker answered that error instead: UNKNOWN_TOPIC, DENIED or INVALID.
        TypeError, ValueError.
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
        """Returns the valid topics of one version as a list of Topic.

            cache.topics(prefix="orders-", internal=False)

        They are in the order of their names' bytes. `pattern`, a str or a compiled one, must match
        the whole name, as in Kafka's own clients. `internal=True` selects only Kafka's internal
        topics, `internal=False` only the others. `allow_stale` adds the topics past their deadline,
        and each leaderless partition has its last known leader. names() is cheaper where names are
        enough. TypeError, ValueError.
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
        """Returns the partitions of valid topics that a broker leads, as a list of TopicPartition.

        `broker` is a broker id. With `role="replica"` it returns the partitions that have a replica
        on the broker. `allow_stale` adds the topics past their deadline, and the leaderless
        partitions whose last known leader is the broker. ValueError for another role. TypeError.
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
            return found  # not a broker's id: in C, -1 is the leader of a leaderless partition
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
        """Returns the ids of a topic's partitions that have a leader among the brokers, a tuple.

        `default`, `allow_stale` and the errors are those of topic().
        """
        found = self.topic(topic, None if default is not ... else ..., allow_stale=allow_stale)
        if found is None:
            return default
        # `unreachable` compares the leader with the brokers of the same moment. Only last leaders,
        # which are older anyway, are compared with the brokers of now.
        alive = {broker.id for broker in self.brokers} if allow_stale else ()
        return tuple([
            p.partition for p in found.partitions
            if (p.leader in alive if p.leaderless else not p.unreachable)])

    def health(self, *, allow_stale=False):
        """Returns how many partitions are in which state, and what each broker has, as a Health.

            cache.health().leaderless           # 0
            cache.health().leaders              # {1: 40, 2: 39, 3: 41}

        It counts all valid topics of one version, and makes no object per topic or partition.
        `allow_stale` adds the topics past their deadline, as their last answers described them: the
        last leader of a leaderless partition is no leader here. MalformedError for a damaged file.
        MemoryError.
        """
        cdef int32_t which = RDMETA_WALK_VALID | (RDMETA_WALK_STALE if allow_stale else 0)
        cdef int64_t now = self.now()
        cdef rdmeta_reader_t *reader = self.take(False)
        cdef BrokerCounts counts = BrokerCounts.__new__(BrokerCounts)
        cdef rdmeta_err_t err
        try:
            while True:
                with nogil:
                    err = rdmeta_reader_health(reader, which, now, &counts.sum)
                if err or not counts.cut():
                    break
                counts.grow()
        finally:
            self.give(False, reader)
        if err:
            raise broken(self, err, "health()")
        return counts.health()

    def partition_for(self, topic, key, /, default=..., *, allow_stale=False):
        """Returns the partition that Kafka's Java producer puts a record with this key into.

            cache.partition_for("orders", b"customer-17")

        `key` is what the key's serializer returns: bytes or a buffer of bytes. The partition is the
        key's murmur2 hash, its sign bit cleared, modulo the number of partitions.

        A record without a key (None) gets a random partition at each call. It is one that has a
        leader, or any one if no partition has a leader. The Java producer keeps one partition for a
        whole batch (KIP-480): so may the caller. `default`, `allow_stale` and the errors are those
        of topic(). TypeError for another kind of key.
        """
        cdef rdmeta_reader_t *reader = self.lenient if allow_stale else self.strict
        cdef rdmeta_str_t name
        cdef rdmeta_str_t raw
        cdef int64_t now = self.now()
        keep = view(topic, "topic", &name)
        keep_key = key_view(key, &raw)
        cdef int32_t found = rdmeta_partition_for(reader, name.data, name.len, raw.data, raw.len,
                                                  now)
        if found >= 0:
            return found
        return self.missing(found, topic, None, default)

    def replica_in(self, topic, partition, rack, /, default=..., *, allow_stale=False):
        """Returns the broker id of a replica to fetch from that is in a rack (KIP-392).

            cache.replica_in("orders", 3, "eu-west-1a")     # 2, or the leader

        It is the leader if its broker has that rack. Otherwise it is the first of the partition's
        replicas that is in sync, not offline, and whose broker is known and has that rack. Without
        such a replica it is the leader. `rack` is a str, as the broker's own `rack` is spelled;
        with None or "", the default of `client.rack`, it is the leader.

        `default` and the errors are those of leader(). With `allow_stale` it also chooses among the
        last known replicas of a topic past its deadline, and the leader is that of last_leader().
        """
        cdef rdmeta_reader_t *reader = self.lenient if allow_stale else self.strict
        cdef rdmeta_str_t name
        cdef rdmeta_str_t near
        cdef int32_t found
        cdef int64_t now = self.now()
        cdef int32_t number = int32(partition, "partition")
        keep = view(topic, "topic", &name)
        near.data = NULL
        near.len = 0
        if rack is not None:
            keep_rack = view(rack, "rack", &near)
        found = rdmeta_replica_in(reader, name.data, name.len, number, near, now)
        if found >= 0:
            return found
        return self.missing(found, topic, partition, default)

    def leaders(self, topics, partitions, out=None, *, allow_stale=False):
        """Returns the leaders of many partitions, n broker ids in an int32 buffer.

            cache.leaders(["orders", "orders"], [0, 1])             # array('i', [1, 2])
            cache.leaders(table["topic"], table["partition"])       # Arrow columns

        `topics` has n names: a list, an Arrow column (of pyarrow, polars ..., dictionary-encoded or
        not), or the result of rdmeta.ffi.prepare(). `partitions` has n integers: a list, a buffer
        of 32 or 64 bits (NumPy ...), or an Arrow column. The result is `out`, a contiguous writable
        buffer of n int32, or a new array("i").

        Row i is leader(topics[i], partitions[i]), or its error as a negative number: NOT_CACHED,
        STALE, NO_LEADER ... of the module rdmeta. With `allow_stale` row i is last_leader(). All
        rows have the same time, but a writer may change the cache between two rows.

        TypeError, ValueError for arguments of the wrong type, length or range.
        """
        cdef bint is_list = type(topics) is list or type(topics) is tuple
        cdef Names names = None if is_list else names_of(topics)
        cdef size_t n = <size_t> len(topics) if is_list else names.n
        cdef Numbers numbers = Numbers(partitions, n)
        cdef bint stale = bool(allow_stale)
        cdef int64_t now = self.now()
        cdef rdmeta_reader_t *reader = self.lenient if stale else self.strict
        cdef Py_buffer data
        if out is None:
            out = array("i", bytes(<Py_ssize_t> (4 * n)))
        get_int32(out, PyBUF_WRITABLE, n, &data)
        try:
            if is_list and leaders_of_str(reader, topics, numbers, now, <int32_t *> data.buf):
                return out
            if is_list:
                names = Names(topics)
                numbers.check_counts(names.n, n)
            reader = self.take(stale)
            with nogil:
                rdmeta_leaders(reader, names.items, numbers.items, n, now, <int32_t *> data.buf)
            self.give(stale, reader)
        finally:
            PyBuffer_Release(&data)
        return out

    def partition_counts(self, topics, out=None, *, allow_stale=False):
        """Returns how many partitions each of n topics has, in an int32 buffer.

            counts = cache.partition_counts(table["topic"])
            rdmeta.partitions_for(table["key"], counts)

        `topics` and `out` are those of leaders(). Row i is the number of partitions of topics[i],
        or the error of topic() as a negative number: NOT_CACHED, STALE, UNKNOWN_TOPIC ... of the
        module rdmeta. With `allow_stale` a topic past its deadline has its last known number. All
        rows are of one version.

        TypeError, ValueError for arguments of the wrong type or length. MemoryError.
        """
        cdef Names names = names_of(topics)
        cdef bint stale = bool(allow_stale)
        cdef int64_t now = self.now()
        cdef rdmeta_reader_t *reader
        cdef Py_buffer data
        if out is None:
            out = array("i", bytes(<Py_ssize_t> (4 * names.n)))
        get_int32(out, PyBUF_WRITABLE, names.n, &data)
        try:
            reader = self.take(stale)
            with nogil:
                count_partitions(reader, names.items, names.n, now, <int32_t *> data.buf)
            self.give(stale, reader)
        finally:
            PyBuffer_Release(&data)
        return out

    def to_arrow(self, table, *, allow_stale=False):
        """Returns a table of the current state for any Arrow reader: see ArrowTable.

            pyarrow.table(cache.to_arrow("partitions"))

        `table` is one of these, with these columns:

        - "brokers" (broker, host, port, rack, controller, cluster_id)
        - "topics" (topic, topic_id, internal, partitions, error, operations, version, state,
          source_broker, reason, age in seconds)
        - "partitions" (topic, topic_id, partition, leader, leader_epoch, replicas, isr,
          offline_replicas, error, unreachable, leaderless, stale)
        - "replicas" (topic, topic_id, partition, broker, position, leader, in_sync, offline,
          preferred), with one row per replica.

        Topics are those of topics(), in its order, and None is null. `allow_stale` adds the topics
        past their deadline, which have `stale` or `state` set, and each leaderless partition has
        its last known leader. ValueError for another table. MemoryError.
        """
        cdef rdmeta_reader_t *reader
        cdef bint stale = bool(allow_stale)
        cdef int64_t now = self.now()
        if table not in ARROW_TABLES:
            raise ValueError(f"there is no table {table!r}; there are {', '.join(ARROW_TABLES)}")
        reader = self.take(False)
        try:
            return arrow_table(reader, ARROW_TABLES[table], stale, now)
        finally:
            self.give(False, reader)

    @property
    def brokers(self):
        """The brokers of the last answer, a tuple of Broker in the order of their ids."""
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
        """Returns the Broker with the id `id`.

        For an unknown id it returns `default`, if given, and otherwise raises NotCachedError.
        TypeError, ValueError.
        """
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
        """The controller's broker id as of the last answer, None if not known.

        On KRaft it is a random live broker, which forwards requests to the controller: it changes
        from answer to answer.
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
        """The cluster's id, a str; None if not known (before Metadata v2)."""
        cdef rdmeta_reader_t *reader = self.take_brokers()
        rdmeta_reader_enter(reader)
        try:
            return text(rdmeta_brokers_cluster_id(rdmeta_brokers(reader)))
        finally:
            rdmeta_reader_leave(reader)
            self.give(False, reader)

    cdef int topic_info(self, topic, rdmeta_topic_info_t *info, int64_t now,
                        int64_t *ttl_us) except -1:
        """Reads the properties of a valid or stale topic, and its TTL if `ttl_us` is not NULL.

        The pointers in `info` are not valid afterwards. The errors are those of topic().
        """
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
        """Returns the TTL of valid topics in the state that `lenient` reads, in microseconds."""
        return self.max_age_us

    cdef int64_t answered_us(self) except? -1:
        """Returns the time of the last all-topics answer in microseconds, INT64_MIN for none."""
        return INT64_MIN

    def _full_answer(self, /):
        """Returns a value that differs from all-topics answer to answer; for rdmeta.compat.

        Returns None if there is no such answer, or if it is older than max_age.
        """
        cdef int64_t answered = self.answered_us()
        if answered == INT64_MIN or self.now() - answered > self.max_age_us:
            return None
        return answered

    def age(self, topic=...):
        """Returns the seconds since the last answer about a topic; the errors are those of topic().

        A stale topic has an age too, above `max_age`. A leader hint does not lower the age. Without
        `topic` it returns the seconds since the last all-topics answer, or None if there was none.
        A purge forgets that answer.
        """
        cdef rdmeta_topic_info_t info
        cdef int64_t answered, ttl, now = self.now()
        if topic is ...:
            answered = self.answered_us()
            return None if answered == INT64_MIN else max(minus(now, answered), 0) / 1e6
        self.topic_info(topic, &info, now, &ttl)
        return max(minus(now, minus(info.deadline_us, ttl)), 0) / 1e6

    def source(self, topic):
        """Returns the id of the broker that last answered about a topic, None if not known.

        The errors are those of age(). A leader hint (KIP-951) is not an answer: changes() lists its
        leader with the source `hint`.
        """
        cdef rdmeta_topic_info_t info
        self.topic_info(topic, &info, self.now(), NULL)
        return some(info.source_broker)

    def reason(self, topic):
        """Returns why the last answer about a topic was asked for, in the caller's words.

        It is the `reason` of the apply() that applied the answer, or of its Request. It is None if
        there was no reason, or if the cache had no room for it. The errors are those of age().
        """
        cdef char words[REASON_BYTES]
        cdef rdmeta_topic_info_t info
        cdef rdmeta_str_t name
        cdef const rdmeta_topic_t *found
        cdef rdmeta_err_t err
        cdef int64_t now = self.now()
        keep = view(topic, "topic", &name)
        memset(&info, 0, sizeof(info))
        rdmeta_reader_enter(self.lenient)  # no call until leave may release the GIL
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
        """Returns the default for a lookup's code < 0, or raises the code's exception."""
        if default is not ...:
            return default
        raise lookup_error(self, code, topic, partition)


cdef void count_partitions(rdmeta_reader_t *reader, const rdmeta_str_t *topics, size_t n,
                           int64_t now, int32_t *out) noexcept nogil:
    """Writes each topic's number of partitions, or the code of its lookup, to `out`."""
    cdef const rdmeta_topic_t *found = NULL
    cdef rdmeta_topic_info_t info
    cdef size_t i
    rdmeta_reader_enter(reader)
    for i in range(n):
        out[i] = rdmeta_topic_find(reader, topics[i].data, topics[i].len, now, &found)
        if not out[i]:
            rdmeta_topic_info(reader, found, now, &info)
            out[i] = <int32_t> info.partitions
    rdmeta_reader_leave(reader)

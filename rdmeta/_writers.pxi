# The writing and the waiting half of MetadataCache. Included by _core.pyx.

cdef void changed_among(rdmeta_cache_t *cache, uint64_t since, const rdmeta_str_t *topics, size_t n,
                        uint8_t *hits) noexcept nogil:
    """Mark the topics that changed after `since`: by halves, as most of the time few have."""
    cdef size_t half = n // 2
    if not n or not rdmeta_cache_wait(cache, since, topics, n, 0):
        return
    if n == 1:
        hits[0] = 1
        return
    changed_among(cache, since, topics, half, hits)
    changed_among(cache, since, topics + half, n - half, hits + half)


cdef class CacheWriter(CacheState):
    """The methods of MetadataCache that write or wait.

    Every writer lets go of the GIL: it may have to wait for another one.
    """

    def apply(self, body, api_version, asked=None, broker=None, *, sent_version=None,
              tolerate_trailing=False, rebootstrapped=False, candidates=0, reason=None):
        """Apply a Metadata response's body, any bytes-like object without the response header.

        `asked` decides what absence means: None (not known: merges, removes nothing), ALL, names, ids,
        () for brokers only, or the Request that was sent. `broker` is who answered. `sent_version` is
        the cache's version when the request left: what was learned since is not removed; by default the
        version now. `candidates` is how many brokers could have been asked, 0 for all known ones.
        `reason` is why it was asked for, for reason(); by default that of a Request. The cache keeps 255
        bytes of it, cut between characters, and 1024 different ones: after that none is told.
        `rebootstrapped` lets another cluster's id replace everything (KIP-1102), `tolerate_trailing`
        one byte too many pass, which librdkafka's mock brokers send.

        All or nothing: on an exception the cache is as it was, but for hints that the answer ends:
        those of the names that were asked for, every one for ALL that is applied, and none that was made
        after a Request of request() left.
        Raises MalformedError, UnsupportedVersionError, NoBrokersError, WrongClusterError, the exception
        of a top-level error (v13), ForkedError; each with what is known of the answer as `.applied`.
        """
        cdef int16_t v = <int16_t> integer(api_version, "api_version", INT16_MIN, INT16_MAX)
        cdef Asked a = asked_of(asked, broker, sent_version, rdmeta_cache_version(self.cache))
        cdef rdmeta_applied_t out
        cdef rdmeta_time_t now
        cdef rdmeta_err_t err
        cdef Py_buffer data
        cdef str where = ""
        a.why(asked.reason if reason is None and isinstance(asked, Request) else reason)
        a.flag(tolerate_trailing, RDMETA_REQ_TOLERATE_TRAILING)
        a.flag(rebootstrapped, RDMETA_REQ_REBOOTSTRAPPED)
        a.request.candidates = int32(candidates, "candidates")
        memset(&out, 0, sizeof(out))
        self.read_clocks(&now)
        PyObject_GetBuffer(body, &data, PyBUF_SIMPLE)
        try:
            with nogil:
                err = rdmeta_cache_apply(self.cache, data.buf, <size_t> data.len, v, &a.request, now,
                                         &out)
            if err == RDMETA_ERR_MALFORMED:
                where = malformed_at(&data, v, a.request.flags)
        finally:
            PyBuffer_Release(&data)
        applied = applied_of(&out)
        if not err:
            return applied
        error = from_code(out.error if err == RDMETA_ERR_RESPONSE else err,
                          f"Metadata v{v} response{where}")
        error.applied = applied
        raise error

    def request(self, topics=ALL, *, allow_auto_create=False, topic_authorized_operations=False,
                cluster_authorized_operations=False, reason=None):
        """Return a Request that leaves now, to be handed back with its answer or its failure.

        It notes the cache's version and the number of its last hint: the answer removes nothing that
        was learned since, and ends no hint that was made since. Call it before the request is sent.
        """
        cdef rdmeta_request_t sent
        memset(&sent, 0, sizeof(sent))
        rdmeta_cache_request_sent(self.cache, &sent)
        return Request(topics, allow_auto_create, topic_authorized_operations,
                       cluster_authorized_operations, sent.sent_version, reason, sent.sent_hints)

    def apply_failure(self, asked=None):
        """End the hints of a request that failed: those of the names that it asked for.

        With None, where nobody knows what was asked, every hint ends. Hints stay that were made after
        a Request of request() left.
        """
        cdef Asked a = asked_of(asked, None, None, 0)
        cdef rdmeta_time_t now
        cdef rdmeta_err_t err
        self.read_clocks(&now)
        with nogil:
            err = rdmeta_cache_apply_failure(self.cache, &a.request, now)
        if err:
            raise from_code(err, "apply_failure")

    def apply_leader_hint(self, topic, partition, leader, leader_epoch, node=None, *, topic_id=None):
        """Take a leader from a Produce or Fetch answer (KIP-951) if it is newer than what is known.

        `topic` is a name, or an id (uuid.UUID, 16 bytes); a name may come with its `topic_id`, which
        must then match. `node` is the leader's Broker, or (host, port), if the answer carried it.
        `.changed` of what is returned is 0 if the hint was ignored. A refresh is still due; age(),
        source() and reason() stay those of the last answer. TypeError; ValueError for a Broker that is another one
        than the leader, a port beyond 65535, an empty host; ForkedError.
        """
        cdef rdmeta_leader_hint_t hint
        cdef rdmeta_applied_t out
        cdef rdmeta_time_t now
        cdef rdmeta_err_t err
        cdef bytes raw
        memset(&hint, 0, sizeof(hint))
        memset(&out, 0, sizeof(out))
        if isinstance(topic, str):
            keep_topic = view(topic, "topic", &hint.topic)
        elif topic_id is not None:
            raise TypeError("topic_id goes with a name; here the topic is not a str already")
        else:
            topic_id = topic
            if topic is None:
                raise TypeError("topic must be a name or an id, not None")
        if topic_id is not None:
            raw = topic_id_bytes(topic_id)
            hint.topic_id = <const uint8_t *> PyBytes_AS_STRING(raw)
        hint.partition = int32(partition, "partition")
        hint.leader = int32(leader, "leader")
        hint.leader_epoch = int32(leader_epoch, "leader_epoch")
        if node is not None:
            host, port, rack = endpoint(node, leader)
            keep_host = view(host, "host", &hint.host)
            if not hint.host.len:
                raise ValueError("the host of node is empty")
            hint.port = <int32_t> integer(port, "port", 0, 65535)
            if rack is not None:
                keep_rack = view(rack, "rack", &hint.rack)
        self.read_clocks(&now)
        with nogil:
            err = rdmeta_cache_apply_leader_hint(self.cache, &hint, now, &out)
        if err:
            raise from_code(err, "leader hint")
        return applied_of(&out)

    def hint(self, topics, ttl=None, replace=False, force=False):
        """Note that topics are about to be asked for; returns the names that really must be.

        Not those that are valid, in flight, or were answered negatively a moment ago. `ttl` in seconds
        is how long a name is in flight. `replace` asks although it is, `force` although the topic is
        valid or denied. ArgumentError for a name that is empty or above 32 767 bytes.
        """
        cdef Names names = names_of(topics)
        cdef Names to_ask = Names(("",) * names.n)
        cdef list found = []
        cdef int64_t turn
        cdef int64_t ttl_us = 0 if ttl is None else max(microseconds(ttl, "ttl"), 1)
        cdef int32_t flags = (RDMETA_HINT_REPLACE if replace else 0) | (
            RDMETA_HINT_FORCE if force else 0)
        cdef rdmeta_time_t now
        cdef rdmeta_err_t err
        cdef size_t n = 0
        cdef size_t i
        self.read_clocks(&now)
        with nogil:
            err = rdmeta_cache_hint(self.cache, names.items, names.n, flags, ttl_us, now, to_ask.items,
                                    &n)
        if err:
            raise from_code(err, names.fault() if err == RDMETA_ERR_ARGUMENT else "hint")
        turn = rdmeta_py_clock(CLOCK_MONOTONIC_COARSE)
        for i in range(n):
            found.append(text(to_ask.items[i]))
            let_others_run(&turn)
        return found

    def purge_hints(self, names=None):
        """End the hints of topics, or all of them; returns how many there were."""
        cdef Names given = None if names is None else names_of(names)
        cdef const rdmeta_str_t *items = NULL if given is None else given.items
        cdef size_t n = 0 if given is None else given.n
        cdef rdmeta_time_t now
        cdef int64_t ended
        self.read_clocks(&now)
        with nogil:
            ended = rdmeta_cache_purge_hints(self.cache, items, n, now)
        if ended < 0:
            raise from_code(<rdmeta_err_t> ended, "purge_hints")
        return ended

    def purge(self):
        """Forget every topic, broker and the cluster id; the version moves on if any was known."""
        cdef rdmeta_time_t now
        cdef rdmeta_err_t err
        self.read_clocks(&now)
        with nogil:
            err = rdmeta_cache_purge(self.cache, now)
        if err:
            raise from_code(err, "purge")

    def sweep(self):
        """Let go what is past its deadline; returns seconds to the next one, None without any.

        ForkedError in the child of a fork.
        """
        cdef rdmeta_time_t now
        cdef int64_t deadline
        self.read_clocks(&now)
        with nogil:
            deadline = rdmeta_cache_sweep(self.cache, now)
        if getpid() != self.pid:
            raise from_code(RDMETA_ERR_FORKED, "sweep")
        return None if deadline == INT64_MAX else max(deadline - now.mono_us, 0) / 1e6

    def wait_change(self, since, timeout=None, topics=None):
        """Wait until the version is above `since`, and return it; None after `timeout` seconds.

        Returns at once if it already is, so no change can be missed. With `topics` one of them must
        have changed after `since`; a removal is a change. Answers Ctrl-C. ForkedError in the child of
        a fork, where nobody can write, unless the version is above `since` already; TypeError,
        ValueError.
        """
        return self.wait(since, timeout, topics, None, None)

    cdef object wait(self, since, timeout, topics, topic, told):
        """wait_change(); None too when there is another answer about a topic than `told`."""
        cdef Names names = awaited(topics)
        cdef uint64_t start = unsigned(since, "since")
        cdef int64_t left = INT64_MAX if timeout is None else microseconds(timeout, "timeout")
        cdef int64_t end = rdmeta_py_clock(CLOCK_MONOTONIC) + min(left, <int64_t> FOREVER_US)
        cdef const rdmeta_str_t *items = NULL if names is None else names.items
        cdef size_t n = 0 if names is None else names.n
        cdef uint64_t version
        while told is None or self._answer(topic) == told:
            with nogil:
                version = rdmeta_cache_wait(self.cache, start, items, n,
                                            max(min(left, <int64_t> SLICE_US), 0))
            if version:
                return version
            if getpid() != self.pid:
                raise from_code(RDMETA_ERR_FORKED, "nothing changes in the child of a fork")
            PyErr_CheckSignals()
            left = end - rdmeta_py_clock(CLOCK_MONOTONIC)
            if left <= 0:
                break
        return None

    def publish(self, path, interval=0.02):
        """Keep a file up to date with the cache, for `rdmeta.attach` in other processes.

        Returns a Publisher: close it, or use it in a `with`, to publish what is left and stop; it
        stops as well when the cache goes. The first state is there when this returns. OSError, a
        BlockingIOError while another publisher has the path; ForkedError.
        """
        if getpid() != self.pid:
            raise from_code(RDMETA_ERR_FORKED, "nothing changes in the child of a fork")
        return Publisher(self, path, interval)

    def capsule(self):
        """A PyCapsule "rdmeta.cache" that holds this cache, a rdmeta_cache_t, for other extensions.

        It is the live cache, and stays good when this object goes: see rdmeta_cache_from_object() of
        rdmeta_api.h, and rdmeta.ffi.
        """
        return cache_capsule(self.cache)

    def _answer(self, topic, /):
        """What tells one answer about a topic from the next; None without any. For rdmeta._waits."""
        cdef rdmeta_str_t name
        cdef rdmeta_topic_info_t info
        cdef const rdmeta_topic_t *found = NULL
        cdef int64_t now = self.now()
        keep = view(topic, "topic", &name)
        rdmeta_reader_enter(self.lenient)  # nothing until leave can let go of the GIL
        rdmeta_topic_find(self.lenient, name.data, name.len, now, &found)
        if found is not NULL:
            rdmeta_topic_info(self.lenient, found, now, &info)
        rdmeta_reader_leave(self.lenient)
        return None if found is NULL else info.deadline_us

    def _watch(self, fd, answers=False, /):
        """Write to a descriptor after every change, or every answer, until the Watch is closed."""
        return Watch(self, fd, answers)

    def _teller(self, loop, wake, /):
        """What tells an event loop of changes; for rdmeta._waits."""
        return _waits.Pipe(self, loop, wake)

    def _since(self, since, /):
        """A version to wait from. TypeError, ValueError."""
        return unsigned(since, "since")

    def _changed(self, topics, since, /):
        """Which topics changed after `since`, by their places; for rdmeta._waits."""
        cdef Names names = names_of(topics)
        cdef uint64_t start = unsigned(since, "since")
        cdef bytearray hits = bytearray(<Py_ssize_t> names.n)
        cdef uint8_t[::1] hit = hits
        cdef size_t i
        if not names.n:
            return []
        with nogil:
            changed_among(self.cache, start, names.items, names.n, &hit[0])
        return [i for i in range(names.n) if hit[i]]

    def _sleep(self, since, timeout, topic, told, /):
        """Wait for a change of a topic, or for another answer about it than `told`, if not None.

        The version, or None; errors as of wait_change(). For rdmeta._waits.
        """
        return self.wait(since, timeout, (topic,), topic, told)

    def wait_change_async(self, since, timeout=None, topics=None):
        """wait_change() to be awaited, from any event loop; costs no thread."""
        return _waits.wait_change_async(self, since, timeout, topics)

    def wait_for_topic(self, topic, partition=None, timeout=60.0):
        """Wait until a topic is valid and return it; with `partition`, until that one has a leader.

        Raises InvalidTopicError, and TopicAuthorizationError if that is answered from now on; a topic
        that is unknown is waited for, as it may be being created. RequestTimedOutError after `timeout`
        seconds, None for no limit. ForkedError, TypeError and ValueError as of wait_change(). It asks
        no broker: something else must feed the cache, and for a topic that was denied a moment ago
        that takes hint(force=True).
        """
        return _waits.wait_for_topic(self, topic, partition, timeout)

    def wait_for_topic_async(self, topic, partition=None, timeout=60.0):
        """wait_for_topic() to be awaited, from any event loop; costs no thread."""
        return _waits.wait_for_topic_async(self, topic, partition, timeout)

# MetadataCache: its life, what writes to it, and what waits for it. Included by _core.pyx.

cdef class MetadataCache(Reading):
    """Kafka cluster metadata in memory: fed Metadata responses, asked who leads what.

    All arguments are optional. Times are in seconds: `max_age` until a topic is stale,
    `negative_ttl` for "no such topic", `denied_ttl` at most for "not authorised", `hint_ttl` for a
    name that is being asked for, `absent_grace` from a topic's absence to its removal. `ring_bytes`
    bounds the changes kept. `seed` fixes the hash for tests. `clock` is a callable that gives
    seconds, or has `monotonic()` and `time()` as the `time` module does; by default C reads its own
    clocks, coarse ones for lookups. They are taken when the object is made: a subclass with arguments
    of its own overrides `__new__`.

    Threads may share a cache. Lookups see valid topics only; with `allow_stale=True` also the last
    known values of topics past their deadline and of partitions without a leader.
    """

    def __cinit__(self, *args, max_age=None, negative_ttl=None, denied_ttl=None, hint_ttl=None,
                  absent_grace=None, ring_bytes=None, seed=None, clock=None, **unknown):
        cdef rdmeta_conf_t conf
        if args or unknown:
            wrong = "settings without a name" if args else f"the setting {next(iter(unknown))!r}"
            raise TypeError(f"MetadataCache does not know {wrong}; it asks no broker itself: use"
                            " rdmeta.fetch(cache, \"host:9092\"); a subclass with arguments of its"
                            " own overrides __new__")
        rdmeta_conf_init(&conf)
        if max_age is not None:
            conf.max_age_us = lifetime(max_age, "max_age")
        if negative_ttl is not None:
            conf.negative_ttl_us = microseconds(negative_ttl, "negative_ttl")
        if denied_ttl is not None:
            conf.denied_ttl_us = microseconds(denied_ttl, "denied_ttl")
        if hint_ttl is not None:
            conf.hint_ttl_us = lifetime(hint_ttl, "hint_ttl")
        if absent_grace is not None:
            conf.absent_grace_us = microseconds(absent_grace, "absent_grace")
        if ring_bytes is not None:
            conf.ring_bytes = <size_t> integer(ring_bytes, "ring_bytes", 0, INT64_MAX)
        if seed is not None:
            conf.seed = unsigned(seed, "seed")
        self.set_clock(clock)
        self.max_age_us = conf.max_age_us
        self._loops = WeakValueDictionary()
        self.cache = rdmeta_cache_new(&conf)
        if self.cache is NULL:
            raise MemoryError
        self.begin()
        self.session_name = session_of(self.cache)

    def __dealloc__(self):
        if self.cache is not NULL:
            rdmeta_cache_unref(self.cache)  # its readers hold it as well

    cdef rdmeta_reader_t *make(self, int32_t flags) noexcept:
        cdef rdmeta_reader_t *reader
        with nogil:  # a writer may hold the lock that this takes
            reader = rdmeta_reader_new(self.cache, flags)
        return reader

    cdef uint64_t version_now(self) except? 0:
        return rdmeta_cache_version(self.cache)

    cdef int64_t answered_us(self) except? -1:
        cdef rdmeta_stats_t s
        self.read_stats(&s)
        return answered_at(s.shared_deadline_us, self.max_age_us)

    def image(self):
        """What the cache says now, held, as an Image: costs no copy.

        `then = cache.image()`, and later `then.diff(cache.image())`. It is written with save().
        """
        cdef rdmeta_image_t *image
        cdef rdmeta_time_t now
        self.read_clocks(&now)
        with nogil:
            image = rdmeta_cache_image(self.cache, now)
        return image_of(image)

    cdef int read_stats(self, rdmeta_stats_t *out) except -1:
        with nogil:
            rdmeta_cache_stats(self.cache, out)
        return 0

    def __reduce__(self):
        raise TypeError("a MetadataCache cannot be pickled or copied: it is live state")

    def __repr__(self):
        cdef rdmeta_stats_t s
        self.read_stats(&s)
        valid = min(len(self), s.topics)
        return (f"<rdmeta.MetadataCache cluster_id={self.cluster_id!r} version={s.version}"
                f" topics={valid} stale={s.topics - valid} brokers={len(self.brokers)}>")

    def resolve(self, topic, /):
        """A TopicHandle, for who asks about one topic again and again.

        The topic need not be known: then its lookups say so until it is. ArgumentError for a name
        that cannot be.
        """
        return TopicHandle(self, topic)

    @property
    def session(self):
        """A UUID that names this cache's life in change records."""
        return self.session_name

    def stats(self):
        """Counters and sizes as a dict, with the names of rdmeta_stats_t, which counts them.

        - answers: `applies`, `apply_failures`; of their topics `topics_applied`, `topics_changed`,
          `topics_unchanged` (of which `digest_hits` were not even parsed), and `topics_kept_back`,
          which lost to what was known; `leader_hints_taken`, `leader_hints_ignored`
        - what is held: `version`, `topics` valid or stale and their `partitions`, `negatives`
          (unknown, denied, invalid, absent), `hints` in flight, `retained` ids and epochs of what
          is gone, `reasons`, and `reasons_dropped` for want of room
        - who asks: `readers`, `waiters`, `watches`, `handles`, `images`
        - `bytes` that the allocator was asked for; of which `bytes_free` are had for topics and
          nobody's: when they are more than an eighth, sweep() and answers move topics
          (`topics_moved`) until less is held; `bytes_ring`, `bytes_limbo` and `bytes_images` are
          what changes, readers and images keep
        - `ring_records` changed topics are held for changes(), from version `ring_floor` on;
          `rehashes` and `reseeds` of the tables of names
        - `all_topics_age`: how many seconds ago all topics were answered, None for never
        """
        cdef rdmeta_stats_t s
        cdef dict found
        cdef int64_t now = self.now()
        self.read_stats(&s)
        found = s
        answered = answered_at(found.pop("shared_deadline_us"), self.max_age_us)
        found["all_topics_age"] = None if answered == INT64_MIN else max(now - answered, 0) / 1e6
        return found

    def changes(self, since=0):
        """What changed after the version `since`, oldest first, as Changes.

        `.until` is the version to go on from. `.resync` is True if older records than asked for are
        not held any more: then there are none here, and the state must be read anew. So it is of
        any in the child of a fork that came in the middle of a write.
        """
        cdef uint64_t start = unsigned(since, "since")
        cdef ChangeTable found = no_records(self.session_name)
        cdef uint64_t until = 0
        cdef int32_t resync = 0
        cdef rdmeta_err_t err
        with nogil:
            err = rdmeta_cache_changes(self.cache, start, record_visit, &found.records, &until,
                                       &resync)
        if err:
            raise from_code(err, "changes")
        return Changes(found, until, bool(resync))

    @classmethod
    def load(cls, path, *, copy=False, **settings):
        """A cache that begins with what a file of Image.save() or publish() holds: a warm start.

        `settings` are those of the class. Every topic is stale until an answer says it again, so
        `allow_stale=True` gives it; ids and epochs are remembered. Errors, and `copy`, as of
        Image.open(): a file that is truncated while it is loaded is fatal without it.
        """
        cdef MetadataCache cache = cls(**settings)
        cdef int32_t flags = RDMETA_IMAGE_COPY if copy else 0
        cdef bytes raw = path_bytes(path)
        cdef const char *name = raw
        cdef rdmeta_image_t *image = NULL
        cdef rdmeta_image_fault_t fault
        cdef rdmeta_time_t now
        cdef rdmeta_err_t err
        cdef rdmeta_err_t again
        cdef int number
        cache.read_clocks(&now)
        now.mono_us = cache.now()  # what is past by it is so for the next lookup
        with nogil:
            err = rdmeta_image_open(name, flags, now, &image)
            number = errno
        if err:
            raise not_opened(err, number, raw)
        with nogil:
            err = rdmeta_cache_load(cache.cache, image, now)
            again = rdmeta_image_fault(image, &fault) if err == RDMETA_ERR_MALFORMED else RDMETA_OK
            rdmeta_image_unref(image)
        if err:
            raise refused(err, 0, raw, "image", fault_text(again, &fault))
        return cache

    # Every writer lets go of the GIL: it may have to wait for another one.

    def apply(self, body, api_version, asked=None, broker=None, *, sent_version=None,
              tolerate_trailing=False, rebootstrapped=False, candidates=0, reason=None):
        """Apply a Metadata response's body, any bytes-like object without the response header.

        `asked` decides what absence means: None (not known: merges, removes nothing), ALL, names, ids,
        () for brokers only, or the Request that was sent. `broker` is who answered. `sent_version` is
        the cache's version when the request left: what was learned since is not removed, and 0 is that of
        a new cache; by default the version now. `candidates` is how many brokers could have been asked, 0 for all known ones.
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
        a.set_reason(asked.reason if reason is None and isinstance(asked, Request) else reason)
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

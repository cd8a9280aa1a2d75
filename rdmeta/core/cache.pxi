# MetadataCache: settings, load, apply, due, hints, forget, purge, sweep, changes, waits, publish,
# stats. Included by _core.pyx.

cdef class MetadataCache(Reading):
    """Kafka cluster metadata in memory: apply() writes Metadata responses, lookups read them.

        cache = rdmeta.MetadataCache()
        rdmeta.fetch(cache, "localhost:9092")
        cache.leader("orders", 3)                   # a broker id

    A lookup reads valid topics only. With `allow_stale=True` it also reads the last known values of
    topics past their deadline and of partitions without a leader. Threads may share a cache.

    All arguments are optional; times are in seconds:

    - max_age: the time from an answer until its topics are stale; 900.
    - negative_ttl: how long the answer "unknown topic" is kept; 0.1.
    - denied_ttl: the most time that the answer "not authorised" is kept; 10.
    - hint_ttl: how long a name is in flight after hint(); 60.
    - absent_grace: the time from a topic's absence in a broker's answer to its removal; 15.
    - ring_bytes: the most bytes of records that are kept for changes(); 4 MiB.
    - seed: fixes the seed of the hash, for tests; by default it is random.
    - clock: a callable that returns seconds, or an object with monotonic() and time() as in the
      module `time`. By default C reads the system's clocks, and lookups read the coarse ones.

    The constructor takes the arguments in `__new__`: a subclass with other arguments overrides
    `__new__`. TypeError, ValueError. MemoryError.
    """

    def __cinit__(self, *args, max_age=None, negative_ttl=None, denied_ttl=None, hint_ttl=None,
                  absent_grace=None, ring_bytes=None, seed=None, clock=None, **unknown):
        cdef rdmeta_conf_t conf
        if args or unknown:
            wrong = "settings without a name" if args else f"the setting {next(iter(unknown))!r}"
            raise TypeError(f"MetadataCache does not take {wrong}. To fill a cache from a broker,"
                            " use rdmeta.fetch(cache, \"host:9092\"). A subclass with arguments of"
                            " its own overrides __new__")
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
            rdmeta_cache_unref(self.cache)  # its readers have references of their own

    cdef rdmeta_reader_t *make(self, int32_t flags) noexcept:
        cdef rdmeta_reader_t *reader
        with nogil:  # a writer may hold the lock that rdmeta_reader_new() takes
            reader = rdmeta_reader_new(self.cache, flags)
        return reader

    cdef uint64_t version_now(self) except? 0:
        return rdmeta_cache_version(self.cache)

    cdef int64_t answered_us(self) except? -1:
        cdef rdmeta_stats_t s
        self.read_stats(&s)
        return answered_at(s.shared_deadline_us, self.max_age_us)

    def image(self):
        """Returns the current state as an Image, which later writes do not change.

            before = cache.image()
            ...                                     # the cache goes on
            before.diff(cache.image())              # the changes since then
            before.save("/run/orders.rdmeta")

        It copies no topic. MemoryError. It works in the child of a fork.
        """
        cdef rdmeta_image_t *image
        cdef rdmeta_time_t now
        self.read_clocks(&now)
        with nogil:
            image = rdmeta_cache_image(self.cache, now)
        if image is NULL:
            raise not_made(self)
        return image_of(image)

    cdef int read_stats(self, rdmeta_stats_t *out) except -1:
        """Reads the statistics of C; waits for a writer without the GIL. ForkedError."""
        with nogil:
            rdmeta_cache_stats(self.cache, out)
        if out.bytes == 0:
            raise not_made(self)
        return 0

    def __reduce__(self):
        raise TypeError("a MetadataCache cannot be pickled or copied: it is a live cache;"
                        " save its image() to a file, and load() the file there")

    def __repr__(self):
        cdef rdmeta_stats_t s
        self.read_stats(&s)
        valid = min(len(self), s.topics)
        return (f"<rdmeta.MetadataCache cluster_id={self.cluster_id!r} version={s.version}"
                f" topics={valid} stale={s.topics - valid} brokers={len(self.brokers)}>")

    def resolve(self, topic, /):
        """Returns a TopicHandle for repeated lookups of one topic.

            orders = cache.resolve("orders")
            orders.leader(3)                        # needs no search for the topic

        The topic need not be known: its lookups raise NotCachedError until it is. ArgumentError for
        a name that is empty or longer than 32 767 bytes. TypeError, MemoryError.
        """
        return TopicHandle(self, topic)

    @property
    def session(self):
        """A UUID that names this cache in change records."""
        return self.session_name

    def stats(self):
        """Returns counters and sizes as a dict, with the names of rdmeta_stats_t in rdmeta.h.

        Answers and leader hints:

        - `applies`: the calls of apply().
        - `apply_failures`: the calls of apply() that failed, and of apply_failure().
        - `topics_applied`: the topics in applied answers.
        - `topics_changed`, `topics_unchanged`: topics that an answer changed, or did not change.
        - `digest_hits`: unchanged topics that were not even parsed.
        - `topics_kept_back`: topics that lost to newer known values.
        - `leader_hints_taken`, `leader_hints_ignored`: the results of apply_leader_hint().
        - `all_topics_age`: age() without a topic.

        The state:

        - `version`, `topics` (valid or stale) and their `partitions`.
        - `negatives`: topics that are unknown, denied, invalid or absent.
        - `hints`: names in flight.
        - `retained`: topics that are gone, whose ids and epochs are still kept.
        - `reasons`: the different reasons that are kept.
        - `reasons_dropped`: answers whose reason had no room.

        The users of the cache: `readers`, `waiters`, `watches`, `handles` and `images`.

        Memory:

        - `bytes`: all bytes that the allocator was asked for.
        - `bytes_free`: bytes of these that are for topics and in no use. Above an eighth of the
          memory for topics, sweep() and answers move topics to free memory.
        - `topics_moved`: how many topics were moved.
        - `bytes_ring`, `bytes_limbo`, `bytes_images`: bytes of these that are kept for changes(),
          for readers that still use them, and for images alone.
        - `ring_records`: the changed topics that are kept for changes().
        - `ring_floor`: changes() of an older version sets resync.
        - `rehashes`: how often a table of names or ids was rebuilt.
        - `reseeds`: how often of these for too many collisions.
        """
        cdef rdmeta_stats_t s
        cdef dict found
        cdef int64_t now = self.now()
        self.read_stats(&s)
        found = s
        answered = answered_at(found.pop("shared_deadline_us"), self.max_age_us)
        found["all_topics_age"] = None if answered == INT64_MIN else max(now - answered, 0) / 1e6
        return found

    def changes(self, since=0, *, whole=False):
        """Returns what changed after the version `since`, oldest first, as Changes.

            changes = cache.changes(since)
            for change in changes:
                print(change.kind, change.topic, change.partition)
            since = changes.until                   # for the next call

        With `whole`, each topic_added and topic_recreated is followed by a record of that kind per
        partition, with its state at that version. So the records alone tell every state.
        If records after `since` are no longer kept, `.resync` is True and there are no records: the
        caller must read the state anew. TypeError, ValueError; MemoryError.
        """
        cdef uint64_t start = unsigned(since, "since")
        cdef ChangeTable found = no_records(self.session_name)
        cdef uint64_t until = 0
        cdef int32_t resync = 0
        cdef rdmeta_err_t err
        cdef bint in_full = whole
        with nogil:
            if in_full:
                err = rdmeta_cache_changes_whole(self.cache, start, record_visit, &found.records,
                                                 &until, &resync)
            else:
                err = rdmeta_cache_changes(self.cache, start, record_visit, &found.records, &until,
                                           &resync)
        if err:
            raise from_code(err, "changes")
        return Changes(found, until, bool(resync))

    def _count_changes(self, since, /):
        """Returns the number of changes() after `since` by kind, until which version, and resync.

        It copies no record; for rdmeta.client.
        """
        cdef uint64_t start = unsigned(since, "since")
        cdef KindCounts counts
        cdef uint64_t until = 0
        cdef int32_t resync = 0
        cdef rdmeta_err_t err
        cdef int32_t kind
        memset(&counts, 0, sizeof(counts))
        with nogil:
            err = rdmeta_cache_changes(self.cache, start, count_visit, &counts, &until, &resync)
        if err:
            raise from_code(err, "changes")
        found = {rdmeta_change_kind_name(kind).decode("ascii"): counts.n[kind]
                 for kind in range(64) if counts.n[kind]}
        return found, until, bool(resync)

    @classmethod
    def load(cls, path, *, copy=False, **settings):
        """Returns a new cache with the state of a file of Image.save() or publish(): a warm start.

            cache = rdmeta.MetadataCache.load("/run/orders.rdmeta", max_age=300.0)

        Every topic is stale until an answer confirms it: `allow_stale=True` reads it. Topic ids and
        leader epochs count from the beginning. `settings` are those of MetadataCache. `copy` and
        the errors are those of Image.open(). Without `copy`, a program that truncates the file
        during load() ends this process (SIGBUS).
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
        now.mono_us = cache.now()  # the lookups' clock: the next lookup finds every topic stale
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

    # Every writer releases the GIL: it may have to wait for another writer.

    def apply(self, body, api_version, asked=None, broker=None, *, sent_version=None,
              sent_hints=None, tolerate_trailing=False, rebootstrapped=False, candidates=0,
              reason=None):
        """Applies the body of a Metadata response, and returns what it changed as an Applied.

            request = cache.request(["orders"])
            ...                                     # send it to broker 1 as Metadata v12
            applied = cache.apply(body, 12, request, broker=1)

        - body: a bytes-like object, without the response header.
        - api_version: the Metadata version of the response, 0 to 13.
        - asked: what was asked for, which decides what an absent topic means: the Request that was
          sent, ALL, names, ids, or () for brokers only. None means not known: the answer is merged,
          and removes nothing.
        - broker: the id of the broker that answered, None if not known.
        - sent_version: the cache's version when the request left; 0 is that of a new cache. The
          answer does not remove what was learned later. By default it is the Request's own, or the
          version now.
        - sent_hints: the number of the cache's last hint when the request left, as request() gives
          it. The answer does not end a hint that was made later. By default it is the Request's own.
        - candidates: how many brokers could have been asked; 0 for all known brokers.
        - reason: why it was asked for, a str that reason() returns; by default that of the Request.
          The cache keeps 255 bytes of it, cut between characters. It keeps 1024 different reasons
          and ignores further ones.
        - rebootstrapped: an answer of another cluster replaces everything (KIP-1102).
        - tolerate_trailing: accepts one byte too many, which librdkafka's mock brokers send.

        docs/internals/policies.md lists the rules for an answer that differs from what is known.

        On an exception the cache is as it was, but for hints that the answer ends. Those are the
        hints of the names that were asked for; an applied answer to ALL ends every hint. Hints made
        after a Request of request() left stay.

        MalformedError, UnsupportedVersionError, NoBrokersError, WrongClusterError, ForkedError, or
        the exception of a top-level error (v13). Its `.applied` has what is known of the answer.
        """
        cdef int16_t v = <int16_t> integer(api_version, "api_version", INT16_MIN, INT16_MAX)
        cdef Asked a = asked_of(asked, broker, sent_version, sent_hints,
                                 rdmeta_cache_version(self.cache))
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
                err = rdmeta_cache_apply(self.cache, data.buf, <size_t> data.len, v, &a.request,
                                         now, &out)
            if err == RDMETA_ERR_MALFORMED:
                where = malformed_at(&data, v, a.request.flags)
            elif err == RDMETA_ERR_WRONG_CLUSTER:
                where = (f" of cluster {head_of(&data, v)[2]!r}, and the cache is of"
                         f" {self.cluster_id!r}")
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
        """Returns a Request that leaves now, for apply() or apply_failure().

        Call it before the request is sent. The Request has the cache's version and the number of
        its last hint. So its answer removes nothing that was learned later, and ends no later hint.
        `topics` is ALL, names, ids, or () for brokers only. ForkedError in the child of a fork.
        """
        cdef rdmeta_request_t sent
        cdef rdmeta_err_t err
        memset(&sent, 0, sizeof(sent))
        err = rdmeta_cache_request_sent(self.cache, &sent)
        if err:
            raise from_code(err, "request")
        return Request(topics, allow_auto_create, topic_authorized_operations,
                       cluster_authorized_operations, sent.sent_version, reason, sent.sent_hints)

    def apply_failure(self, asked=None):
        """Ends the hints of a request that failed: the names that it asked for are not in flight.

        `asked` is that of apply(). None means not known: every hint ends. Hints made after a
        Request of request() left stay. ForkedError, TypeError, ValueError, MemoryError.
        """
        cdef Asked a = asked_of(asked, None, None, None, 0)
        cdef rdmeta_time_t now
        cdef rdmeta_err_t err
        self.read_clocks(&now)
        with nogil:
            err = rdmeta_cache_apply_failure(self.cache, &a.request, now)
        if err:
            raise from_code(err, "apply_failure")

    def apply_leader_hint(self, topic, partition, leader, leader_epoch, node=None, *,
                          topic_id=None):
        """Takes a leader from a Produce or Fetch answer (KIP-951), if newer than the known one.

            cache.apply_leader_hint("orders", 3, leader=2, leader_epoch=8, node=("host", 9092))

        Returns an Applied, whose `changed` is 0 if the cache ignored the hint. `topic` is a name,
        or an id (uuid.UUID or 16 bytes). A name may come with its `topic_id`, which must then match
        the known id. `node` is the leader's Broker, (host, port) or (host, port, rack), if the
        answer had it; without a node the broker must be known. A refresh is still due: age(),
        source() and reason() stay those of the last answer.

        TypeError. ValueError: `node` is another broker than the leader, its port is beyond 65535,
        or its host is empty. ForkedError, MemoryError.
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
            raise TypeError("topic_id must not be given unless topic is a name, a str")
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
                raise ValueError("the host of node must not be empty")
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
        """Marks topics as in flight before a request; returns the names that must be asked for.

            to_ask = cache.hint(["orders", "audit"])    # ask a broker for these

        The result leaves out duplicates, and topics that are valid, in flight already, or were
        answered negatively a moment ago. `ttl` is how many seconds a name is in flight, by default
        the cache's hint_ttl. `replace` returns names in flight too, `force` returns valid and
        denied topics too.

        ArgumentError: a name is empty or longer than 32 767 bytes. ForkedError, TypeError,
        ValueError, MemoryError.
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
            err = rdmeta_cache_hint(self.cache, names.items, names.n, flags, ttl_us, now,
                                    to_ask.items, &n)
        if err:
            raise from_code(err, names.fault() if err == RDMETA_ERR_ARGUMENT else "hint")
        turn = rdmeta_py_clock(CLOCK_MONOTONIC_COARSE)
        for i in range(n):
            found.append(text(to_ask.items[i]))
            let_others_run(&turn)
        return found

    def purge_hints(self, names=None):
        """Ends the hints of topics, or all hints if `names` is None; returns how many it ended.

        ForkedError, TypeError.
        """
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

    def due(self, limit=None):
        """Returns the topics that need another answer, and why, as a list of Due in any order.

            for topic, reasons in cache.due():
                print(topic, reasons)               # orders DueReason.NO_LEADER

        `limit` is the most topics to return. A reason holds until a later answer clears it or the
        topic goes, for stale topics and topics in flight too. Some reasons depend on the time:
        ABSENT ends with the grace time, and DENIED begins after the TTL.

        The time of a call depends on how many topics are due or denied, not on how many are cached.
        The first call after load(), or after a broker has gone, looks at every topic.

        ForkedError in the child of a fork. TypeError, ValueError for a limit below 0. MemoryError.
        """
        cdef Copied copied = Copied.__new__(Copied)
        cdef dict reasons = {}
        cdef list found = []
        cdef size_t most = 0
        cdef rdmeta_str_t name
        cdef uint32_t number
        cdef int64_t turn
        cdef rdmeta_time_t now
        cdef rdmeta_err_t err
        if limit is not None:
            most = <size_t> integer(limit, "limit", 0, INT64_MAX)
            if not most:
                return []
        self.read_clocks(&now)
        with nogil:
            err = rdmeta_cache_due(self.cache, now.mono_us, most, due_visit, <void *> copied)
        if err:
            raise from_code(err, "due")
        turn = rdmeta_py_clock(CLOCK_MONOTONIC_COARSE)
        while copied.next(&name, &number):
            if number not in reasons:
                reasons[number] = DueReason(number)
            found.append(Due(text(name), reasons[number]))
            let_others_run(&turn)
        return found

    def forget(self, names):
        """Removes topics that are no longer needed, and records the changes; returns how many.

            cache.forget(["orders-2023"])           # 1

        It also removes denied and unknown topics, ends hints, and forgets the ids and epochs of
        topics that are gone. Names that are not cached are skipped. Handles stay: their lookups
        raise NotCachedError. The version rises once if anything was known. An answer that names a
        topic again brings it back.

        ForkedError, TypeError, MemoryError.
        """
        cdef Names given = names_of(names)
        cdef rdmeta_time_t now
        cdef int64_t forgotten
        self.read_clocks(&now)
        with nogil:
            forgotten = rdmeta_cache_forget(self.cache, given.items, given.n, now)
        if forgotten < 0:
            raise from_code(<rdmeta_err_t> forgotten, "forget")
        return forgotten

    def resolved(self):
        """Returns the names of the topics that live handles hold, in any order: see resolve().

        ForkedError in the child of a fork. MemoryError.
        """
        cdef Copied copied = Copied.__new__(Copied)
        cdef list found = []
        cdef rdmeta_str_t name
        cdef uint32_t number
        cdef int64_t turn
        cdef rdmeta_err_t err
        with nogil:
            err = rdmeta_cache_resolved(self.cache, name_visit, <void *> copied)
        if err:
            raise from_code(err, "resolved")
        turn = rdmeta_py_clock(CLOCK_MONOTONIC_COARSE)
        while copied.next(&name, &number):
            found.append(text(name))
            let_others_run(&turn)
        return found

    def purge(self):
        """Removes every topic, every broker and the cluster id, and records the changes.

        The version rises if anything was known. ForkedError, MemoryError.
        """
        cdef rdmeta_time_t now
        cdef rdmeta_err_t err
        self.read_clocks(&now)
        with nogil:
            err = rdmeta_cache_purge(self.cache, now)
        if err:
            raise from_code(err, "purge")

    def sweep(self):
        """Removes what is past its deadline; returns the seconds to the next deadline.

        Returns None if there is no deadline. ForkedError in the child of a fork.
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
        """Waits until the version is above `since`; returns it, or None after `timeout` seconds.

            version = cache.wait_change(version, timeout=10.0)

        It returns at once if the version is above `since` already, so no change can be missed. With
        `topics`, a list of names, one of them must have changed after `since`; a removal is a
        change. `timeout` None means no limit. It waits without the GIL, and Ctrl-C ends it.

        ForkedError in the child of a fork, where the version cannot rise, unless it is above
        `since` already. TypeError, ValueError.
        """
        return self.wait(since, timeout, topics, None, None)

    cdef object wait(self, since, timeout, topics, topic, answer):
        """Waits as wait_change() does, or until the topic has another answer than `answer`.

        Returns the version; None for another answer, or after `timeout` seconds. With `answer` None
        answers do not matter.
        """
        cdef Names names = awaited(topics)
        cdef uint64_t start = unsigned(since, "since")
        cdef int64_t left = INT64_MAX if timeout is None else microseconds(timeout, "timeout")
        cdef int64_t end = rdmeta_py_clock(CLOCK_MONOTONIC) + min(left, <int64_t> FOREVER_US)
        cdef const rdmeta_str_t *items = NULL if names is None else names.items
        cdef size_t n = 0 if names is None else names.n
        cdef uint64_t version
        while answer is None or self._answer(topic) == answer:
            with nogil:
                version = rdmeta_cache_wait(self.cache, start, items, n,
                                            max(min(left, <int64_t> SLICE_US), 0))
            if version:
                return version
            if getpid() != self.pid:
                raise from_code(RDMETA_ERR_FORKED, "a cache cannot change in the child of a fork")
            PyErr_CheckSignals()
            left = end - rdmeta_py_clock(CLOCK_MONOTONIC)
            if left <= 0:
                break
        return None

    def publish(self, path, interval=0.02, mode=None):
        """Keeps a file up to date with the cache, for rdmeta.attach() in other processes.

            with cache.publish("/run/orders.rdmeta"):
                ...                                 # other processes attach to the path

        Returns a Publisher, whose thread writes the file. Its close(), or the end of the `with`,
        publishes the last state and stops the thread; so does the end of the cache. `interval` is
        the least number of seconds between two writes. The file is complete when publish() returns.
        The umask decides who may read it, or `mode` does, such as 0o640.

        OSError; it is a BlockingIOError while another publisher has the path. ForkedError.
        TypeError, ValueError.
        """
        if getpid() != self.pid:
            raise from_code(RDMETA_ERR_FORKED, "a cache cannot change in the child of a fork")
        return Publisher(self, path, interval, mode)

    def capsule(self):
        """Returns a PyCapsule "rdmeta.cache" of this cache's rdmeta_cache_t, for other extensions.

        The capsule owns a reference to the live cache, so it outlives this object. See
        rdmeta_cache_from_object() of rdmeta_api.h, and rdmeta.ffi.
        """
        return cache_capsule(self.cache)

    def _answer(self, topic, /):
        """Returns a value that differs from answer to answer about a topic; None without an answer.

        It is the topic's deadline. For rdmeta.core.waits.
        """
        cdef rdmeta_str_t name
        cdef rdmeta_topic_info_t info
        cdef const rdmeta_topic_t *found = NULL
        cdef int64_t now = self.now()
        keep = view(topic, "topic", &name)
        rdmeta_reader_enter(self.lenient)  # no call until leave may release the GIL
        rdmeta_topic_find(self.lenient, name.data, name.len, now, &found)
        if found is not NULL:
            rdmeta_topic_info(self.lenient, found, now, &info)
        rdmeta_reader_leave(self.lenient)
        return None if found is NULL else info.deadline_us

    def _watch(self, fd, answers=False, /):
        """Returns a Watch that writes to `fd` after every change, or every answer, until closed."""
        return Watch(self, fd, answers)

    def _waker(self, loop, wake, /):
        """Returns a Pipe, which calls `wake` in the event loop after a change."""
        return waits.Pipe(self, loop, wake)

    def _since(self, since, /):
        """Returns `since` as a version. TypeError, ValueError."""
        return unsigned(since, "since")

    def _changed(self, topics, since, /):
        """Returns the indexes of the `topics` that changed after `since`; for rdmeta.core.waits."""
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

    def _sleep(self, since, timeout, topic, answer, /):
        """Waits for a change of a topic or, if `answer` is not None, for another answer than it.

        Returns the version; None for another answer, or after `timeout` seconds. The errors are
        those of wait_change(). For rdmeta.core.waits.
        """
        return self.wait(since, timeout, (topic,), topic, answer)

    def wait_change_async(self, since, timeout=None, topics=None):
        """Returns an awaitable wait_change(), for any event loop; it needs no thread."""
        return waits.wait_change_async(self, since, timeout, topics)

    def wait_for_topic(self, topic, partition=None, timeout=60.0):
        """Waits until a topic is valid, or with `partition` until it has a leader; returns it.

            cache.wait_for_topic("orders", timeout=30.0)        # a Topic
            cache.wait_for_topic("orders", 3)                   # a Partition

        It asks no broker: something else must refresh the cache. For a topic that was denied a
        moment ago, that needs hint(force=True). An unknown topic does not end the wait: a broker
        may be creating it.

        RequestTimedOutError after `timeout` seconds; None means no limit. InvalidTopicError.
        TopicAuthorizationError if a broker answers so during the wait. ForkedError, TypeError and
        ValueError are those of wait_change().
        """
        return waits.wait_for_topic(self, topic, partition, timeout)

    def wait_for_topic_async(self, topic, partition=None, timeout=60.0):
        """Returns an awaitable wait_for_topic(), for any event loop; it needs no thread."""
        return waits.wait_for_topic_async(self, topic, partition, timeout)

# What another process publishes, followed. Included by _core.pyx.

cdef Names awaited(topics):
    """The names of topics to wait for, None for any. TypeError, ValueError for none."""
    cdef Names names = None if topics is None else names_of(topics)
    if names is not None and not names.n:
        raise ValueError("there are no topics to wait for")
    return names


cdef class Attached(Reading):
    """The state that another process publishes at a path, read like its cache; see rdmeta.attach().

    It goes by the clock: what the other process does not keep fresh gets stale, `allow_stale=True`
    gives the last known of it, and `age()` says how old it is. There is no thread: a lookup looks
    whether a new file is there once `look` seconds have passed. Threads may share one. It works on
    in the child of a fork, and can be pickled: what is unpickled attaches itself to the same path.

    A version is one of a life of the cache that is published, its `session`: after a restart of the
    other process there is another one, whose versions begin anew. What `version` and the waits give
    remembers its session, and a new session is a change of everything.
    """

    def __cinit__(self, path, look=0.02, copy=False, clock=None):
        cdef bytes raw = path_bytes(abspath(path))
        cdef const char *name = raw
        cdef int64_t look_us = lifetime(look, "look")
        cdef int32_t flags = RDMETA_IMAGE_COPY if copy else 0
        cdef rdmeta_time_t now
        cdef rdmeta_err_t err
        cdef int number
        self.place = fsdecode(raw)
        self.arguments = (fsdecode(raw), look, bool(copy))
        self._look_s = min(look_us / 1e6, _waits.LOOK_S)
        self._loops = WeakValueDictionary()
        self.set_clock(clock)
        self.read_clocks(&now)
        with nogil:
            err = rdmeta_attach_new(name, flags, look_us, now, &self.attach)
            number = errno
        if err:
            raise not_opened(err, number, raw)
        self.begin()

    def __dealloc__(self):
        rdmeta_attach_destroy(self.attach)

    cdef rdmeta_reader_t *make(self, int32_t flags) noexcept:
        return rdmeta_attach_reader(self.attach, flags)

    cdef rdmeta_reader_t *take_brokers(self) except NULL:
        cdef int64_t now = self.now()
        cdef rdmeta_reader_t *reader = self.take(False)
        rdmeta_leader(reader, "?", 1, 0, now)  # no topic's name
        return reader

    cdef rdmeta_image_t *look(self) except NULL:
        """What lies there now, with a reference."""
        cdef rdmeta_image_t *image
        cdef rdmeta_time_t now
        self.read_clocks(&now)
        with nogil:
            image = rdmeta_attach_image(self.attach, now)
        return image

    cdef int look_info(self, rdmeta_image_info_t *info) except -1:
        cdef rdmeta_image_t *image = self.look()
        rdmeta_image_info(image, info)
        rdmeta_image_unref(image)
        return 0

    cdef str session_of(self, const rdmeta_image_info_t *info):
        """The session as text, made when it is another one."""
        cdef bytes raw = info.session[:16]
        if raw != self.session_raw:
            name = session_text(info.session)
            self.session_name = name
            self.session_raw = raw
        return self.session_name

    @property
    def version(self):
        """The version of what is read, a rdmeta.model.Version: it remembers the session."""
        cdef rdmeta_image_info_t info
        self.look_info(&info)
        return Version(info.version, self.session_of(&info))

    cdef int64_t ttl_us(self, int64_t now) noexcept:
        cdef rdmeta_time_t then = [now, 0]
        cdef rdmeta_image_t *image = rdmeta_reader_image(self.lenient, then)
        cdef rdmeta_image_info_t info
        rdmeta_image_info(image, &info)
        rdmeta_image_unref(image)
        return info.max_age_us

    cdef int64_t answered_us(self) except? -1:
        cdef rdmeta_image_info_t info
        self.look_info(&info)
        return answered_at(info.shared_deadline_us, info.max_age_us)

    def capsule(self):
        """A PyCapsule "rdmeta.attach" of a rdmeta_attach_t, for readers of other extensions."""
        return attach_capsule(self)

    def __reduce__(self):
        if not self.ticking:
            raise TypeError("an Attached with a clock of its own cannot be pickled")
        return Attached, self.arguments

    def __repr__(self):
        return f"<rdmeta.Attached {self.path!r} cluster_id={self.cluster_id!r} version={self.version}>"

    @property
    def path(self):
        """Where the file lies, absolute."""
        return self.arguments[0]

    @property
    def session(self):
        """The UUID of the life of the cache that is published; another one after a restart."""
        cdef rdmeta_image_info_t info
        self.look_info(&info)
        return self.session_of(&info)

    @property
    def taken(self):
        """When the state was taken that is read now, a datetime in UTC."""
        cdef rdmeta_image_info_t info
        self.look_info(&info)
        return wall_datetime(info.taken_wall_us)

    def image(self):
        """The state that is read now, held: it stays as it is when a new one comes."""
        return image_of(self.look(), self.place)

    def resolve(self, topic, /):
        """A TopicHandle, for who asks about one topic again and again, as MetadataCache.resolve().

        It follows as every lookup does: into new states, and through restarts of who publishes.
        """
        return TopicHandle(self, topic)

    def stats(self):
        """What is read now, and what it took, as a dict; after a look at the file.

        Of the state: `version`, `session`, `taken` (a datetime in UTC), `topics` (valid or stale),
        `partitions` of those, `negatives` (topics that are unknown, denied or invalid), `brokers`,
        `bytes` (the file's size: its pages are shared by all who map it), `mapped`. Of this object:
        `path`, `generations` (states it has read, the first one included), `looks` (how often it
        looked which file lies there), `errors` (looks that found none, or none that is good) and
        `error`, why the last one did, None if it went well.
        """
        cdef rdmeta_attach_stats_t s
        cdef rdmeta_image_info_t info
        cdef rdmeta_time_t now
        cdef rdmeta_image_t *image
        cdef rdmeta_reader_t *reader
        cdef uint32_t brokers
        self.read_clocks(&now)
        with nogil:
            image = rdmeta_attach_image(self.attach, now)
            rdmeta_image_unref(image)
        reader = self.take_brokers()
        rdmeta_reader_enter(reader)  # from the first thing on, all is of one state
        brokers = rdmeta_brokers_count(rdmeta_brokers(reader))
        image = rdmeta_reader_image(reader, now)
        rdmeta_reader_leave(reader)
        self.give(False, reader)
        rdmeta_image_info(image, &info)
        rdmeta_image_unref(image)
        rdmeta_attach_stats(self.attach, &s)
        return {"path": self.path, "version": Version(info.version, self.session_of(&info)),
                "session": self.session_of(&info),
                "taken": wall_datetime(info.taken_wall_us),
                "topics": info.topics, "partitions": info.partitions,
                "negatives": info.negatives, "brokers": brokers, "bytes": info.bytes,
                "mapped": bool(info.mapped), "generations": s.generations, "looks": s.looks,
                "errors": s.errors,
                "error": code_name(s.error).removeprefix("RDMETA_ERR_") if s.error else None}

    def wait_change(self, since, timeout=None, topics=None):
        """Wait until the version is above `since`, and return it; None after `timeout` seconds.

        MetadataCache.wait_change() of what another process writes: it looks at the file every
        `look` seconds, but at least every 50 ms, in the caller's thread, and lets others run
        meanwhile. With `topics` one of them must have changed after `since`. Another session than
        that of `since` is a change, of every topic: so a restart of who publishes ends the wait,
        however low its versions are. A plain int is taken for one of the session that is read now,
        but for one above its version: that can only be of another one. If who publishes is gone,
        nothing comes. Answers Ctrl-C. TypeError, ValueError; MalformedError for a file that was
        damaged.
        """
        return _waits.wait_change(self, since, timeout, awaited(topics))

    def wait_change_async(self, since, timeout=None, topics=None):
        """wait_change() to be awaited, from any event loop: the waits of one share their looks."""
        return _waits.wait_change_async(self, since, timeout, topics)

    def wait_for_topic(self, topic, partition=None, timeout=60.0):
        """Wait until a topic is valid and return it; with `partition`, until that one has a leader.

        MetadataCache.wait_for_topic() of what another process writes, with its errors; that one
        must ask for the topic.
        """
        return _waits.wait_for_topic(self, topic, partition, timeout)

    def wait_for_topic_async(self, topic, partition=None, timeout=60.0):
        """wait_for_topic() to be awaited, from any event loop."""
        return _waits.wait_for_topic_async(self, topic, partition, timeout)

    # ---- for rdmeta._waits --------------------------------------------------------------------

    def _teller(self, loop, wake, /):
        """What tells an event loop of new states."""
        return _waits.Ticker(self, loop, wake)

    def _generation(self):
        """What tells one state from the next, after a look.

        How many have been read does not: where a fork came in the middle of a look, nobody counts.
        """
        cdef rdmeta_image_info_t info
        self.look_info(&info)
        return self.session_of(&info), info.version, info.said_mono_us

    def _full_answer(self, /):
        """What tells the last answer about all topics, None past max_age; for rdmeta.compat.

        Its time is in the clock of the process that publishes, which does not change it.
        """
        cdef rdmeta_image_info_t info
        cdef int64_t said
        self.look_info(&info)
        said = answered_at(info.shared_deadline_us, info.max_age_us)
        if said == INT64_MIN or self.now() - said > info.max_age_us:
            return None
        return self.session_of(&info), said - info.taken_mono_us + info.said_mono_us

    def _since(self, since, /):
        """`since` with its session, "" for one that is over. TypeError, ValueError."""
        cdef rdmeta_image_info_t info
        cdef uint64_t start = unsigned(since, "since")
        if isinstance(since, Version):
            return since
        self.look_info(&info)
        return Version(start, self.session_of(&info) if start <= info.version else "")

    def _passed(self, since, topics, /):
        """The version if there is a change after `since`, a Version, of `topics`; or None."""
        cdef Names names = topics
        cdef rdmeta_image_info_t info
        cdef rdmeta_image_t *image = self.look()
        cdef uint64_t start = unsigned(since, "since")
        cdef int32_t changed
        cdef size_t i
        try:
            rdmeta_image_info(image, &info)
            session = self.session_of(&info)
            changed = session != since.session
            if not changed and info.version > start:
                changed = names is None
                if names is not None:
                    with nogil:
                        for i in range(names.n):
                            changed = rdmeta_image_changed(image, names.items[i].data,
                                                           names.items[i].len, start)
                            if changed:
                                break
        finally:
            rdmeta_image_unref(image)
        if changed < 0:
            raise broken(self, changed, "a topic")
        return Version(info.version, session) if changed else None

    def _changed(self, topics, since, /):
        """Which topics changed after `since`, a Version, by their places."""
        cdef Names names = names_of(topics)
        cdef rdmeta_image_info_t info
        cdef rdmeta_image_t *image = self.look()
        cdef uint64_t start = unsigned(since, "since")
        cdef list found
        cdef size_t i
        try:
            rdmeta_image_info(image, &info)
            if self.session_of(&info) != since.session:
                return list(range(names.n))
            # What is damaged is not less than a change: who waits for it is to look.
            return [i for i in range(names.n) if rdmeta_image_changed(
                image, names.items[i].data, names.items[i].len, start)]
        finally:
            rdmeta_image_unref(image)

    def _answer(self, topic, /):
        """What tells one answer about a topic from the next; None without any.

        The deadline in the clock of who was answered: in one's own it is put right now and then.
        """
        cdef rdmeta_str_t name
        cdef rdmeta_topic_info_t info
        cdef rdmeta_image_info_t about
        cdef rdmeta_image_t *image
        cdef const rdmeta_topic_t *found = NULL
        cdef rdmeta_time_t now
        keep = view(topic, "topic", &name)
        self.read_clocks(&now)
        rdmeta_reader_enter(self.lenient)  # nothing until leave can let go of the GIL
        rdmeta_topic_find(self.lenient, name.data, name.len, now.mono_us, &found)
        if found is not NULL:
            rdmeta_topic_info(self.lenient, found, now.mono_us, &info)
        image = rdmeta_reader_image(self.lenient, now)
        rdmeta_reader_leave(self.lenient)
        rdmeta_image_info(image, &about)
        rdmeta_image_unref(image)
        if found is NULL:
            return None
        answered = <object> info.deadline_us - about.taken_mono_us + about.said_mono_us
        return self.session_of(&about), answered

    def _sleep(self, since, timeout, topic, told, /):
        """Wait for a change of a topic, or for another answer about it than `told`, if not None."""
        return _waits.sleep(self, since, timeout, awaited((topic,)), topic, told)

# Attached: follows the file in which another process publishes its cache. Included by _core.pyx.

cdef Names awaited(topics):
    """Returns the names of topics to wait for, None for any topic.

    TypeError; ValueError for an empty list.
    """
    cdef Names names = None if topics is None else names_of(topics)
    if names is not None and not names.n:
        raise ValueError("there are no topics to wait for: name at least one, or pass None for any")
    return names


cdef class Attached(Reading):
    """The cache that another process publishes at a path, with the cache's lookups.

        cache = rdmeta.attach("/run/orders.rdmeta")     # the other process: cache.publish(path)
        cache.leader("orders", 3)

    Topics that the publishing process does not refresh get stale: `allow_stale=True` returns their
    last known values, and age() their age. There is no thread: a lookup checks for a new file once
    `look` seconds have passed since the last check. `copy` and the errors of the constructor are
    those of Image.open(); `clock` is that of MetadataCache.

    Threads may share an Attached. It works in the child of a fork. It can be pickled: the unpickled
    object attaches itself to the same path.

    A version belongs to one `session`, the life of the published cache. After a restart of the
    publishing process the session is another one, and versions begin again at 0. The versions that
    `version` and the waits return know their session. A new session is a change of every topic.
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
        self._look_s = min(look_us / 1e6, waits.LOOK_S)
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
        rdmeta_leader(reader, "?", 1, 0, now)  # checks for a new file; no topic has this name
        return reader

    cdef rdmeta_image_t *look(self) except NULL:
        """Returns the newest state with a reference, after a check for a new file."""
        cdef rdmeta_image_t *image
        cdef rdmeta_time_t now
        self.read_clocks(&now)
        with nogil:
            image = rdmeta_attach_image(self.attach, now)
        if image is NULL:
            raise not_made(self)
        return image

    cdef int look_info(self, rdmeta_image_info_t *info) except -1:
        """Reads the newest state's properties, after a check for a new file."""
        cdef rdmeta_image_t *image = self.look()
        rdmeta_image_info(image, info)
        rdmeta_image_unref(image)
        return 0

    cdef str session_of(self, const rdmeta_image_info_t *info):
        """Returns the session as text; it makes a new text only for a new session."""
        cdef bytes raw = info.session[:16]
        if raw != self.session_raw:
            name = session_text(info.session)
            self.session_name = name
            self.session_raw = raw
        return self.session_name

    @property
    def version(self):
        """The version of the newest state, a rdmeta.model.Version, which knows its session."""
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
        """Returns a PyCapsule "rdmeta.attach" of this rdmeta_attach_t, for other extensions.

        Other extensions make readers of it. The capsule keeps this object alive.
        """
        return attach_capsule(self)

    def __reduce__(self):
        if not self.ticking:
            raise TypeError("an Attached with a clock of its own cannot be pickled: attach() to the"
                            " path there")
        return Attached, self.arguments

    def __repr__(self):
        return (f"<rdmeta.Attached {self.path!r} cluster_id={self.cluster_id!r}"
                f" version={self.version}>")

    @property
    def path(self):
        """The absolute path of the file."""
        return self.arguments[0]

    @property
    def session(self):
        """The session of the published cache: a UUID, another one after a restart."""
        cdef rdmeta_image_info_t info
        self.look_info(&info)
        return self.session_of(&info)

    @property
    def taken(self):
        """The time at which the newest state was taken, a datetime in UTC."""
        cdef rdmeta_image_info_t info
        self.look_info(&info)
        return wall_datetime(info.taken_wall_us)

    def image(self):
        """Returns the newest state as an Image, which later states do not change. MemoryError."""
        return image_of(self.look(), self.place)

    def resolve(self, topic, /):
        """Returns a TopicHandle for repeated lookups of one topic, as MetadataCache.resolve() does.

        The handle follows new states, and restarts of the publishing process. ArgumentError,
        TypeError, ValueError.
        """
        return TopicHandle(self, topic)

    def stats(self):
        """Returns properties of the newest state and counters as a dict, after a check for a file.

        The state:

        - `version`, `session`, and `taken`, a datetime in UTC.
        - `topics` that are valid or stale, and their `partitions`.
        - `negatives`: topics that are unknown, denied or invalid.
        - `brokers`: how many there are.
        - `bytes`: the file's size. All processes that map the file share its pages.
        - `mapped`: whether the file is mapped.

        This object:

        - `path`: the file's absolute path.
        - `generations`: how many states it has read, the first one included.
        - `looks`: how often it checked which file lies at the path.
        - `errors`: how many checks found no file, or no good one.
        - `error`: the name of the last check's error, None if it found a good file.
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
        rdmeta_reader_enter(reader)  # until leave, the reader stays at one state
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
        """Waits until the version is above `since`; returns it, or None after `timeout` seconds.

        With `topics`, one of them must have changed after `since`. Another session than that of
        `since` is a change of every topic. So a restart of the publishing process ends the wait,
        however low its versions are. A plain int belongs to the session that is read now. If it is
        above that session's version, it belongs to a session that is over. While no process
        publishes, nothing ends the wait but the time-out.

        It checks the file every `look` seconds, but at least every 50 ms, in the caller's thread,
        and sleeps without the GIL in between. Ctrl-C ends it. TypeError, ValueError; MalformedError
        for a damaged file.
        """
        return waits.wait_change(self, since, timeout, awaited(topics))

    def wait_change_async(self, since, timeout=None, topics=None):
        """Returns an awaitable wait_change(), for any event loop.

        All waits of an event loop share one check of the file.
        """
        return waits.wait_change_async(self, since, timeout, topics)

    def wait_for_topic(self, topic, partition=None, timeout=60.0):
        """Waits until a topic is valid, or with `partition` until it has a leader; returns it.

        `timeout` in seconds and the errors are those of MetadataCache.wait_for_topic(), but for
        ForkedError. The publishing process must ask for the topic.
        """
        return waits.wait_for_topic(self, topic, partition, timeout)

    def wait_for_topic_async(self, topic, partition=None, timeout=60.0):
        """Returns an awaitable wait_for_topic(), for any event loop."""
        return waits.wait_for_topic_async(self, topic, partition, timeout)

    # ---- for rdmeta.core.waits --------------------------------------------------------------------

    def _waker(self, loop, wake, /):
        """Returns a Ticker, which calls `wake` in the event loop after a new state."""
        return waits.Ticker(self, loop, wake)

    def _generation(self):
        """Returns a value that differs from state to state, after a check for a new file."""
        cdef rdmeta_image_info_t info
        self.look_info(&info)
        return self.session_of(&info), info.version, info.said_mono_us

    def _full_answer(self, /):
        """Returns a value that differs from all-topics answer to answer; for rdmeta.compat.

        Returns None if there is no such answer, or if it is older than max_age. The value has the
        answer's time in the publishing process's clock, so that later states do not change it.
        """
        cdef rdmeta_image_info_t info
        cdef int64_t answered
        self.look_info(&info)
        answered = answered_at(info.shared_deadline_us, info.max_age_us)
        if answered == INT64_MIN or self.now() - answered > info.max_age_us:
            return None
        return self.session_of(&info), answered - info.taken_mono_us + info.said_mono_us

    def _since(self, since, /):
        """Returns `since` as a Version, with session "" if its session is over.

        TypeError, ValueError.
        """
        cdef rdmeta_image_info_t info
        cdef uint64_t start = unsigned(since, "since")
        if isinstance(since, Version):
            return since
        self.look_info(&info)
        return Version(start, self.session_of(&info) if start <= info.version else "")

    def _passed(self, since, topics, /):
        """Returns the version if one of `topics` has changed after the Version `since`, or None.

        `topics` None stands for any change. MalformedError for a damaged file.
        """
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
        """Returns the indexes of the `topics` that have changed after the Version `since`."""
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
            # A damaged topic counts as changed: its waiter looks, and raises MalformedError.
            return [i for i in range(names.n) if rdmeta_image_changed(
                image, names.items[i].data, names.items[i].len, start)]
        finally:
            rdmeta_image_unref(image)

    def _answer(self, topic, /):
        """Returns a value that differs from answer to answer about a topic; None without an answer.

        It is the topic's deadline in the publishing process's clock. In this process's clock the
        same deadline is corrected now and then.
        """
        cdef rdmeta_str_t name
        cdef rdmeta_topic_info_t info
        cdef rdmeta_image_info_t about
        cdef rdmeta_image_t *image
        cdef const rdmeta_topic_t *found = NULL
        cdef rdmeta_time_t now
        keep = view(topic, "topic", &name)
        self.read_clocks(&now)
        rdmeta_reader_enter(self.lenient)  # no call until leave may release the GIL
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

    def _sleep(self, since, timeout, topic, answer, /):
        """Waits for a change of a topic or, if `answer` is not None, for another answer than it.

        Returns the version; None for another answer, or after `timeout` seconds.
        """
        return waits.sleep(self, since, timeout, awaited((topic,)), topic, answer)

# Fold: change records to intervals, in C. Included by _core.pyx.

cdef dict FOLD_TABLES = {
    "partition_interval": RDMETA_FOLD_PARTITION_INTERVAL,
    "broker_interval": RDMETA_FOLD_BROKER_INTERVAL,
    "topic_interval": RDMETA_FOLD_TOPIC_INTERVAL,
    "config_interval": RDMETA_FOLD_CONFIG_INTERVAL,
    "leader_change": RDMETA_FOLD_LEADER_CHANGE,
    "change": RDMETA_FOLD_CHANGE,
    "controller": RDMETA_FOLD_CONTROLLER,
}

cdef dict FOLD_ENDS = {
    "open": RDMETA_FOLD_OPEN,
    "gap": RDMETA_FOLD_GAP,
    "midnight": RDMETA_FOLD_MIDNIGHT,
}


cdef int64_t fold_time(object when, str what) except? -1:
    """Returns a time, a datetime or microseconds since 1970, in microseconds.

    TypeError; ValueError for a datetime without a time zone.
    """
    if not isinstance(when, datetime):
        return integer(when, what, INT64_MIN, INT64_MAX)
    if when.tzinfo is None:
        raise ValueError(f"{what} has no time zone: give it one, such as timezone.utc")
    return (when - EPOCH) // timedelta(microseconds=1)


cdef int32_t fold_table(object name) except -1:
    """Returns the number of a table; ValueError for another name."""
    if name not in FOLD_TABLES:
        raise ValueError(f"table must be one of {', '.join(FOLD_TABLES)}, not {name!r}")
    return FOLD_TABLES[name]


@cython.final
cdef class FoldTable:
    """The rows that a Fold gave: an Arrow stream, which can be read once."""

    cdef ArrowArrayStream stream
    cdef int32_t table

    def __cinit__(self, given=None):
        if given is not GIVEN:
            raise TypeError("FoldTable cannot be made directly: Fold.take() returns one")

    def __dealloc__(self):
        if self.stream.release is not NULL:
            self.stream.release(&self.stream)

    def __reduce__(self):
        raise TypeError("a FoldTable cannot be pickled or copied: convert it, for example with"
                        " pyarrow.table()")

    def __arrow_c_schema__(self):
        """Returns the table's columns as a PyCapsule "arrow_schema". MemoryError."""
        cdef ArrowSchema *schema = <ArrowSchema *> malloc(sizeof(ArrowSchema))
        if schema is NULL or rdmeta_arrow_schema(self.table, schema):
            free(schema)
            raise MemoryError
        return PyCapsule_New(schema, "arrow_schema", <PyCapsule_Destructor> arrow_schema_end)

    def __arrow_c_stream__(self, requested_schema=None):
        """Returns the rows as a PyCapsule "arrow_array_stream".

        `requested_schema` is ignored, as Arrow allows. ValueError if the rows were read before.
        MemoryError.
        """
        cdef ArrowArrayStream *stream
        if self.stream.release is NULL:
            raise ValueError("these rows were read before: convert them once, for example with"
                             " pyarrow.table(), and use the result")
        stream = <ArrowArrayStream *> malloc(sizeof(ArrowArrayStream))
        if stream is NULL:
            raise MemoryError
        stream[0] = self.stream
        self.stream.release = NULL
        return PyCapsule_New(stream, "arrow_array_stream",
                             <PyCapsule_Destructor> arrow_stream_end)


@cython.final
cdef class Fold:
    """Folds the change records of one recording into intervals, in one pass.

        fold = rdmeta.Fold("cluster-A", session)
        for path in sorted(paths):
            fold.add(pyarrow.parquet.read_table(path))
        fold.end(until, "gap")
        intervals = pyarrow.table(fold.take("partition_interval"))

    It holds a small row per partition, broker, topic and configuration, and the rows that
    `take()` has not returned yet. An interval ends when its state changes, at midnight UTC, and
    where the observation ends. A change of leader, leader epoch, ISR, replicas, offline replicas,
    minimum ISR, racks, or of the replicas to add, to remove or eligible to lead begins another
    interval of a partition; equal states begin none. The records of one version are one change.
    rdmeta_fold.h lists the tables and their columns.

    `cluster_id` and `origin`, the recording's session, are in every row. Intervals are cut to
    `counts_from` and `counts_to`; changes at or after `counts_to` are left out, as are those before
    `counts_from`. Both are a datetime with a time zone, or microseconds since 1970. With `buckets`
    only topics of one `bucket` have rows, by a hash of their names; brokers have rows in bucket 0.
    `state` is the result of `state()` of a fold with the same cluster, origin and bucket: this
    fold goes on from there. `tables` are the names of those that the fold makes rows of, None for
    all; fewer take less time. One record can end the intervals of all partitions: once rows of more
    than `most_waiting` bytes wait for `take()`, add() stops. 0: it takes all.

    Raises ArgumentError for a state of another fold, MalformedError for a damaged one,
    UnsupportedVersionError for one of another version, ValueError, MemoryError. One thread at a
    time may use a fold; others get RuntimeError.
    """

    cdef rdmeta_fold_t *fold
    cdef bint busy

    def __cinit__(self, str cluster_id not None, str origin not None, *, counts_from=None,
                  counts_to=None, buckets=1, bucket=None, state=None, tables=None,
                  most_waiting=0):
        cdef rdmeta_fold_conf_t conf
        cdef bytes cluster = cluster_id.encode("utf-8", "surrogateescape")
        cdef bytes session = origin.encode("utf-8", "surrogateescape")
        cdef bytes kept = None if state is None else bytes(state)
        cdef rdmeta_err_t err
        rdmeta_fold_conf_init(&conf)
        conf.cluster_id.data = <const char *> cluster
        conf.cluster_id.len = len(cluster)
        conf.origin.data = session
        conf.origin.len = len(session)
        if counts_from is not None:
            conf.counts_from = fold_time(counts_from, "counts_from")
        if counts_to is not None:
            conf.counts_to = fold_time(counts_to, "counts_to")
        conf.buckets = <uint32_t> integer(buckets, "buckets", 1, INT32_MAX)
        if bucket is None:
            if conf.buckets > 1:
                raise ValueError("with buckets, bucket must be given: 0 to buckets - 1")
        else:
            conf.bucket = <uint32_t> integer(bucket, "bucket", 0, conf.buckets - 1)
        if conf.counts_from > conf.counts_to:
            raise ValueError("counts_from lies after counts_to")
        if tables is not None:
            conf.tables = 0
            for table in tables:
                conf.tables |= <uint32_t> 1 << fold_table(table)
        conf.most_waiting = <uint64_t> integer(most_waiting, "most_waiting", 0, INT64_MAX)
        if kept is not None:
            conf.state = <const char *> kept
            conf.state_size = len(kept)
        with nogil:
            err = rdmeta_fold_new(&conf, &self.fold)
        if err == RDMETA_ERR_NO_MEMORY:
            raise MemoryError
        if err:
            raise from_code(err, state_fault(err, kept))

    def __dealloc__(self):
        rdmeta_fold_destroy(self.fold)

    def __reduce__(self):
        raise TypeError("a Fold cannot be pickled or copied: make another one of its state()")

    cdef int begin(self) except -1:
        """Begins a call in this thread. RuntimeError if another thread is in one."""
        if self.busy:
            raise RuntimeError("another thread uses this fold: one thread at a time may use it")
        self.busy = True
        return 0

    cdef int check(self, rdmeta_err_t err) except -1:
        """Raises the exception of an error."""
        if err == RDMETA_ERR_NO_MEMORY:
            raise MemoryError
        if err and err != RDMETA_ERR_TOO_SMALL:  # most_waiting
            raise from_code(err, rdmeta_fold_error(self.fold).decode("utf-8", "replace"))
        return 0

    def add(self, records, /):
        """Takes change records in order: a batch, a table or a stream of them, as Arrow.

        Returns how many it took. With `most_waiting` these may be fewer: take() the rows, then add
        the records that are left. It takes at least one.

        Any object with `__arrow_c_array__` or `__arrow_c_stream__` will do. Columns are those of a
        recording's files, found by name; texts may be dictionaries, which take less time. `version`, `observed_at` and `kind` must be there; others
        may be missing, and unknown ones are passed over. Records before the first `observed_from`
        do not count.

        Raises ArgumentError for a column of another type or with contradictory offsets; nothing of
        its batch is taken then. Raises MalformedError for a record that no recording has, such as a
        version below the one before. The records before it are taken; `stats()["rows"]` says
        how many. MemoryError; TypeError for other objects; ValueError if the stream fails.
        """
        cdef ArrowSchema *schema
        cdef ArrowArray *batch
        cdef rdmeta_err_t err
        cdef tuple capsules
        cdef uint64_t before = self.taken()
        if hasattr(records, "__arrow_c_array__"):
            check_buffers(records)
            capsules = array_capsules(records)
            schema = <ArrowSchema *> PyCapsule_GetPointer(capsules[0], "arrow_schema")
            batch = <ArrowArray *> PyCapsule_GetPointer(capsules[1], "arrow_array")
            self.begin()
            with nogil:
                err = rdmeta_fold_batch(self.fold, schema, batch)
            self.busy = False
            self.check(err)
        elif hasattr(records, "__arrow_c_stream__"):
            check_buffers(records)
            self.drain(records.__arrow_c_stream__())
        else:
            raise TypeError("records must be an Arrow batch, table or stream, not"
                            f" {type(records).__name__}")
        return self.taken() - before

    cdef uint64_t taken(self) except? 0:
        """Returns how many records the fold has taken."""
        cdef rdmeta_fold_stats_t s
        self.begin()
        rdmeta_fold_stats(self.fold, &s)
        self.busy = False
        return s.rows

    cdef int drain(self, object capsule) except -1:
        """Takes the batches of a stream one by one. The errors of add()."""
        cdef ArrowArrayStream *stream
        cdef ArrowSchema schema
        cdef ArrowArray batch
        cdef rdmeta_err_t err = RDMETA_OK
        cdef const char *why
        cdef int failed
        stream = unread_stream(capsule)
        self.begin()
        with nogil:
            failed = stream.get_schema(stream, &schema)
            if not failed:
                while not err:
                    failed = stream.get_next(stream, &batch)
                    if failed or batch.release is NULL:
                        break
                    err = rdmeta_fold_batch(self.fold, &schema, &batch)
                    batch.release(&batch)
                if schema.release is not NULL:
                    schema.release(&schema)
        self.busy = False
        if failed:
            why = stream.get_last_error(stream)
            raise ValueError("the stream of records failed without a message" if why is NULL
                             else why.decode("utf-8", "replace"))
        return self.check(err)

    def cut(self, at, /):
        """Ends all standing intervals at a midnight in UTC; their states go on behind it.

        A fold cuts by itself before the first record of another day. Does nothing for a midnight
        that it has passed. Raises ArgumentError if `at`, a datetime or microseconds since 1970, is
        no midnight, or lies more than 32 days after the last record or cut. MemoryError.
        """
        cdef int64_t at_us = fold_time(at, "at")
        cdef rdmeta_err_t err
        self.begin()
        with nogil:
            err = rdmeta_fold_cut(self.fold, at_us)
        self.busy = False
        self.check(err)

    def end(self, at, by, /):
        """Ends all standing intervals at `at`, or at the last record if that is later.

        `by` is their `ended_by`: "open" (the recording had not ended), "gap" (it ended), or
        "midnight" (another recording goes on). The fold then has no state. Raises ArgumentError if
        `at` lies more than 32 days after the last record or cut. ValueError for another `by`.
        MemoryError.
        """
        cdef int64_t at_us = fold_time(at, "at")
        cdef int32_t reason
        cdef rdmeta_err_t err
        if by not in FOLD_ENDS:
            raise ValueError(f"by must be one of {', '.join(FOLD_ENDS)}, not {by!r}")
        reason = FOLD_ENDS[by]
        self.begin()
        with nogil:
            err = rdmeta_fold_end(self.fold, at_us, reason)
        self.busy = False
        self.check(err)

    def state(self):
        """Returns the state, without the rows, as bytes for `Fold(state=...)`.

        Equal folds return equal bytes. They have a version and a checksum. MemoryError.
        """
        cdef size_t size = 0
        cdef size_t room
        cdef bytes made = b""
        cdef char *p
        cdef rdmeta_err_t err = RDMETA_ERR_TOO_SMALL
        self.begin()
        try:
            while err == RDMETA_ERR_TOO_SMALL:
                made = PyBytes_FromStringAndSize(NULL, <Py_ssize_t> size)
                p = PyBytes_AS_STRING(made)
                room = size
                with nogil:
                    err = rdmeta_fold_save(self.fold, p, room, &size)
        finally:
            self.busy = False
        self.check(err)
        return made

    def take(self, str table not None, /):
        """Returns the rows of `table` so far as an Arrow stream, and drops them from the fold.

        The tables are partition_interval, broker_interval, topic_interval, config_interval,
        leader_change, change and controller. Any Arrow reader takes the result, once: pyarrow.table(...).
        Rows come in the order in which they ended. At a midnight and at the end they come in the
        order of topic and partition. ValueError for another table, ArgumentError for one that this
        fold does not make. MemoryError.
        """
        cdef FoldTable made
        cdef rdmeta_err_t err
        made = FoldTable.__new__(FoldTable, GIVEN)
        made.table = fold_table(table)
        self.begin()
        with nogil:
            err = rdmeta_fold_take(self.fold, made.table, &made.stream)
        self.busy = False
        self.check(err)
        return made

    def stats(self):
        """Returns what the fold has taken and holds, as a dict.

        `rows` counts records taken, and `kinds` counts them by kind. `unknown_kinds`, `before`
        (before the first observed_from) and `other_buckets` count records that were passed over.
        `bad_details` counts brokers and configurations that were not understood. `clocks_back`
        counts records with a time before the latest so far. `partial` says whether something was
        not understood; rows have it, too. `waiting` is the number of rows for take(), of about
        `waiting_bytes` bytes; `memory` is the bytes of the state. `last_at` is the latest time, a
        datetime; None: there is no record.
        """
        cdef rdmeta_fold_stats_t s
        cdef int32_t i
        self.begin()
        rdmeta_fold_stats(self.fold, &s)
        self.busy = False
        return {
            "rows": s.rows,
            "kinds": {rdmeta_change_kind_name(i).decode("ascii"): s.kinds[i]
                      for i in range(64) if s.kinds[i]},
            "unknown_kinds": s.unknown_kinds,
            "before": s.before,
            "other_buckets": s.other_buckets,
            "bad_details": s.bad_details,
            "clocks_back": s.clocks_back,
            "partial": s.partial != 0,
            "waiting": s.waiting,
            "waiting_bytes": s.waiting_bytes,
            "memory": s.bytes,
            "last_at": None if s.last_at == INT64_MIN else wall_datetime(s.last_at),
        }


cdef str state_fault(rdmeta_err_t err, bytes state):
    """Returns what is wrong with a state that a new fold refused."""
    if err == RDMETA_ERR_UNSUPPORTED:
        return (f"the state has version {int.from_bytes(state[8:16], 'little')}, this version of"
                f" rdmeta reads version {RDMETA_FOLD_STATE_VERSION}: fold the records again")
    if err == RDMETA_ERR_MALFORMED:
        return "the state is damaged: fold the records again"
    if state is None:
        return "cluster_id and origin may have 16383 bytes each"
    return "the state is of another cluster, origin or bucket"

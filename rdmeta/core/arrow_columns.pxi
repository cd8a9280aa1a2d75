# Columns of other libraries, read through the Arrow C data interface without a Python object per
# row; and Names, a C array of topic names. Included by _core.pyx.

cdef bint is_column(object values):
    """Returns whether `values` is an Arrow column: of pyarrow, polars, nanoarrow, duckdb ..."""
    return hasattr(values, "__arrow_c_array__") or hasattr(values, "__arrow_c_stream__")


cdef tuple array_capsules(object values):
    """Returns the capsules of an array and of its type; TypeError if there are not two."""
    found = values.__arrow_c_array__()
    if not isinstance(found, (tuple, list)) or len(found) != 2:
        raise TypeError(f"{type(values).__name__}.__arrow_c_array__() must return two capsules,"
                        " of a schema and of an array")
    return tuple(found)


cdef ArrowArrayStream *unread_stream(object capsule) except NULL:
    """Returns the stream of a capsule; ArgumentError if another reader has taken it."""
    cdef ArrowArrayStream *stream
    stream = <ArrowArrayStream *> PyCapsule_GetPointer(capsule, "arrow_array_stream")
    if stream.release is NULL:
        raise ArgumentError("the Arrow stream was read before: pass a new one")
    return stream


cdef int check_buffers(object values) except -1:
    """ArgumentError if texts or lists of a pyarrow object lie beyond their buffers.

    Arrow's C structs do not say how large a buffer is; pyarrow knows, and compares the ends only.
    """
    if type(values).__module__ == "pyarrow.lib" and hasattr(values, "validate"):
        try:
            values.validate()
        except ValueError as error:
            raise ArgumentError(f"the Arrow data is damaged: {error}") from error
    return 0


cdef bint offsets_go_on(const ArrowArray *chunk, bint is_large) noexcept nogil:
    """Returns whether the offsets of a chunk of texts begin at 0 or later, and never go back."""
    cdef const int64_t *large = <const int64_t *> chunk.buffers[1]
    cdef const int32_t *small = <const int32_t *> chunk.buffers[1]
    cdef int64_t i
    cdef bint bad
    if is_large:
        bad = large[chunk.offset] < 0
        for i in range(chunk.offset, chunk.offset + chunk.length):
            bad |= large[i + 1] < large[i]
        return not bad
    bad = small[chunk.offset] < 0
    for i in range(chunk.offset, chunk.offset + chunk.length):
        bad |= small[i + 1] < small[i]
    return not bad


cdef bint views_are_good(const ArrowArray *chunk) noexcept nogil:
    """Returns whether all texts of a chunk of views lie in its buffers."""
    cdef int64_t n = chunk.n_buffers - 3
    cdef const int64_t *sizes = <const int64_t *> chunk.buffers[2 + n]
    cdef const int32_t *view
    cdef int64_t i
    for i in range(chunk.length):
        view = <const int32_t *> chunk.buffers[1] + 4 * (chunk.offset + i)
        if view[0] > 12 and is_valid(chunk, i) and (
                view[2] < 0 or view[2] >= n or view[3] < 0 or
                sizes[view[2]] - view[3] < view[0] or chunk.buffers[2 + view[2]] is NULL):
            return False
        if view[0] < 0 and is_valid(chunk, i):
            return False
    return True


cdef str chunk_fault(const ArrowSchema *schema, const ArrowArray *chunk):
    """Returns why a chunk cannot be read; None if it can, or if no caller takes its type."""
    cdef const char *format = schema.format
    cdef const ArrowArray *texts = chunk.dictionary
    cdef bytes name
    cdef int64_t i
    cdef int64_t code
    if chunk.release is NULL or schema.release is NULL:
        return "it was read before: pass it anew"
    if format is NULL:
        return "it has no type"
    if chunk.n_buffers > 0 and chunk.buffers is NULL:
        return "its buffers are missing"
    name = format
    if not (0 <= chunk.length < INT64_MAX >> 8 and 0 <= chunk.offset < INT64_MAX >> 8):
        return "it has an impossible length or offset"
    if (schema.dictionary is NULL) != (texts is NULL):
        return "its dictionary is missing, or its type does not have one"
    if texts is not NULL and (not is_integers(format) or schema.dictionary.dictionary is not NULL):
        return "its dictionary's codes are no integers, or its texts are in another dictionary"
    if is_integers(format):
        if chunk.n_buffers != 2 or (chunk.length and chunk.buffers[1] is NULL):
            return "its numbers are missing"
        if texts is NULL:
            return None
        for i in range(chunk.length):
            code = index_at(format[0], chunk, i)
            if is_valid(chunk, i) and not 0 <= code < texts.length:
                return f"row {i} has a code beyond its dictionary"
        return chunk_fault(schema.dictionary, texts)
    if name in (b"u", b"U", b"z", b"Z"):
        if chunk.n_buffers != 3 or (chunk.length and chunk.buffers[1] is NULL):
            return "its offsets are missing"
        if chunk.length and not offsets_go_on(chunk, name in (b"U", b"Z")):
            return "its offsets go back"
        if chunk.length and chunk.buffers[2] is NULL and text_end(chunk, name in (b"U", b"Z")):
            return "its bytes are missing"
    elif name in (b"vu", b"vz"):
        if chunk.n_buffers < 3 or (chunk.length and chunk.buffers[1] is NULL):
            return "its views are missing"
        if not views_are_good(chunk):
            return "a text lies beyond its buffers"
    return None


cdef int64_t text_end(const ArrowArray *chunk, bint is_large) noexcept nogil:
    """Returns the offset where the last text of a chunk ends."""
    cdef int64_t last = chunk.offset + chunk.length
    if is_large:
        return (<const int64_t *> chunk.buffers[1])[last]
    return (<const int32_t *> chunk.buffers[1])[last]


@cython.final
cdef class ArrowColumn:
    """A column's chunks; pointers into them are valid as long as this object."""

    cdef ArrowSchema *schema
    cdef ArrowSchema own_schema
    cdef ArrowArray **chunks
    cdef int64_t n_chunks
    cdef int64_t n
    # The capsules that own the only chunk; None if the chunks came from a stream: then this object
    # releases them.
    cdef object owner

    def __cinit__(self, values):
        check_buffers(values)
        if hasattr(values, "__arrow_c_array__"):
            self.owner = array_capsules(values)
            self.schema = <ArrowSchema *> PyCapsule_GetPointer(self.owner[0], "arrow_schema")
            self.put(<ArrowArray *> PyCapsule_GetPointer(self.owner[1], "arrow_array"))
        else:
            self.drain(values.__arrow_c_stream__())

    def __dealloc__(self):
        cdef int64_t i
        if self.owner is None:
            for i in range(self.n_chunks):
                self.chunks[i].release(self.chunks[i])
                PyMem_Free(self.chunks[i])
            if self.own_schema.release is not NULL:
                self.own_schema.release(&self.own_schema)
        PyMem_Free(self.chunks)

    cdef int put(self, ArrowArray *chunk) except -1:
        """Appends a chunk, which then is this object's. ArgumentError, MemoryError."""
        cdef size_t size = <size_t> (self.n_chunks + 1) * sizeof(ArrowArray *)
        cdef ArrowArray **grown
        cdef str fault = chunk_fault(self.schema, chunk)
        if fault is not None:
            raise ArgumentError(f"the Arrow column is damaged: {fault}")
        grown = <ArrowArray **> PyMem_Realloc(self.chunks, size)
        if grown is NULL:
            raise MemoryError
        self.chunks = grown
        self.chunks[self.n_chunks] = chunk
        self.n_chunks += 1
        self.n += chunk.length
        return 0

    cdef int drain(self, object capsule) except -1:
        """Takes every chunk of a stream. MemoryError, ValueError for a stream that fails."""
        cdef ArrowArrayStream *stream
        cdef ArrowArray *chunk
        stream = unread_stream(capsule)
        self.check(stream, stream.get_schema(stream, &self.own_schema))
        self.schema = &self.own_schema
        if self.schema.release is NULL or self.schema.format is NULL:
            raise ArgumentError("the Arrow stream has no type")
        while True:
            chunk = <ArrowArray *> PyMem_Malloc(sizeof(ArrowArray))
            if chunk is NULL:
                raise MemoryError
            chunk.release = NULL
            try:
                self.check(stream, stream.get_next(stream, chunk))
                if chunk.release is NULL:
                    return 0
                self.put(chunk)
                chunk = NULL
            finally:
                if chunk is not NULL:
                    if chunk.release is not NULL:
                        chunk.release(chunk)
                    PyMem_Free(chunk)

    cdef int check(self, ArrowArrayStream *stream, int error) except -1:
        """ValueError with the stream's own message, if `error` is not 0."""
        cdef const char *why
        if error:
            why = stream.get_last_error(stream)
            raise ValueError("the stream of a column failed without a message" if why is NULL
                             else why.decode("utf-8", "replace"))
        return 0


cdef bint is_valid(const ArrowArray *array, int64_t i) noexcept nogil:
    """Returns whether the i-th value is not null."""
    cdef const uint8_t *bits = <const uint8_t *> array.buffers[0] if array.n_buffers else NULL
    i += array.offset
    return bits is NULL or bits[i >> 3] >> (i & 7) & 1


cdef int64_t index_at(char format, const ArrowArray *array, int64_t i) noexcept nogil:
    """Returns the i-th integer of a column of any width; a uint64 is read as an int64."""
    cdef const void *data = array.buffers[1]
    i += array.offset
    if format == c"i":
        return (<const int32_t *> data)[i]
    if format == c"l" or format == c"L":
        return (<const int64_t *> data)[i]
    if format == c"I":
        return (<const uint32_t *> data)[i]
    if format == c"s":
        return (<const int16_t *> data)[i]
    if format == c"S":
        return (<const uint16_t *> data)[i]
    if format == c"c":
        return (<const signed char *> data)[i]
    return (<const uint8_t *> data)[i]


cdef bint is_integers(const char *format) noexcept:
    """Returns whether an Arrow format is one of the integers, of 8 to 64 bits."""
    return format[0] != 0 and format[1] == 0 and format[0] in b"cCsSiIlL"


cdef void string_at(char kind, const ArrowArray *array, int64_t i,
                    rdmeta_str_t *out) noexcept nogil:
    """Points `out` to the i-th string. `kind`: utf8 `u`, large utf8 `U` or utf8 view `v`."""
    cdef const int64_t *large
    cdef const int32_t *small
    cdef const char *view
    i += array.offset
    if kind == c"v":
        # A view is an int32 length, and then up to 12 bytes of text. A longer text has its first 4
        # bytes there instead, then the int32 number of its buffer and its int32 offset in it.
        view = <const char *> array.buffers[1] + 16 * i
        small = <const int32_t *> view
        out.len = <size_t> small[0]
        out.data = view + 4
        if out.len > 12:
            out.data = <const char *> array.buffers[2 + small[2]] + small[3]
    elif kind == c"U":
        large = <const int64_t *> array.buffers[1] + i
        out.data = <const char *> array.buffers[2] + large[0]
        out.len = <size_t> (large[1] - large[0])
    else:
        small = <const int32_t *> array.buffers[1] + i
        out.data = <const char *> array.buffers[2] + small[0]
        out.len = <size_t> (small[1] - small[0])
    if out.len == 0:
        out.data = ""  # a buffer of no bytes may be NULL, which would mean that there is no name


cdef char string_kind(const ArrowSchema *schema) except 0:
    """Returns `u`, `U` or `v` for string_at(); TypeError for a column of anything but strings."""
    cdef bytes format = schema.format
    if format in (b"u", b"U", b"vu"):
        return schema.format[0]
    raise TypeError("a column of topics must hold strings, not Arrow's format"
                    f" {format.decode('ascii', 'replace')!r}")


cdef int64_t column_names(ArrowColumn column, rdmeta_str_t *out) except -1:
    """Points each of `out`, which has column.n, into the column; returns their number.

    TypeError for a column of anything but strings, ValueError for a null.
    """
    cdef const ArrowSchema *schema = column.schema
    cdef const ArrowArray *chunk
    cdef const ArrowArray *values
    cdef int64_t c
    cdef int64_t i
    cdef int64_t at
    cdef int64_t n = 0
    cdef char kind
    cdef char index = 0
    if schema.dictionary is not NULL:
        kind = string_kind(schema.dictionary)
        index = schema.format[0]
    else:
        kind = string_kind(schema)
    for c in range(column.n_chunks):
        chunk = column.chunks[c]
        values = chunk.dictionary if index else chunk
        for i in range(chunk.length):
            if not is_valid(chunk, i):
                raise ValueError(f"topics[{n}] is null")
            at = index_at(index, chunk, i) if index else i
            if index and not is_valid(values, at):
                raise ValueError(f"topics[{n}] is null")
            string_at(kind, values, at, &out[n])
            n += 1
    return n


cdef int64_t column_numbers(ArrowColumn column, int32_t *out) except -1:
    """Copies column.n partition ids to `out`; returns their number.

    TypeError for a column of anything but integers, ValueError for a null or an id beyond int32.
    """
    cdef const ArrowArray *chunk
    cdef int64_t c
    cdef int64_t i
    cdef int64_t value
    cdef int64_t n = 0
    cdef char format = column.schema.format[0]
    if column.schema.dictionary is not NULL or not is_integers(column.schema.format):
        raise TypeError("a column of partitions must hold integers")
    for c in range(column.n_chunks):
        chunk = column.chunks[c]
        for i in range(chunk.length):
            if not is_valid(chunk, i):
                raise ValueError(f"partitions[{n}] is null")
            value = index_at(format, chunk, i)
            if value != <int32_t> value or (value < 0 and format == c"L"):
                raise ValueError(f"partitions[{n}] is not an int32")
            out[n] = <int32_t> value
            n += 1
    return n


# ---- names from strings or from a column -----------------------------------------------------

@cython.final
cdef class Names:
    """An array of rdmeta_str_t of topic names, and the objects that own their bytes.

    It is made of strings, or of an Arrow column, whose bytes are not copied. leaders() also takes
    a Names, which saves the work of reading the names again; rdmeta.ffi.prepare() makes one.
    TypeError, ValueError for a null in a column. MemoryError.
    """

    cdef rdmeta_str_t *items
    cdef size_t n
    cdef object keep

    cdef str fault(self):
        """Returns why the C core refuses the names, None if it accepts them."""
        cdef size_t i
        for i in range(self.n):
            if not self.items[i].len:
                return f"topics[{i}] is empty"
            if self.items[i].len > LONGEST_NAME:
                return f"topics[{i}] has {self.items[i].len} bytes, more than {<int> LONGEST_NAME}"
        return None

    def __cinit__(self, topics):
        cdef list keep
        cdef int64_t turn = rdmeta_py_clock(CLOCK_MONOTONIC_COARSE)
        if isinstance(topics, (str, bytes)):
            raise TypeError(f"topics must be a list of names, not one {type(topics).__name__}")
        if is_column(topics):
            self.keep = ArrowColumn(topics)
            self.allocate((<ArrowColumn> self.keep).n)
            self.n = <size_t> column_names(self.keep, self.items)
            return
        topics = tuple(topics)
        self.keep = keep = []
        self.allocate(len(topics))
        for topic in topics:
            keep.append(view(topic, "a topic", &self.items[self.n]))
            self.n += 1
            let_others_run(&turn)

    cdef int allocate(self, int64_t n) except -1:
        """Allocates room for n names. MemoryError."""
        self.items = <rdmeta_str_t *> PyMem_Malloc(sizeof(rdmeta_str_t) * <size_t> (n or 1))
        if self.items is NULL:
            raise MemoryError
        return 0

    def __dealloc__(self):
        PyMem_Free(self.items)

    def __len__(self):
        return self.n

    @property
    def address(self):
        """The address of the array of rdmeta_str_t, an int; it is valid as long as this object."""
        return <size_t> self.items


cdef Names names_of(object topics):
    """Returns `topics` if it is a Names already, otherwise a new Names of it."""
    return topics if isinstance(topics, Names) else Names(topics)

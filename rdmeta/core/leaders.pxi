# Bulk lookups, for leaders(): lists, buffers and columns become C arrays of names and partitions.
# Included by _core.pyx.

cdef extern from *:
    """
    /* Points `out` into the UTF-8 of the names before the first that is not an
     * ASCII str; returns their number. The objects lie anywhere in memory, so
     * the loop prefetches those that it needs PREFETCH rows later. */
    static size_t rdmeta_py_names(PyObject *const *items, size_t n,
                                  rdmeta_str_t *out) {
            enum { PREFETCH = 12 };
            size_t i;

            for (i = 0; i < n; i++) {
                    if (i + PREFETCH < n) {
                            const char *next =
                                    (const char *)items[i + PREFETCH];

                            __builtin_prefetch(next);
                            __builtin_prefetch(next + 64);
                    }
                    if (!rdmeta_py_ascii(items[i], &out[i].data, &out[i].len))
                            break;
            }
            return i;
    }

    /* Copies the ints before the first that is not a small one to `out`;
     * returns their number. */
    static size_t rdmeta_py_numbers(PyObject *const *items, size_t n,
                                    int32_t *out) {
            size_t i;

            for (i = 0; i < n; i++)
                    if (!rdmeta_py_small(items[i], &out[i]))
                            break;
            return i;
    }
    """
    PyObject **PySequence_Fast_ITEMS(object sequence) noexcept
    Py_ssize_t PySequence_Fast_GET_SIZE(object sequence) noexcept
    size_t rdmeta_py_names(PyObject **items, size_t n, rdmeta_str_t *out) noexcept
    size_t rdmeta_py_numbers(PyObject **items, size_t n, int32_t *out) noexcept


cdef enum:
    # The rows that are looked up before the GIL is released: they take about ten microseconds.
    ROWS = 512


cdef bint leaders_of_str(rdmeta_reader_t *reader, object topics, Numbers numbers, int64_t now,
                         int32_t *out) except -1:
    """Calls rdmeta_leaders() for a list or tuple of ASCII str, without a copy of the names.

    Returns False if a name is something else: the caller must then look up all rows. The GIL keeps
    the names alive; it is released after every ROWS rows. RuntimeError if the length of the list
    changes meanwhile.
    """
    cdef rdmeta_str_t names[ROWS]
    cdef Py_ssize_t n = PySequence_Fast_GET_SIZE(topics)
    cdef Py_ssize_t i = 0
    cdef size_t some_rows
    while i < n:
        some_rows = <size_t> min(n - i, <Py_ssize_t> ROWS)
        if rdmeta_py_names(PySequence_Fast_ITEMS(topics) + i, some_rows, names) < some_rows:
            return False
        rdmeta_leaders(reader, names, numbers.items + i, some_rows, now, out + i)
        i += <Py_ssize_t> some_rows
        if i < n:
            with nogil:
                pass
            if PySequence_Fast_GET_SIZE(topics) != n:
                raise RuntimeError("the list of topics changed its length during leaders():"
                                   " pass a list that no other thread changes")
    return True


@cython.final
cdef class Numbers:
    """An int32 array of partition ids, from a list, a buffer or an Arrow column."""

    cdef int32_t *items
    cdef str rows  # what there is one number for, in errors

    def __cinit__(self, partitions, size_t n, str rows="topics"):
        cdef size_t i = 0
        cdef ArrowColumn column
        self.rows = rows
        self.items = <int32_t *> PyMem_Malloc(sizeof(int32_t) * (n or 1))
        if self.items is NULL:
            raise MemoryError
        if PyObject_CheckBuffer(partitions) and not isinstance(partitions, (bytes, bytearray)):
            self.copy(partitions, n)
            return
        if is_column(partitions):
            column = ArrowColumn(partitions)
            self.check_counts(n, <size_t> column.n)
            column_numbers(column, self.items)
            return
        if isinstance(partitions, (str, bytes, bytearray)):
            raise TypeError("partitions must be a list, a buffer or a column of ints, not"
                            f" {type(partitions).__name__}")
        if type(partitions) is not list and type(partitions) is not tuple:
            partitions = tuple(partitions)
        self.check_counts(n, <size_t> len(partitions))
        if rdmeta_py_numbers(PySequence_Fast_ITEMS(partitions), n, self.items) == n:
            return
        for partition in tuple(partitions):  # an __index__ may change a list
            if not rdmeta_py_small(partition, &self.items[i]):
                self.items[i] = int32(partition, "partition")
            i += 1

    def __dealloc__(self):
        PyMem_Free(self.items)

    cdef int check_counts(self, size_t rows, size_t partitions) except -1:
        """ValueError if there are not as many partitions as rows."""
        if rows != partitions:
            raise ValueError(f"{self.rows} and partitions must have the same length: there are"
                             f" {rows} {self.rows}, but {partitions} partitions")
        return 0

    cdef int copy(self, object partitions, size_t n) except -1:
        cdef Py_buffer data
        cdef int size
        cdef size_t i
        PyObject_GetBuffer(partitions, &data, PyBUF_FORMAT | PyBUF_C_CONTIGUOUS)
        try:
            size = number_format(&data)
            if not size:
                raise TypeError("a buffer of partitions must have signed integers of 32 or 64 bits")
            self.check_counts(n, <size_t> (data.len // size))
            if size == 4:
                memcpy(self.items, data.buf, 4 * n)
                return 0
            for i in range(n):
                self.items[i] = int32((<int64_t *> data.buf)[i], "partition")
        finally:
            PyBuffer_Release(&data)
        return 0

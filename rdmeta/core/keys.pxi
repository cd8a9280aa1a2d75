# The partitions of a column of keys, for partitions_for(). Included by _core.pyx.

cdef dict PARTITIONERS = {"murmur2": RDMETA_PARTITIONER_MURMUR2,
                          "crc32": RDMETA_PARTITIONER_CRC32}


def partitions_for(keys, partitions, partitioner="murmur2", *, out=None):
    """Returns the partitions that a producer puts records with these n keys into, as int32.

        rdmeta.partitions_for([b"21", b"abc", None], 12)     # array('i', [4, 11, -1])
        rdmeta.partitions_for(table["key"], 12, "crc32")     # an Arrow column

    `keys` is an Arrow column of binary or strings (of pyarrow, polars ...), which is not copied, or
    an iterable of bytes and None. `partitions` is the topic's number of partitions, or one number
    for each key: a list, a buffer of 32 or 64 bits, or an Arrow column. The result is `out`,
    a contiguous writable buffer of n int32, or a new array("i").

    `partitioner` is one of these:

    - "murmur2": Java's producer, and librdkafka's `partitioner=murmur2_random`.
    - "crc32": librdkafka's default, `partitioner=consistent_random`. An empty key is no key there.

    A record without a key may go anywhere: its row is -1. A number of partitions below 0 is the
    row itself, and one of 0 gives NO_PARTITION.

    TypeError, ValueError for arguments of the wrong type, length or range. MemoryError.
    """
    cdef bint is_one = PyIndex_Check(partitions) and not hasattr(partitions, "__len__")
    cdef int32_t one = int32(partitions, "partitions") if is_one else 0
    cdef ArrowColumn column = ArrowColumn(keys) if is_column(keys) else None
    cdef Numbers numbers = None
    cdef const int32_t *counts = &one
    cdef int32_t number = partitioner_number(partitioner)
    cdef Py_buffer data
    cdef size_t n
    if column is None:
        keys = key_tuple(keys)
        n = <size_t> len(keys)
    else:
        check_key_column(column)
        n = <size_t> column.n
    if not is_one:
        numbers = Numbers(partitions, n, "keys")
        counts = numbers.items
    if out is None:
        out = array("i", bytes(<Py_ssize_t> (4 * n)))
    get_int32(out, PyBUF_WRITABLE, n, &data)
    try:
        if column is None:
            partitions_of_keys(number, keys, counts, not is_one, <int32_t *> data.buf)
        else:
            with nogil:
                partitions_of_column(number, column, counts, not is_one, <int32_t *> data.buf)
    finally:
        PyBuffer_Release(&data)
    return out


cdef int32_t partitioner_number(object partitioner) except -1:
    """Returns the C core's number of a partitioner's name. TypeError, ValueError."""
    if not isinstance(partitioner, str):
        raise TypeError(f"partitioner must be a str, not {type(partitioner).__name__}")
    if partitioner not in PARTITIONERS:
        raise ValueError(f"partitioner must be 'murmur2' or 'crc32', not {partitioner!r}")
    return PARTITIONERS[partitioner]


cdef tuple key_tuple(object keys):
    """Returns the keys of an iterable; TypeError for one key in the place of many."""
    if isinstance(keys, (str, bytes, bytearray, memoryview)):
        raise TypeError("keys must be an Arrow column or an iterable of bytes, not"
                        f" {type(keys).__name__}")
    return tuple(keys)


cdef int check_key_column(ArrowColumn column) except -1:
    """TypeError for a column of anything but binary and strings."""
    cdef bytes format = column.schema.format
    if column.schema.dictionary is not NULL:
        raise TypeError("a column of keys must not be dictionary-encoded: cast it to binary")
    if format not in (b"z", b"u", b"Z", b"U", b"vz", b"vu"):
        raise TypeError("a column of keys must hold binary or strings, not Arrow's format"
                        f" {format.decode('ascii', 'replace')!r}")
    return 0


cdef int partitions_of_keys(int32_t partitioner, tuple keys, const int32_t *counts, size_t step,
                            int32_t *out) except -1:
    """Writes the partition of each key of a tuple to `out`. TypeError."""
    cdef rdmeta_str_t raw
    cdef size_t i = 0
    for key in keys:
        owner = key_view(key, &raw)
        out[i] = rdmeta_key_partition(partitioner, raw.data, raw.len, counts[i * step])
        i += 1
    return 0


cdef void partitions_of_column(int32_t partitioner, ArrowColumn column, const int32_t *counts,
                               size_t step, int32_t *out) noexcept nogil:
    """Writes the partition of each key of a column to `out`."""
    cdef const ArrowArray *chunk
    cdef rdmeta_keys_t keys
    cdef rdmeta_str_t raw
    cdef const char *format = column.schema.format
    cdef int64_t c
    cdef int64_t i
    cdef size_t n
    for c in range(column.n_chunks):
        chunk = column.chunks[c]
        n = <size_t> chunk.length
        if format[0] == c"v":
            for i in range(chunk.length):
                string_at(c"v", chunk, i, &raw)
                out[i] = rdmeta_key_partition(
                    partitioner, raw.data if is_valid(chunk, i) else NULL, raw.len,
                    counts[<size_t> i * step])
        else:
            keys.validity = <const uint8_t *> chunk.buffers[0]
            keys.offsets = chunk.buffers[1]
            keys.data = <const uint8_t *> chunk.buffers[2]
            keys.first = chunk.offset
            keys.offset_width = 8 if format[0] in (c"Z", c"U") else 4
            rdmeta_key_partitions(partitioner, &keys, n, counts, step, out)
        counts += n * step
        out += n

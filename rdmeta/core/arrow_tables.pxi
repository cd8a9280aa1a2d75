# Tables through the Arrow C data interface's PyCapsules. Included by _core.pyx.

cdef dict ARROW_TABLES = {
    "brokers": RDMETA_ARROW_BROKERS,
    "topics": RDMETA_ARROW_TOPICS,
    "partitions": RDMETA_ARROW_PARTITIONS,
    "replicas": RDMETA_ARROW_REPLICAS,
}


cdef void arrow_stream_end(object capsule) noexcept:
    """Of a capsule whose stream nobody took over, or which was moved out of it."""
    cdef ArrowArrayStream *stream = <ArrowArrayStream *> PyCapsule_GetPointer(
        capsule, "arrow_array_stream")
    with nogil:  # its image goes under the writers' lock
        if stream.release is not NULL:
            stream.release(stream)
        free(stream)


cdef void arrow_schema_end(object capsule) noexcept:
    cdef ArrowSchema *schema = <ArrowSchema *> PyCapsule_GetPointer(capsule, "arrow_schema")
    if schema.release is not NULL:
        schema.release(schema)
    free(schema)


cdef class ArrowTable:
    """Rows for whoever speaks Arrow: pyarrow.table(t), polars.DataFrame(t), a query of DuckDB.

    They are of the version that was current when this was made, and are made while they are read,
    64 k rows at a time, by C and without the GIL. It can be read any number of times.
    """

    cdef int32_t table

    cdef rdmeta_err_t open(self, ArrowArrayStream *out) noexcept nogil:
        return RDMETA_ERR_ARGUMENT

    def __cinit__(self, given=None):
        if given is not GIVEN:
            raise TypeError(f"a {type(self).__name__} is given by to_arrow() and changes()")

    def __reduce__(self):
        raise TypeError("an ArrowTable cannot be pickled or copied: hand it to what reads Arrow")

    def __arrow_c_schema__(self):
        """Its columns, a PyCapsule "arrow_schema"."""
        cdef ArrowSchema *schema = <ArrowSchema *> malloc(sizeof(ArrowSchema))
        if schema is NULL or rdmeta_arrow_schema(self.table, schema):
            free(schema)
            raise MemoryError
        return PyCapsule_New(schema, "arrow_schema", <PyCapsule_Destructor> arrow_schema_end)

    def __arrow_c_stream__(self, requested_schema=None):
        """Its rows, a PyCapsule "arrow_array_stream"; they come in the schema that they have."""
        cdef ArrowArrayStream *stream = <ArrowArrayStream *> malloc(sizeof(ArrowArrayStream))
        cdef rdmeta_err_t err
        if stream is NULL:
            raise MemoryError
        with nogil:
            err = self.open(stream)
        if err:
            free(stream)
            raise from_code(err, "to_arrow")
        return PyCapsule_New(stream, "arrow_array_stream",
                             <PyCapsule_Destructor> arrow_stream_end)


@cython.final
cdef class ImageTable(ArrowTable):
    """One of the tables of an image."""

    cdef rdmeta_image_t *image
    cdef bint stale
    cdef int64_t now

    def __dealloc__(self):
        cdef rdmeta_image_t *image = self.image
        with nogil:
            rdmeta_image_unref(image)

    cdef rdmeta_err_t open(self, ArrowArrayStream *out) noexcept nogil:
        cdef int32_t which = RDMETA_WALK_VALID | (RDMETA_WALK_STALE if self.stale else 0)
        cdef rdmeta_reader_t *reader = rdmeta_image_reader(
            self.image, RDMETA_ALLOW_STALE if self.stale else 0)
        cdef rdmeta_err_t err
        if reader is NULL:
            return RDMETA_ERR_NO_MEMORY
        err = rdmeta_reader_arrow(reader, self.table, which, self.now, out)
        rdmeta_reader_destroy(reader)
        return err


cdef object arrow_table(rdmeta_reader_t *reader, int32_t table, bint stale, int64_t mono_us):
    """A table of what `reader` reads. MemoryError."""
    cdef ImageTable made = ImageTable.__new__(ImageTable, GIVEN)
    cdef rdmeta_time_t now
    now.mono_us = made.now = mono_us
    now.wall_us = 0
    made.table = table
    made.stale = stale
    with nogil:
        made.image = rdmeta_reader_image(reader, now)
    if made.image is NULL:
        raise MemoryError
    return made

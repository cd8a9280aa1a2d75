# Tables for Arrow readers, through the PyCapsules of the Arrow C data interface: to_arrow().
# Included by _core.pyx.

cdef dict ARROW_TABLES = {
    "brokers": RDMETA_ARROW_BROKERS,
    "topics": RDMETA_ARROW_TOPICS,
    "partitions": RDMETA_ARROW_PARTITIONS,
    "replicas": RDMETA_ARROW_REPLICAS,
}


cdef void arrow_stream_end(object capsule) noexcept:
    """Frees a capsule's stream; a consumer that took the stream has set its `release` to NULL."""
    cdef ArrowArrayStream *stream = <ArrowArrayStream *> PyCapsule_GetPointer(
        capsule, "arrow_array_stream")
    with nogil:  # the release of its image takes the writers' lock
        if stream.release is not NULL:
            stream.release(stream)
        free(stream)


cdef void arrow_schema_end(object capsule) noexcept:
    """Frees a capsule's schema; a consumer that took the schema has set its `release` to NULL."""
    cdef ArrowSchema *schema = <ArrowSchema *> PyCapsule_GetPointer(capsule, "arrow_schema")
    if schema.release is not NULL:
        schema.release(schema)
    free(schema)


cdef class ArrowTable:
    """A table for any Arrow reader: pyarrow.table(t), polars.DataFrame(t), a query of DuckDB.

    The rows are those of the version that was current when the table was made. C makes them while
    they are read, in batches of 64 k rows and without the GIL. A table can be read any number of
    times.
    """

    cdef int32_t table

    cdef rdmeta_err_t open(self, ArrowArrayStream *out) noexcept nogil:
        """Opens a stream of the rows; the caller releases it."""
        return RDMETA_ERR_ARGUMENT

    def __cinit__(self, given=None):
        if given is not GIVEN:
            raise TypeError(f"{type(self).__name__} cannot be made directly: a table is given by"
                            " to_arrow() of a cache, an image or changes")

    def to_pandas(self):
        """Returns a pandas DataFrame. Raises MissingExtraError without pandas or pyarrow."""
        try:
            import pandas  # noqa: F401
            import pyarrow
        except ImportError as error:
            raise MissingExtraError.of("to_pandas()", "spark") from error
        return pyarrow.table(self).to_pandas()

    def to_polars(self):
        """Returns a polars DataFrame. Raises ImportError without polars."""
        import polars

        return polars.DataFrame(self)

    @property
    def schema(self):
        """The table's columns as a pyarrow.Schema. Raises MissingExtraError without pyarrow."""
        try:
            import pyarrow
        except ImportError as error:
            raise MissingExtraError.of("schema", "arrow") from error
        return pyarrow.schema(self)

    def _repr_html_(self):
        """Returns the first rows as HTML, for notebooks; None without pyarrow."""
        return arrow_html(self)

    def __reduce__(self):
        raise TypeError("an ArrowTable cannot be pickled or copied: convert it, for example with"
                        " pyarrow.table()")

    def __arrow_c_schema__(self):
        """Returns the table's columns as a PyCapsule "arrow_schema". MemoryError."""
        cdef ArrowSchema *schema = <ArrowSchema *> malloc(sizeof(ArrowSchema))
        if schema is NULL or rdmeta_arrow_schema(self.table, schema):
            free(schema)
            raise MemoryError
        return PyCapsule_New(schema, "arrow_schema", <PyCapsule_Destructor> arrow_schema_end)

    def __arrow_c_stream__(self, requested_schema=None):
        """Returns the table's rows as a PyCapsule "arrow_array_stream".

        `requested_schema` is ignored, as Arrow allows: the rows have the schema of
        __arrow_c_schema__(). MalformedError for rows of a damaged file. MemoryError.
        """
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
    """One of the tables of an image: brokers, topics, partitions or replicas."""

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
    """Returns a table of what `reader` reads now. MemoryError."""
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

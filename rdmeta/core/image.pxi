# Images, and the files that they are saved to. Included by _core.pyx.

cdef bytes path_bytes(object path):
    """A path as the system wants it. TypeError, ValueError for one with a NUL in it."""
    cdef bytes raw = bytes(fsencode(path))
    if b"\0" in raw:
        raise ValueError(f"a path cannot hold a NUL: {path!r}")
    return raw


cdef object refused(rdmeta_err_t err, int number, object path, str what, str why=""):
    """The exception for what a call about a file returned; `number` is errno as it left it."""
    if err == RDMETA_ERR_IO:
        return OSError(number, strerror(number), fsdecode(path))
    return from_code(err, f"{what} {fsdecode(path)!r}{why}")


cdef str fault_text(rdmeta_err_t err, const rdmeta_image_fault_t *fault):
    """What C found malformed, and where; "" for nothing."""
    if err != RDMETA_ERR_MALFORMED:
        return ""
    return f": {fault.what.decode('ascii')}, at byte {fault.offset} ({fault.section.decode('ascii')})"


cdef object not_opened(rdmeta_err_t err, int number, bytes path):
    """The exception for a file that could not be opened as an image."""
    cdef rdmeta_image_fault_t fault
    cdef const char *name = path
    cdef rdmeta_err_t again = RDMETA_OK
    if err == RDMETA_ERR_MALFORMED:
        with nogil:
            again = rdmeta_image_file_fault(name, &fault)
    return refused(err, number, path, "image", fault_text(again, &fault))


cdef object broken(Reading source, rdmeta_err_t err, str what):
    """The exception for a lookup that failed: of a file's, with its name."""
    if err == RDMETA_ERR_MALFORMED and source.place is not None:
        what += f" in the image {source.place!r}, of which verify() says more"
    return from_code(err, what)


cdef Image image_of(rdmeta_image_t *image, place=None):
    """Takes the reference; `place` is the file's. MemoryError for NULL."""
    cdef Image made
    if image is NULL:
        raise MemoryError
    made = Image.__new__(Image, GIVEN)
    made.image = image
    made.place = place
    made.settle()
    return made


cdef class Image(Reading):
    """What a cache said at one version, held; read like the cache.

    Time stands still in it: what was valid when it was taken is valid in it, and `age()` is as of
    then. It is given by `MetadataCache.image()`, `Attached.image()` and `Image.open()`. Of a cache
    it shares what it holds, so that taking one copies nothing, and holding one costs what has
    changed since. Threads may share one; in the child of a fork it can be read as well.
    """

    def __cinit__(self, given=None):
        if given is not GIVEN:
            raise TypeError("an Image is given by MetadataCache.image() and Image.open()")

    def __dealloc__(self):
        if self.image is not NULL:
            rdmeta_image_unref(self.image)  # its readers hold it as well

    cdef int settle(self) except -1:
        """Read what the image says of itself, and make its readers."""
        with nogil:  # of a live cache it takes the writers' lock
            rdmeta_image_info(self.image, &self.info)
        self.max_age_us = self.info.max_age_us
        self.begin()
        return 0

    cdef rdmeta_reader_t *make(self, int32_t flags) noexcept:
        cdef rdmeta_reader_t *reader
        with nogil:  # a writer may hold the lock that this takes
            reader = rdmeta_image_reader(self.image, flags)
        return reader

    cdef int64_t now(self) except? -1:
        return self.info.taken_mono_us

    cdef uint64_t version_now(self) except? 0:
        return self.info.version

    cdef int64_t answered_us(self) except? -1:
        return answered_at(self.info.shared_deadline_us, self.info.max_age_us)

    def __reduce__(self):
        raise TypeError("an Image cannot be pickled or copied: save() it, and open() it there")

    def __repr__(self):
        return (f"<rdmeta.Image cluster_id={self.cluster_id!r} version={self.version}"
                f" topics={self.info.topics} brokers={len(self.brokers)} taken={self.taken}>")

    @staticmethod
    def open(path, *, copy=False):
        """The image in a file that save() or publish() wrote: it is mapped, not read.

        Its head is checked, everything else where it is looked at: then, too, MalformedError is
        raised by a file that was damaged; verify() looks at all of it. Truncating a file that is
        mapped, or writing to it, is fatal to any program: those of save() and publish() are only
        ever replaced. `copy` reads the file into memory instead, for files that others may write to:
        up to 1 GiB.

        MalformedError for what is no image, UnsupportedVersionError for another version's, OSError.
        """
        cdef bytes raw = path_bytes(path)
        cdef const char *name = raw
        cdef int32_t flags = RDMETA_IMAGE_COPY if copy else 0
        cdef rdmeta_image_t *image = NULL
        cdef rdmeta_time_t now
        cdef rdmeta_err_t err
        cdef int number
        system_clocks(&now)
        with nogil:
            err = rdmeta_image_open(name, flags, now, &image)
            number = errno
        if err:
            raise not_opened(err, number, raw)
        return image_of(image, abspath(fsdecode(raw)))

    def save(self, path, *, sync=False):
        """Write a file that open() reads, aside, and give it this name at the end.

        Who reads an older file of this name goes on with that one. The new one takes its mode; of a
        symbolic link it takes the place. `sync` returns when it is on the disk. OSError; on any error
        what was there before still is, unless with `sync` the disk itself fails at the very end.
        """
        cdef bytes raw = path_bytes(path)
        cdef const char *name = raw
        cdef int32_t flags = RDMETA_IMAGE_SYNC if sync else 0
        cdef rdmeta_err_t err
        cdef int number
        with nogil:
            err = rdmeta_image_save(self.image, name, flags)
            number = errno
        if err:
            raise refused(err, number, raw, "image for")

    def capsule(self):
        """A PyCapsule "rdmeta.image" that holds this image, a rdmeta_image_t, for other extensions."""
        return image_capsule(self.image)

    def verify(self):
        """Read all of it: every checksum, every topic, every way to one.

        MalformedError, which says what is wrong first, and at which byte of the file.
        """
        cdef rdmeta_image_fault_t fault
        cdef rdmeta_err_t err
        with nogil:
            err = rdmeta_image_fault(self.image, &fault)
        if err:
            raise from_code(err, f"image {self.place!r}{fault_text(err, &fault)}")

    def diff(self, other, /):
        """What differs from this image to `other`, as Changes: brokers, then topics by their names.

        Any two images. Records have the version, session and time of `other`, and the source `poll`;
        for the changes one by one, with what brought them, see MetadataCache.changes().
        """
        cdef ChangeTable found
        cdef Image after
        cdef rdmeta_err_t err
        if not isinstance(other, Image):
            raise TypeError(f"other must be an Image, not {type(other).__name__}")
        after = other
        found = no_records(after.session)
        with nogil:
            err = rdmeta_image_diff(self.image, after.image, record_visit, &found.records)
        if err:
            files = [image.place for image in (self, after) if image.place is not None]
            raise from_code(err, " ".join(["diff of", *map(repr, files)]))
        return Changes(found, after.info.version, False)

    @property
    def path(self):
        """The file that it is in, absolute; None for one of a live cache."""
        return self.place

    @property
    def taken(self):
        """When it was taken, a datetime in UTC."""
        return wall_datetime(self.info.taken_wall_us)

    @property
    def session(self):
        """The UUID of the cache's life that it was taken in, as in change records."""
        return session_text(self.info.session)

    def stats(self):
        """Sizes as a dict: topics, valid or stale, and partitions; `bytes` held for it alone.

        For a file `bytes` is its size, and `mapped` says whether it lies in the system's memory.
        """
        cdef rdmeta_image_info_t info
        with nogil:  # of a live cache it takes the writers' lock
            rdmeta_image_info(self.image, &info)
        return {"version": info.version, "topics": info.topics, "partitions": info.partitions,
                "bytes": info.bytes, "mapped": bool(info.mapped)}


cdef str session_text(const uint8_t *session):
    """A UUID; that of zeros where none was said."""
    return str(uuid.UUID(bytes=session[:16]))


cdef str session_of(rdmeta_cache_t *cache):
    """The UUID of a cache's life, which its images tell. MemoryError."""
    cdef rdmeta_image_info_t info
    cdef rdmeta_time_t never = [0, 0]
    cdef rdmeta_image_t *image = rdmeta_cache_image(cache, never)
    if image is NULL:
        raise MemoryError
    rdmeta_image_info(image, &info)  # nobody else has the cache yet
    rdmeta_image_unref(image)
    return session_text(info.session)

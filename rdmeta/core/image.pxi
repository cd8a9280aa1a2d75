# Images and their files: take, read, save, open, verify, diff; and the errors of files.
# Included by _core.pyx.

cdef bytes path_bytes(object path):
    """Returns a path as bytes for the system. TypeError; ValueError for one with a NUL byte."""
    cdef bytes raw = bytes(fsencode(path))
    if b"\0" in raw:
        raise ValueError(f"path must not have a NUL byte: {path!r}")
    return raw


cdef object refused(rdmeta_err_t err, int number, object path, str what, str why=""):
    """Returns the exception for a file's error code; `number` is errno right after the C call."""
    if err == RDMETA_ERR_IO:
        return OSError(number, strerror(number), fsdecode(path))
    return from_code(err, f"{what} {fsdecode(path)!r}{why}")


cdef str fault_text(rdmeta_err_t err, const rdmeta_image_fault_t *fault):
    """Returns what C found malformed, and where, for an error text; "" if `err` is another code."""
    if err != RDMETA_ERR_MALFORMED:
        return ""
    return (f": {fault.what.decode('ascii')}, at byte {fault.offset}"
            f" ({fault.section.decode('ascii')})")


cdef object not_opened(rdmeta_err_t err, int number, bytes path):
    """Returns the exception for a file that could not be opened as an image."""
    cdef rdmeta_image_fault_t fault
    cdef const char *name = path
    cdef rdmeta_err_t again = RDMETA_OK
    if err == RDMETA_ERR_MALFORMED:
        with nogil:
            again = rdmeta_image_file_fault(name, &fault)
    return refused(err, number, path, "image", fault_text(again, &fault))


cdef object broken(Reading source, rdmeta_err_t err, str what):
    """Returns the exception for a lookup that failed; for a damaged file it has the file's name."""
    if err == RDMETA_ERR_MALFORMED and source.place is not None:
        what += f" in the image {source.place!r}: call verify() of the image for the fault"
    return from_code(err, what)


cdef Image image_of(rdmeta_image_t *image, place=None):
    """Returns an Image that takes the reference. MemoryError for NULL. `place` is a file's path."""
    cdef Image made
    if image is NULL:
        raise MemoryError
    made = Image.__new__(Image, GIVEN)
    made.image = image
    made.place = place
    made.complete()
    return made


cdef class Image(Reading):
    """The state of a cache at one version, with the lookups of the cache.

        before = cache.image()
        ...                                     # the cache goes on
        for change in before.diff(cache.image()):
            print(change.kind, change.topic)

    Time stands still in an image: what was valid when it was taken stays valid, and age() counts to
    that moment. MetadataCache.image(), Attached.image() and Image.open() return one. An image of a
    live cache shares the cache's memory: taking it copies nothing, and keeping it costs the memory
    of what has changed since. Threads may share an image. It can be read in the child of a fork.
    """

    def __cinit__(self, given=None):
        if given is not GIVEN:
            raise TypeError("an Image cannot be made directly: it is given by image() of a cache,"
                            " and by Image.open()")

    def __dealloc__(self):
        if self.image is not NULL:
            rdmeta_image_unref(self.image)  # its readers have references of their own

    cdef int complete(self) except -1:
        """Reads the image's properties, and makes its readers. MemoryError."""
        with nogil:  # for an image of a live cache, rdmeta_image_info() takes the writers' lock
            rdmeta_image_info(self.image, &self.info)
        self.max_age_us = self.info.max_age_us
        self.begin()
        return 0

    cdef rdmeta_reader_t *make(self, int32_t flags) noexcept:
        cdef rdmeta_reader_t *reader
        with nogil:  # a writer may hold the lock that rdmeta_image_reader() takes
            reader = rdmeta_image_reader(self.image, flags)
        return reader

    cdef int64_t now(self) except? -1:
        return self.info.taken_mono_us

    cdef uint64_t version_now(self) except? 0:
        return self.info.version

    cdef int64_t answered_us(self) except? -1:
        return answered_at(self.info.shared_deadline_us, self.info.max_age_us)

    def __reduce__(self):
        raise TypeError("an Image cannot be pickled or copied: save() it to a file, and open() the"
                        " file there")

    def __repr__(self):
        return (f"<rdmeta.Image cluster_id={self.cluster_id!r} version={self.version}"
                f" topics={self.info.topics} brokers={len(self.brokers)} taken={self.taken}>")

    def _repr_html_(self):
        """Returns what the image is, and its first topics, as HTML for notebooks."""
        topics = self.to_arrow("topics", allow_stale=True)._repr_html_()
        return None if topics is None else f"<p>{html_text(repr(self))}</p>{topics}"

    @staticmethod
    def open(path, *, copy=False):
        """Returns the image in a file that save() or publish() wrote.

            image = rdmeta.Image.open("/run/orders.rdmeta")

        The file is mapped, not read: open() checks only its head, and each lookup checks what it
        reads. So a lookup, too, raises MalformedError if the file is damaged. verify() checks the
        whole file.

        A program that truncates a mapped file, or writes to it, can end the processes that have
        mapped it (SIGBUS). save() and publish() only ever replace a file, which does no harm. For
        files that other programs may write to, `copy=True` reads the file into memory, up to 1 GiB.

        MalformedError: the file is not an image, or its head is damaged. UnsupportedVersionError:
        the file has another version of the format, or the other byte order. OSError. TypeError,
        ValueError for a path that cannot be one. MemoryError.
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

    def save(self, path, *, sync=False, mode=None):
        """Writes the image to a file that Image.open(), load() and rdmeta.attach() read.

        It writes a temporary file in the same directory, which replaces the file at `path` at the
        end. Readers of the older file keep reading the older one. The umask decides who may read
        the new file, as for any new file, or `mode` does, such as 0o640; the older one has no say.
        A symbolic link is itself replaced. With `sync` the file is on the disk when save() returns.

        OSError, MalformedError (this image is a damaged file), TypeError, ValueError, MemoryError.
        On any error the older file is still there. The one exception is `sync` on a disk that fails
        at the very end: the new file may then be there.
        """
        cdef bytes raw = path_bytes(path)
        cdef const char *name = raw
        cdef int32_t flags = permissions(mode) << RDMETA_IMAGE_MODE_SHIFT
        cdef rdmeta_err_t err
        cdef int number
        if sync:
            flags |= RDMETA_IMAGE_SYNC
        with nogil:
            err = rdmeta_image_save(self.image, name, flags)
            number = errno
        if err:
            raise refused(err, number, raw, "the image for the file")

    def capsule(self):
        """Returns a PyCapsule "rdmeta.image" of this image's rdmeta_image_t, for other extensions.

        The capsule owns a reference to the image.
        """
        return image_capsule(self.image)

    def verify(self):
        """Checks the whole image: every checksum, every topic, every index entry of a topic.

        MalformedError: its message says what is wrong first, and at which byte of the file. There
        is no fault in an image of a live cache. It releases the GIL.
        """
        cdef rdmeta_image_fault_t fault
        cdef rdmeta_err_t err
        with nogil:
            err = rdmeta_image_fault(self.image, &fault)
        if err:
            raise from_code(err, f"image {self.place!r}{fault_text(err, &fault)}")

    def diff(self, other, /):
        """Returns what differs from this image to `other`, any two images, as Changes.

        Brokers come first, then topics in the order of their names' bytes. Each record has the
        version, session and time of `other`, and the source `poll`. MetadataCache.changes() returns
        every single change, with its source, instead. TypeError; MalformedError for a damaged file.
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
            raise from_code(err, " ".join(["the diff of", *map(repr, files)]))
        return Changes(found, after.info.version, False)

    def changes(self):
        """Returns records that tell all of the image's state, as Changes.

        There is a broker_added per broker, then a topic_added per valid topic, each followed by a
        topic_added per partition, as in MetadataCache.changes(since, whole=True). Topics are in the
        order of their names' bytes. Each record has the version, session and time of the image, and
        the source `poll`. MalformedError for a damaged file; MemoryError.
        """
        cdef ChangeTable found = no_records(self.session)
        cdef rdmeta_err_t err
        with nogil:
            err = rdmeta_image_changes(self.image, record_visit, &found.records)
        if err:
            raise broken(self, err, "the changes")
        return Changes(found, self.info.version, False)

    @property
    def path(self):
        """The absolute path of the image's file; None for an image of a live cache."""
        return self.place

    @property
    def taken(self):
        """The time at which the image was taken, a datetime in UTC."""
        return wall_datetime(self.info.taken_wall_us)

    @property
    def session(self):
        """The session of the cache that the image was taken of: a UUID, as in change records."""
        return session_text(self.info.session)

    def stats(self):
        """Returns sizes as a dict.

        - `version`: the version of the cache.
        - `topics` and `partitions`: how many there are, of valid and stale topics.
        - `bytes`: the memory that is kept for this image alone; for a file, its size.
        - `mapped`: whether the image is a mapped file.
        """
        cdef rdmeta_image_info_t info
        with nogil:  # for an image of a live cache, rdmeta_image_info() takes the writers' lock
            rdmeta_image_info(self.image, &info)
        return {"version": info.version, "topics": info.topics, "partitions": info.partitions,
                "bytes": info.bytes, "mapped": bool(info.mapped)}


cdef str session_text(const uint8_t *session):
    """Returns a session as the text of a UUID; one of zeros for an unknown session."""
    return str(uuid.UUID(bytes=session[:16]))


cdef str session_of(rdmeta_cache_t *cache):
    """Returns a new cache's session, which its images contain. MemoryError."""
    cdef rdmeta_image_info_t info
    cdef rdmeta_time_t never = [0, 0]
    cdef rdmeta_image_t *image = rdmeta_cache_image(cache, never)
    if image is NULL:
        raise MemoryError
    rdmeta_image_info(image, &info)  # no other thread has the cache yet: it waits for no lock
    rdmeta_image_unref(image)
    return session_text(info.session)

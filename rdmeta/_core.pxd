"""The layout of the classes a user holds; what they stand on, of C, is in _capi.pxd."""

from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t

from rdmeta._capi cimport *


cdef enum:
    # Readers kept for reuse, for each kind of reading.
    POOLED_READERS = 8


cdef class Readers:
    # Threads under one GIL share these two: a point lookup never lets go of it.
    cdef rdmeta_reader_t *strict
    cdef rdmeta_reader_t *lenient
    # Calls that let go of it, or make objects on the way, take one of these: [allow_stale].
    cdef rdmeta_reader_t *pool[2][POOLED_READERS]
    cdef int pooled[2]
    # C's coarse clock tells lookups the time; otherwise now() does.
    cdef bint ticking
    # Callables giving seconds, if it is not the system's clocks that tell the time.
    cdef object monotonic
    cdef object wall
    cdef int pid

    cdef rdmeta_reader_t *make(self, int32_t flags) noexcept
    cdef int set_clock(self, object clock) except -1
    cdef int begin(self) except -1
    cdef int64_t now(self) except? -1
    cdef int read_clocks(self, rdmeta_time_t *now) except -1
    cdef rdmeta_reader_t *take(self, bint allow_stale) except NULL
    cdef rdmeta_reader_t *take_brokers(self) except NULL
    cdef void give(self, bint allow_stale, rdmeta_reader_t *reader) noexcept


cdef class Reading(Readers):
    cdef int64_t max_age_us
    # Where the file lies that is read, None for a live cache.
    cdef object place

    cdef uint64_t version_now(self) except? 0
    cdef int64_t ttl_us(self, int64_t now) noexcept
    cdef int64_t answered_us(self) except? -1
    cdef object leader_of(self, rdmeta_reader_t *reader, topic, partition, default)
    cdef object topic_of(self, rdmeta_reader_t *reader, const rdmeta_topic_t *found, int64_t now,
                         bint stale)
    cdef int topic_info(self, topic, rdmeta_topic_info_t *info, int64_t now,
                        int64_t *ttl_us) except -1
    cdef object missing(self, int32_t code, topic, partition, default)


cdef class Image(Reading):
    cdef rdmeta_image_t *image
    cdef rdmeta_image_info_t info

    cdef int settle(self) except -1


cdef class Attached(Reading):
    cdef rdmeta_attach_t *attach
    cdef tuple arguments
    # The session that was read last.
    cdef bytes session_raw
    cdef str session_name
    # What rdmeta._waits keeps, weakly: {event loop: its waiters}; and how often it looks, seconds.
    cdef readonly object _loops
    cdef readonly double _look_s
    cdef object __weakref__

    cdef rdmeta_image_t *look(self) except NULL
    cdef int look_info(self, rdmeta_image_info_t *info) except -1
    cdef str session_of(self, const rdmeta_image_info_t *info)


cdef class MetadataCache(Reading):
    cdef rdmeta_cache_t *cache
    cdef str session_name
    # What rdmeta._waits keeps, weakly: {event loop: its waiters}.
    cdef readonly object _loops
    cdef object __weakref__

    cdef int read_stats(self, rdmeta_stats_t *out) except -1
    cdef object wait(self, since, timeout, object topics, topic, told)


cdef class TopicHandle:
    cdef Reading source
    cdef rdmeta_handle_t *handle  # NULL: it is of no cache
    cdef rdmeta_str_t name
    cdef object keep  # where the name lies
    cdef rdmeta_reader_t *strict
    cdef bint coarse

    cdef int find(self, rdmeta_cache_t *owner) except -1
    cdef int32_t lead(self, rdmeta_reader_t *reader, int32_t partition, int64_t now) noexcept
    cdef int32_t count(self) except? -1

"""The layout of the public classes; _capi.pxd declares the C functions that they call."""

from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t

from rdmeta._capi cimport *


cdef enum:
    # The most idle readers that one pool keeps; there is a pool for each value of allow_stale.
    POOLED_READERS = 8


cdef class Readers:
    # The readers of point lookups: `lenient` reads stale topics as well. All threads share these
    # two, since a point lookup never releases the GIL.
    cdef rdmeta_reader_t *strict
    cdef rdmeta_reader_t *lenient
    # The idle readers, by allow_stale. A call that releases the GIL, or makes objects between enter
    # and leave, takes one of them for itself.
    cdef rdmeta_reader_t *pool[2][POOLED_READERS]
    cdef int pooled[2]
    # Lookups read the system's coarse clock; otherwise they call now().
    cdef bint ticking
    # The user's clocks: callables that return seconds; None for the system's clocks.
    cdef object monotonic
    cdef object wall
    # The process that made the object.
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
    # The path of the file that is read, None for a live cache.
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

    cdef int complete(self) except -1


cdef class Attached(Reading):
    cdef rdmeta_attach_t *attach
    cdef tuple arguments
    # The session that was read last, as 16 bytes and as text.
    cdef bytes session_raw
    cdef str session_name
    # The waiters of each event loop, with weak references: {event loop: its waiters}. Only
    # rdmeta.core.waits uses it.
    cdef readonly object _loops
    # The seconds between two looks at the file while a caller waits.
    cdef readonly double _look_s
    cdef object __weakref__

    cdef rdmeta_image_t *look(self) except NULL
    cdef int look_info(self, rdmeta_image_info_t *info) except -1
    cdef str session_of(self, const rdmeta_image_info_t *info)


cdef class MetadataCache(Reading):
    cdef rdmeta_cache_t *cache
    cdef str session_name
    # The waiters of each event loop, with weak references: {event loop: its waiters}. Only
    # rdmeta.core.waits uses it.
    cdef readonly object _loops
    cdef object __weakref__

    cdef int read_stats(self, rdmeta_stats_t *out) except -1
    cdef object wait(self, since, timeout, object topics, topic, answer)


cdef class TopicHandle:
    cdef Reading source
    cdef rdmeta_handle_t *handle  # NULL for an Attached: each lookup searches for the name
    cdef rdmeta_str_t name
    cdef object keep  # the object that owns the bytes of `name`
    cdef rdmeta_reader_t *strict  # the strict reader of `source`
    cdef bint coarse  # lookups read the system's coarse clock

    cdef int resolve(self, rdmeta_cache_t *cache) except -1
    cdef int32_t leader_or_code(self, rdmeta_reader_t *reader, int32_t partition,
                                int64_t now) noexcept
    cdef int32_t count(self) except? -1

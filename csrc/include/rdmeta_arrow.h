/*
 * rdmeta: tables out of a cache, through the Arrow C data interface. Part of
 * rdmeta.h, which includes it.
 *
 * A stream returns batches of about 64 000 rows, and makes each one when it is
 * asked for. All batches have the state at the moment when the stream was made:
 * the stream refers to an image (see rdmeta_image.h) until it ends. A stream
 * may outlive cache, image and reader, and so may its batches. Their memory is
 * the C library's, and their receiver releases them. Text is UTF-8; other bytes
 * of a name become U+FFFD. A missing value is null, never a special number.
 *
 * brokers      broker, host, port, rack?, controller, cluster_id?
 * topics       topic, topic_id?, internal, partitions, error, operations?,
 *              version, state, source_broker?, reason?, age?
 * partitions   topic, topic_id?, partition, leader?, leader_epoch?, replicas,
 *              isr, offline_replicas, error, unreachable, leaderless, stale
 * replicas     topic, topic_id?, partition, broker, position, leader, in_sync,
 *              offline, preferred: one row per replica
 * changes      the members of rdmeta_change_t and the session, each nullable
 *
 * Topic ids are Kafka's base64. Numbers are int32, except `error` (int16),
 * `version` and `offset` (int64), and `age` (float64, in seconds).
 * `observed_at` is timestamp[us, UTC]; replicas, isr and offline_replicas are
 * list<int32>.
 *
 * Threads: any, for every call here except rdmeta_reader_arrow(), which belongs
 * to the reader's thread. One thread at a time may use a stream; any thread may
 * release it and its batches. Callbacks of a stream return ENOMEM or EIO;
 * get_last_error() then returns the name of the code.
 */
#ifndef RDMETA_ARROW_H
#define RDMETA_ARROW_H

#include "rdmeta.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The Arrow C data interface defines these for programs to copy. */
#ifndef ARROW_C_DATA_INTERFACE
#define ARROW_C_DATA_INTERFACE

#define ARROW_FLAG_DICTIONARY_ORDERED 1
#define ARROW_FLAG_NULLABLE 2
#define ARROW_FLAG_MAP_KEYS_SORTED 4

struct ArrowSchema {
        const char *format;
        const char *name;
        const char *metadata;
        int64_t flags;
        int64_t n_children;
        struct ArrowSchema **children;
        struct ArrowSchema *dictionary;
        void (*release)(struct ArrowSchema *);
        void *private_data;
};

struct ArrowArray {
        int64_t length;
        int64_t null_count;
        int64_t offset;
        int64_t n_buffers;
        int64_t n_children;
        const void **buffers;
        struct ArrowArray **children;
        struct ArrowArray *dictionary;
        void (*release)(struct ArrowArray *);
        void *private_data;
};
#endif /* ARROW_C_DATA_INTERFACE */

#ifndef ARROW_C_STREAM_INTERFACE
#define ARROW_C_STREAM_INTERFACE

struct ArrowArrayStream {
        int (*get_schema)(struct ArrowArrayStream *, struct ArrowSchema *out);
        int (*get_next)(struct ArrowArrayStream *, struct ArrowArray *out);
        const char *(*get_last_error)(struct ArrowArrayStream *);
        void (*release)(struct ArrowArrayStream *);
        void *private_data;
};
#endif /* ARROW_C_STREAM_INTERFACE */

struct rdmeta_change;
struct rdmeta_image;
struct rdmeta_reader;

/** The tables. */
enum {
        RDMETA_ARROW_BROKERS = 0,
        RDMETA_ARROW_TOPICS,
        RDMETA_ARROW_PARTITIONS,
        RDMETA_ARROW_REPLICAS,
        RDMETA_ARROW_CHANGES
};

/** Sets *out to the columns of `table`; the caller releases it. Writes *out
 *  only when it returns 0, as do the calls below. Errors: ARGUMENT: no such
 *  table. NO_MEMORY. Threads: any. */
RDMETA_API rdmeta_err_t rdmeta_arrow_schema(int32_t table,
                                            struct ArrowSchema *out);

/**
 * Makes a stream of BROKERS, TOPICS, PARTITIONS or REPLICAS as `reader` sees
 * them now, with topics in the order of their names. It refers to a new image
 * of the reader's cache, or to the reader's own image. `which`: RDMETA_WALK_...
 * as of mono_us. Only TOPICS has rows for topics that are neither valid nor
 * stale. A reader with RDMETA_ALLOW_STALE has the last known leaders. Errors:
 * ARGUMENT (another table), NO_MEMORY; MALFORMED for a file's image.
 * Threads: the reader's.
 */
RDMETA_API rdmeta_err_t rdmeta_reader_arrow(struct rdmeta_reader *reader,
                                            int32_t table, int32_t which,
                                            int64_t mono_us,
                                            struct ArrowArrayStream *out);

typedef struct rdmeta_arrow_changes rdmeta_arrow_changes_t;

/** Returns a collector of change records for a stream. It is for
 *  rdmeta_arrow_changes_stream() or rdmeta_arrow_changes_destroy(). NULL: no
 *  memory. Copies `session` (a string, or NULL), which every row has.
 *  Threads: any. */
RDMETA_API rdmeta_arrow_changes_t *rdmeta_arrow_changes_new(
        const char *session);
/** Copies one record into `changes`. It is a rdmeta_change_visit_t: pass it and
 *  the collector to a call that visits changes. NO_MEMORY: the only call left
 *  for the collector is destroy. Threads: any, one at a time. */
RDMETA_API int32_t rdmeta_arrow_changes_add(
        void *changes, const struct rdmeta_change *change);
/** Makes a stream of the records so far. Takes `changes`, also on an error.
 *  Errors: NO_MEMORY. Threads: any. */
RDMETA_API rdmeta_err_t rdmeta_arrow_changes_stream(
        rdmeta_arrow_changes_t *changes, struct ArrowArrayStream *out);
/** Frees a collector that became no stream. NULL is fine. Threads: any. */
RDMETA_API void rdmeta_arrow_changes_destroy(rdmeta_arrow_changes_t *changes);

/** Makes a stream of CHANGES from rdmeta_cache_changes(), with its *until,
 *  *resync (the stream is then empty) and errors. The stream does not refer to
 *  the cache. Threads: any. */
RDMETA_API rdmeta_err_t rdmeta_cache_arrow_changes(
        rdmeta_cache_t *cache, uint64_t since, const char *session,
        struct ArrowArrayStream *out, uint64_t *until, int32_t *resync);

/** Makes a stream of CHANGES from rdmeta_image_diff(), with its errors.
 *  Threads: any. */
RDMETA_API rdmeta_err_t rdmeta_image_arrow_diff(struct rdmeta_image *before,
                                                struct rdmeta_image *after,
                                                const char *session,
                                                struct ArrowArrayStream *out);

#ifdef __cplusplus
}
#endif

#endif /* RDMETA_ARROW_H */

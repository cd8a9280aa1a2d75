/*
 * rdmeta: tables out of a cache, through the Arrow C data interface. Part of
 * rdmeta.h, which includes it.
 *
 * A stream gives batches of some 64 000 rows, each made when it is asked for,
 * of what was true when the stream was made: it holds an image (see
 * rdmeta_image.h), which its end lets go. It may outlive cache, image and
 * reader, and so may its batches, whose memory is the C library's and whoever
 * gets them releases them. Text is UTF-8: bytes of a name that are none come
 * as U+FFFD. What is not there is null, never a number that stands for it.
 *
 * brokers      broker, host, port, rack?, controller, cluster_id?
 * topics       topic, topic_id?, internal, partitions, error, operations?,
 *              version, state, source_broker?, reason?, age?
 * partitions   topic, topic_id?, partition, leader?, leader_epoch?, replicas,
 *              isr, offline_replicas, error, unreachable, leaderless, stale
 * replicas     topic, topic_id?, partition, broker, position, leader, in_sync,
 *              offline, preferred: a row for each replica
 * changes      the members of rdmeta_change_t and the session, each nullable
 *
 * Ids of topics are Kafka's base64. Numbers are int32, but `error` int16,
 * `version` and `offset` int64, `age` float64 seconds; `observed_at` is
 * timestamp[us, UTC]; replicas, isr and offline_replicas are list<int32>.
 *
 * Threads: any for every call here but rdmeta_reader_arrow(), which is the
 * reader's. A stream is one thread's at a time; it and its batches may be
 * released by any. Callbacks of a stream return ENOMEM or EIO; its
 * get_last_error() then gives the name of the code.
 */
#ifndef RDMETA_ARROW_H
#define RDMETA_ARROW_H

#include "rdmeta.h"

#ifdef __cplusplus
extern "C" {
#endif

/* As the Arrow C data interface gives them, for programs to copy. */
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

/** What columns `table` has; the caller's to release. ARGUMENT: no such
 *  table. NO_MEMORY. *out is written to for 0 only, here and below.
 *  Threads: any. */
RDMETA_API rdmeta_err_t rdmeta_arrow_schema(int32_t table,
                                            struct ArrowSchema *out);

/**
 * BROKERS, TOPICS, PARTITIONS or REPLICAS as they are now for `reader`, topics
 * in the order of their names. `which`: RDMETA_WALK_... as of mono_us; of
 * topics that are not valid or stale only TOPICS tells. A reader with
 * RDMETA_ALLOW_STALE gives last known leaders. Holds an image of a cache, or
 * the reader's own. ARGUMENT (another table), NO_MEMORY; of a file's image
 * MALFORMED.
 * Threads: the reader's.
 */
RDMETA_API rdmeta_err_t rdmeta_reader_arrow(struct rdmeta_reader *reader,
                                            int32_t table, int32_t which,
                                            int64_t mono_us,
                                            struct ArrowArrayStream *out);

typedef struct rdmeta_arrow_changes rdmeta_arrow_changes_t;

/** Gathers change records to be a stream. `session` (a string, or NULL) is in
 *  each of its rows; copies it. For rdmeta_arrow_changes_stream() or its
 *  _destroy(). NULL back: no memory. Threads: any. */
RDMETA_API rdmeta_arrow_changes_t *rdmeta_arrow_changes_new(
        const char *session);
/** Copies one record. A rdmeta_change_visit_t: hand it, and what new gave, to
 *  whatever visits changes. NO_MEMORY: nothing but destroy is left to do.
 *  Threads: any, one at a time. */
RDMETA_API int32_t rdmeta_arrow_changes_add(
        void *changes, const struct rdmeta_change *change);
/** The records so far. Takes `changes`, also when it fails: NO_MEMORY.
 *  Threads: any. */
RDMETA_API rdmeta_err_t rdmeta_arrow_changes_stream(
        rdmeta_arrow_changes_t *changes, struct ArrowArrayStream *out);
/** Without a stream. NULL is fine. Threads: any. */
RDMETA_API void rdmeta_arrow_changes_destroy(rdmeta_arrow_changes_t *changes);

/** rdmeta_cache_changes() as a stream of CHANGES, which holds nothing of the
 *  cache; *until, *resync (then the stream is empty) and errors as there.
 *  Threads: any. */
RDMETA_API rdmeta_err_t rdmeta_cache_arrow_changes(
        rdmeta_cache_t *cache, uint64_t since, const char *session,
        struct ArrowArrayStream *out, uint64_t *until, int32_t *resync);

/** rdmeta_image_diff() as a stream of CHANGES, with its errors.
 *  Threads: any. */
RDMETA_API rdmeta_err_t rdmeta_image_arrow_diff(struct rdmeta_image *before,
                                                struct rdmeta_image *after,
                                                const char *session,
                                                struct ArrowArrayStream *out);

#ifdef __cplusplus
}
#endif

#endif /* RDMETA_ARROW_H */

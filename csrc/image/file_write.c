/*
 * Writes an image into a file, in one pass over the blocks in the order of
 * their names. The writer copies them through a buffer that stays in the CPU's
 * cache, and fills the tables in memory meanwhile. It writes the head last.
 * See file.h for the format.
 *
 *     blocks --copy--> buffer --checksum, write--> file
 *        |
 *        +--> order, names, ids --checksum, write--> file
 */
#include "image/file_write.h"

#include "image/file_open.h"

#include <errno.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

/* The writer's memory: one allocation by the image's allocator. */
typedef struct rdmeta_writer_room {
        size_t size;
        char *buffer;
        uint64_t *names, *ids;
        uint32_t *order;
} rdmeta_writer_room_t;

typedef struct rdmeta_writer {
        rdmeta_image_t *image;
        int fd;
        uint64_t at; /* bytes that are in the file */
        size_t used; /* bytes in the buffer, which follow them */
        rdmeta_checksum_t sum;
        rdmeta_file_head_t head;
        rdmeta_file_table_t names, ids; /* their slots are in `room` */
        rdmeta_writer_room_t room;
        rdmeta_file_reasons_t reasons;
        size_t count; /* blocks that were written */
} rdmeta_writer_t;

enum { BUFFER = 256 << 10, KEYS_MAX = 4 };

/* ---- bytes ------------------------------------------------------------- */

static rdmeta_err_t write_all(int fd, const void *data, size_t n,
                              uint64_t at) {
        const char *p = (const char *)data;

        while (n) {
                const ssize_t done = pwrite(fd, p, n, (off_t)at);

                if (done < 0 && errno == EINTR)
                        continue;
                if (done <= 0) {
                        errno = done ? errno : ENOSPC;
                        return RDMETA_ERR_IO;
                }
                p += done;
                at += (uint64_t)done;
                n -= (size_t)done;
        }
        return RDMETA_OK;
}

/* Writes the buffer to the file and adds it to the checksum. The buffer is
 * full, or its size is a multiple of the checksum's step. Returns IO. */
static rdmeta_err_t rdmeta_writer_flush(rdmeta_writer_t *s) {
        const rdmeta_err_t err = write_all(s->fd, s->room.buffer, s->used,
                                           s->at);

        rdmeta_checksum_add(&s->sum, s->room.buffer, s->used);
        s->at += s->used;
        s->used = 0;
        return err;
}

/* Appends n bytes of `p` to the file; `p` NULL: zeros. Returns IO. */
static rdmeta_err_t rdmeta_writer_put(rdmeta_writer_t *s, const void *p,
                                      size_t n) {
        const char *from = (const char *)p;
        rdmeta_err_t err = RDMETA_OK;

        while (n && !err) {
                const size_t room = BUFFER - s->used;
                const size_t m    = n < room ? n : room;

                if (from)
                        memcpy(s->room.buffer + s->used, from, m);
                else
                        memset(s->room.buffer + s->used, 0, m);
                from = from ? from + m : NULL;
                s->used += m;
                n -= m;
                if (s->used == BUFFER)
                        err = rdmeta_writer_flush(s);
        }
        return err;
}

/* Writes a section whose bytes are ready in memory. Returns IO. */
static rdmeta_err_t put_section(rdmeta_writer_t *s, int kind, const void *p,
                                size_t n) {
        static const char zeros[RDMETA_LINE];
        rdmeta_file_section_t *section = &s->head.sections[kind];
        const size_t pad               = (0 - n) % RDMETA_LINE;
        rdmeta_err_t err;

        section->kind     = (uint64_t)kind;
        section->offset   = s->at;
        section->length   = n;
        section->checksum = rdmeta_checksum(p, n);
        err               = write_all(s->fd, p, n, s->at);
        if (!err)
                err = write_all(s->fd, zeros, pad, s->at + n);
        s->at += n + pad;
        return err;
}

/* ---- tables ------------------------------------------------------------ */

uint64_t rdmeta_file_random(const void *address) {
        struct timespec ts;
        uint64_t seed;

        if (getrandom(&seed, sizeof(seed), GRND_NONBLOCK) ==
            (ssize_t)sizeof(seed))
                return seed;
        clock_gettime(CLOCK_MONOTONIC, &ts);
        return (uint64_t)ts.tv_nsec ^ (uint64_t)ts.tv_sec << 30 ^
               (uint64_t)(uintptr_t)address;
}

static void table_key(rdmeta_file_table_t *t, uint64_t *seed) {
        int i;

        for (i = 0; i < RDMETA_HASH_KEYS; i++)
                t->key[i] = rdmeta_seed_next(seed);
        t->longest = 0;
}

/* Returns the first slot from `k` on that is free; with `tags`, or that has the
 * same tag. Raises t->longest. */
static uint32_t table_probe(rdmeta_file_table_t *t, const uint64_t *slots,
                            uint64_t hash, uint32_t k, int tags) {
        const uint32_t first = rdmeta_slot_first(hash) & t->mask;

        while (slots[k] && !(tags && rdmeta_slot_tag_is(slots[k], hash)))
                k = (k + 1) & t->mask;
        if (((k - first) & t->mask) > t->longest)
                t->longest = (k - first) & t->mask;
        return k;
}

static uint64_t slot_make(uint64_t hash, uint64_t line) {
        return line << RDMETA_SLOT_TAG | (uint16_t)hash;
}

/* Returns the topic of a slot; NULL: the image returned an error. Lines ascend
 * in the order, so it searches by halves. */
static const rdmeta_topic_t *slot_topic(const rdmeta_writer_t *s,
                                        uint64_t slot) {
        const uint64_t line = slot >> RDMETA_SLOT_TAG;
        size_t lo = 0, hi = s->count;
        rdmeta_seen_t seen;

        while (hi - lo > 1) {
                const size_t mid = lo + (hi - lo) / 2;
                if (s->room.order[mid] <= line)
                        lo = mid;
                else
                        hi = mid;
        }
        if (s->image->ops->at(s->image, lo, &seen))
                return NULL;
        return seen.topic;
}

/* Puts a topic's id into the table. If two topics have the same id, the slot is
 * for the one that the image finds by it. */
static void rdmeta_writer_id(rdmeta_writer_t *s, const rdmeta_topic_t *t,
                             uint64_t line) {
        const uint8_t *id = rdmeta_cold(t)->id;
        uint64_t *slots   = s->room.ids, hash;
        const rdmeta_topic_t *other;
        rdmeta_seen_t seen;
        uint32_t k;

        if (!rdmeta_topic_has_id(t))
                return;
        hash = rdmeta_hash_id(s->ids.key, id);
        k    = rdmeta_slot_first(hash) & s->ids.mask;
        for (;; k = (k + 1) & s->ids.mask) {
                k = table_probe(&s->ids, slots, hash, k, 1);
                if (!slots[k])
                        break;
                other = slot_topic(s, slots[k]);
                if (!other || memcmp(rdmeta_cold(other)->id, id, 16) != 0)
                        continue;
                if (s->image->ops->find_id(s->image, id, &seen) ||
                    seen.topic != t)
                        return;
                break;
        }
        slots[k] = slot_make(hash, line);
}

/* Puts a topic's name, whose block begins at `line`, into the table. */
static void rdmeta_writer_name(rdmeta_writer_t *s, const rdmeta_topic_t *t,
                               uint64_t line) {
        const uint64_t hash = rdmeta_hash(s->names.key, t->name, t->name_len);
        const uint32_t k =
                table_probe(&s->names, s->room.names, hash,
                            rdmeta_slot_first(hash) & s->names.mask, 0);

        s->room.names[k] = slot_make(hash, line);
}

/* Fills the table of names again with another key while its longest probe is
 * too long: names may have been chosen so that they collide. */
static rdmeta_err_t names_again(rdmeta_writer_t *s, size_t n, uint64_t *seed) {
        rdmeta_err_t err = RDMETA_OK;
        rdmeta_seen_t seen;
        int tries;
        size_t i;

        for (tries = 1; tries < KEYS_MAX && !err; tries++) {
                if (s->names.longest <= RDMETA_PROBE_MAX_NAMES)
                        break;
                table_key(&s->names, seed);
                memset(s->room.names, 0, 8 * ((size_t)s->names.mask + 1));
                for (i = 0; i < n && !err; i++) {
                        err = s->image->ops->at(s->image, i, &seen);
                        if (!err)
                                rdmeta_writer_name(s, seen.topic,
                                                   s->room.order[i]);
                }
        }
        return err;
}

/* ---- blocks -------------------------------------------------------------- */

/*
 * The writer writes the blocks section group by group, in the order of names.
 * Whole blocks and the hot lines of split ones come first, then the cold parts
 * of the split ones. See file.h.
 */

enum { GROUP = RDMETA_FILE_GROUP };

/* Some blocks, and their places in the file. */
typedef struct group {
        size_t n;
        rdmeta_seen_t seen[GROUP];
        uint64_t line[GROUP];    /* where the hot part begins */
        uint64_t columns[GROUP]; /* of split blocks: where columns begin */
        uint64_t end;            /* begins a line */
} group_t;

/* Writes zeros up to a place in the file. Returns IO. */
static rdmeta_err_t put_until(rdmeta_writer_t *s, uint64_t at) {
        return rdmeta_writer_put(s, NULL, (size_t)(at - s->at - s->used));
}

/* Reads a group's topics from the image, and prefetches their cold parts.
 * Neighbours in the order of names lie anywhere in memory, so the loads of a
 * whole group overlap. Returns what ops->at does. */
static rdmeta_err_t group_get(rdmeta_writer_t *s, group_t *g) {
        rdmeta_err_t err = RDMETA_OK;
        size_t i;

        for (i = 0; i < g->n && !err; i++) {
                err = s->image->ops->at(s->image, s->count + i, &g->seen[i]);
                if (!err)
                        __builtin_prefetch(rdmeta_cold(g->seen[i].topic));
        }
        return err;
}

static uint64_t up_to(uint64_t at, uint64_t unit) {
        return (at + unit - 1) & ~(unit - 1);
}

/* Sets the places of a group that begins at `at`: whole blocks and hot lines
 * first, then cold parts. */
static void group_place(group_t *g, uint64_t at) {
        const uint64_t header_size = RDMETA_TOPIC_HEADER_SIZE;
        size_t i;

        for (i = 0; i < g->n; i++) {
                const rdmeta_topic_t *t = g->seen[i].topic;
                const int split         = rdmeta_topic_is_split(t);
                const uint64_t begin    = up_to(split ? at : at + header_size,
                                                RDMETA_LINE);

                g->line[i] = begin / RDMETA_LINE;
                at = split ? begin + RDMETA_LINE
                           : begin - header_size + rdmeta_cold(t)->size;
        }
        for (i = 0; i < g->n; i++) {
                const rdmeta_topic_t *t = g->seen[i].topic;

                if (!rdmeta_topic_is_split(t))
                        continue;
                g->columns[i] = up_to(at + header_size, 8);
                at = g->columns[i] - header_size + rdmeta_cold(t)->size;
        }
        g->end = up_to(at, RDMETA_LINE);
}

/* Writes the header of a cold part. The cache's writer may change `link` and
 * `provenance` meanwhile, so `link` is 0 and `provenance` comes from `seen`.
 * Returns IO. */
static rdmeta_err_t put_cold(rdmeta_writer_t *s, const rdmeta_seen_t *seen) {
        const rdmeta_cold_t *from      = rdmeta_cold(seen->topic);
        rdmeta_provenance_t provenance = seen->provenance;
        rdmeta_cold_t cold;

        provenance.reason = (uint16_t)rdmeta_file_reason_number(
                &s->reasons, s->image, provenance.reason);
        provenance.error  = rdmeta_topic_error(seen->topic);
        memset(&cold, 0, sizeof(cold));
        cold.flags   = from->flags;
        cold.version = from->version;
        memcpy(cold.id, from->id, sizeof(cold.id));
        cold.size       = from->size;
        cold.provenance = rdmeta_provenance_word(provenance);
        return rdmeta_writer_put(s, &cold, sizeof(cold));
}

static rdmeta_err_t put_columns(rdmeta_writer_t *s, const rdmeta_topic_t *t) {
        return rdmeta_writer_put(s, rdmeta_topic_columns(t),
                                 rdmeta_topic_rest(t));
}

static rdmeta_err_t put_hot(rdmeta_writer_t *s, const rdmeta_seen_t *seen,
                            int64_t taken_us) {
        const rdmeta_topic_t *t = seen->topic;
        const size_t from       = offsetof(rdmeta_topic_t, count);
        const int64_t deadline  = rdmeta_file_minus(seen->deadline, taken_us);
        rdmeta_err_t err;

        err = rdmeta_writer_put(s, &deadline, sizeof(deadline));
        return err ? err
                   : rdmeta_writer_put(s, (const char *)t + from,
                                       rdmeta_topic_hot(t) - from);
}

static rdmeta_err_t put_split(rdmeta_writer_t *s, const group_t *g, size_t i,
                              int64_t taken_us) {
        const uint64_t begin      = g->line[i] * RDMETA_LINE;
        const int64_t cold_offset = (int64_t)(g->columns[i] - begin);
        rdmeta_err_t err          = put_until(s, begin);

        if (!err)
                err = put_hot(s, &g->seen[i], taken_us);
        if (!err)
                err = put_until(s, begin + RDMETA_SPLIT);
        return err ? err
                   : rdmeta_writer_put(s, &cold_offset,
                                       RDMETA_LINE - RDMETA_SPLIT);
}

static rdmeta_err_t put_whole(rdmeta_writer_t *s, const group_t *g, size_t i,
                              int64_t taken_us) {
        const uint64_t begin = g->line[i] * RDMETA_LINE;
        rdmeta_err_t err     = put_until(s, begin - RDMETA_TOPIC_HEADER_SIZE);

        if (!err)
                err = put_cold(s, &g->seen[i]);
        if (!err)
                err = put_hot(s, &g->seen[i], taken_us);
        return err ? err : put_columns(s, g->seen[i].topic);
}

static rdmeta_err_t put_colds(rdmeta_writer_t *s, const group_t *g) {
        rdmeta_err_t err = RDMETA_OK;
        size_t i;

        for (i = 0; i < g->n && !err; i++) {
                if (!rdmeta_topic_is_split(g->seen[i].topic))
                        continue;
                err = put_until(s, g->columns[i] - RDMETA_TOPIC_HEADER_SIZE);
                if (!err)
                        err = put_cold(s, &g->seen[i]);
                if (!err)
                        err = put_columns(s, g->seen[i].topic);
        }
        return err ? err : put_until(s, g->end);
}

/* Prefetches the slots of a group's names, before rdmeta_writer_name() needs
 * them. */
static void group_slots(rdmeta_writer_t *s, const group_t *g) {
        size_t i;

        for (i = 0; i < g->n; i++) {
                const rdmeta_topic_t *t = g->seen[i].topic;
                const uint64_t hash     = rdmeta_hash(s->names.key, t->name,
                                                      t->name_len);

                __builtin_prefetch(&s->room.names[rdmeta_slot_first(hash) &
                                                  s->names.mask], 1);
        }
}

static rdmeta_err_t put_group(rdmeta_writer_t *s, group_t *g,
                              int64_t taken_us) {
        rdmeta_err_t err = group_get(s, g);
        size_t i;

        if (err)
                return err;
        group_place(g, s->at + s->used);
        if (g->end / RDMETA_LINE > UINT32_MAX - 2) {
                errno = EFBIG;
                return RDMETA_ERR_IO;
        }
        group_slots(s, g);
        for (i = 0; i < g->n && !err; i++) {
                const rdmeta_topic_t *t = g->seen[i].topic;

                s->room.order[s->count++] = (uint32_t)g->line[i];
                rdmeta_writer_name(s, t, g->line[i]);
                rdmeta_writer_id(s, t, g->line[i]);
                err = rdmeta_topic_is_split(t) ? put_split(s, g, i, taken_us)
                                               : put_whole(s, g, i, taken_us);
        }
        return err ? err : put_colds(s, g);
}

/* Writes the section of the image's `n` blocks, and fills in the order and the
 * tables. */
static rdmeta_err_t rdmeta_writer_blocks(rdmeta_writer_t *s, size_t n,
                                         int64_t taken_us) {
        rdmeta_file_section_t *section = &s->head.sections[RDMETA_FILE_BLOCKS];
        rdmeta_err_t err               = RDMETA_OK;
        group_t g;

        section->kind   = RDMETA_FILE_BLOCKS;
        section->offset = s->at;
        rdmeta_checksum_init(&s->sum);
        while (s->count < n && !err) {
                g.n = n - s->count < GROUP ? n - s->count : GROUP;
                err = put_group(s, &g, taken_us);
        }
        if (!err) /* the last line, where no block begins */
                err = rdmeta_writer_put(s, NULL, RDMETA_LINE);
        if (!err)
                err = rdmeta_writer_flush(s);
        section->length   = s->at - section->offset;
        section->checksum = rdmeta_checksum_end(&s->sum, NULL, 0);
        return err;
}

/* ---- brokers, reasons --------------------------------------------------- */

static rdmeta_err_t put_brokers(rdmeta_writer_t *s) {
        const rdmeta_brokers_t *b = s->image->brokers;
        const size_t size         = rdmeta_file_brokers_fill(b, NULL);
        uint8_t *p = (uint8_t *)s->image->ops->alloc(s->image, size);
        rdmeta_err_t err;

        if (!p)
                return RDMETA_ERR_NO_MEMORY;
        rdmeta_file_brokers_fill(b, p);
        err = put_section(s, RDMETA_FILE_BROKERS, p, size);
        s->image->ops->free(s->image, p, size);
        return err;
}

static rdmeta_err_t put_reasons(rdmeta_writer_t *s) {
        const size_t size = s->reasons.size;
        rdmeta_err_t err;
        char *p;

        if (!size)
                return put_section(s, RDMETA_FILE_REASONS, "", 0);
        p = (char *)s->image->ops->alloc(s->image, size);
        if (!p)
                return RDMETA_ERR_NO_MEMORY;
        rdmeta_file_reasons_fill(&s->reasons, s->image, p);
        err = put_section(s, RDMETA_FILE_REASONS, p, size);
        s->image->ops->free(s->image, p, size);
        return err;
}

/* ---- the file ----------------------------------------------------------- */

static rdmeta_err_t make_room(rdmeta_writer_t *s, size_t n) {
        size_t names = 16, ids = 16;
        rdmeta_writer_room_t *room = &s->room;

        while (rdmeta_table_limit(names, 0) < n)
                names *= 2;
        while (rdmeta_table_limit(ids, 1) < n)
                ids *= 2;
        if (names > UINT32_MAX / 2)
                return RDMETA_ERR_NO_MEMORY;
        room->size   = BUFFER + 8 * names + 8 * ids + 4 * n;
        room->buffer = (char *)s->image->ops->alloc(s->image, room->size);
        if (!room->buffer)
                return RDMETA_ERR_NO_MEMORY;
        room->names = (uint64_t *)(void *)(room->buffer + BUFFER);
        room->ids   = room->names + names;
        room->order = (uint32_t *)(void *)(room->ids + ids);
        memset(room->names, 0, 8 * (names + ids));
        s->names.mask = (uint32_t)names - 1;
        s->ids.mask   = (uint32_t)ids - 1;
        return RDMETA_OK;
}

static void fill_head(rdmeta_writer_t *s, const rdmeta_image_info_t *info,
                      size_t n) {
        rdmeta_file_head_t *h = &s->head;

        memcpy(h->magic, RDMETA_FILE_MAGIC, sizeof(h->magic));
        h->byte_order         = RDMETA_FILE_BYTE_ORDER;
        h->format             = RDMETA_FILE_FORMAT;
        h->size               = s->at;
        h->version            = info->version;
        h->brokers_version    = s->image->brokers->version;
        h->taken_mono_us      = info->said_mono_us;
        h->taken_wall_us      = info->taken_wall_us;
        h->max_age_us         = info->max_age_us;
        h->shared_deadline_us = rdmeta_file_minus(info->shared_deadline_us,
                                                  info->taken_mono_us);
        h->topics             = info->topics;
        h->partitions         = info->partitions;
        h->negatives          = info->negatives;
        h->erased             = info->erased;
        h->blocks             = n;
        h->reasons            = s->reasons.count;
        h->names_longest      = s->names.longest;
        h->ids_longest        = s->ids.longest;
        memcpy(h->session, info->session, sizeof(h->session));
        memcpy(h->names_key, s->names.key, sizeof(h->names_key));
        memcpy(h->ids_key, s->ids.key, sizeof(h->ids_key));
        h->checksum = rdmeta_file_head_checksum(h);
}

static rdmeta_err_t put_sections(rdmeta_writer_t *s, size_t n,
                                 int64_t taken_us) {
        uint64_t seed = rdmeta_file_random(s->room.buffer);
        rdmeta_err_t err;

        table_key(&s->names, &seed);
        table_key(&s->ids, &seed);
        s->at = sizeof(s->head);
        err   = rdmeta_writer_blocks(s, n, taken_us);
        if (!err)
                err = names_again(s, n, &seed);
        if (!err)
                err = put_brokers(s);
        if (!err)
                err = put_section(s, RDMETA_FILE_ORDER, s->room.order, 4 * n);
        if (!err)
                err = put_section(s, RDMETA_FILE_NAMES, s->room.names,
                                  8 * ((size_t)s->names.mask + 1));
        if (!err)
                err = put_section(s, RDMETA_FILE_IDS, s->room.ids,
                                  8 * ((size_t)s->ids.mask + 1));
        if (!err)
                err = put_reasons(s);
        return err;
}

rdmeta_err_t rdmeta_file_write(rdmeta_image_t *image, int fd) {
        rdmeta_image_info_t info;
        rdmeta_err_t err;
        rdmeta_writer_t s;
        size_t n;

        memset(&s, 0, sizeof(s));
        s.image = image;
        s.fd    = fd;
        rdmeta_image_info(image, &info);
        err = image->ops->order(image, &n);
        if (!err)
                err = make_room(&s, n);
        if (!err)
                err = put_sections(&s, n, info.taken_mono_us);
        if (!err) {
                fill_head(&s, &info, n);
                err = write_all(fd, &s.head, sizeof(s.head), 0);
        }
        image->ops->free(image, s.room.buffer, s.room.size);
        return err;
}

/*
 * The blocks section: a group of blocks at a time, in the order of names. What
 * is whole, and the lines of what is split, come first; then what belongs to
 * the lines. See file.h.
 */
#include "image/file_write_state.h"

#include <errno.h>

enum { GROUP = RDMETA_FILE_GROUP };

/* Some blocks on their way, and where they go in the file. */
typedef struct group {
        size_t n;
        rdmeta_seen_t seen[GROUP];
        uint64_t line[GROUP];
        uint64_t columns[GROUP]; /* of those that are split */
        uint64_t end;            /* a line's begin */
} group_t;

/* Zeros, up to a place in the file. */
static rdmeta_err_t put_until(rdmeta_writer_t *s, uint64_t at) {
        return rdmeta_writer_put(s, NULL, (size_t)(at - s->at - s->used));
}

/* Blocks in the order of names lie anywhere in memory: one part after the
 * other is looked for, of all at once. */
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

/* What is whole, or a line, from `at` on, a line's begin; then the rest. */
static void group_place(group_t *g, uint64_t at) {
        const uint64_t lead = RDMETA_TOPIC_LEAD;
        size_t i;

        for (i = 0; i < g->n; i++) {
                const rdmeta_topic_t *t = g->seen[i].topic;
                const int split         = rdmeta_topic_is_split(t);
                const uint64_t begin    = up_to(split ? at : at + lead,
                                                RDMETA_LINE);

                g->line[i] = begin / RDMETA_LINE;
                at = split ? begin + RDMETA_LINE
                           : begin - lead + rdmeta_cold(t)->size;
        }
        for (i = 0; i < g->n; i++) {
                const rdmeta_topic_t *t = g->seen[i].topic;

                if (!rdmeta_topic_is_split(t))
                        continue;
                g->columns[i] = up_to(at + lead, 8);
                at            = g->columns[i] - lead + rdmeta_cold(t)->size;
        }
        g->end = up_to(at, RDMETA_LINE);
}

/* The words that a writer moves are read as readers do. */
static rdmeta_err_t put_cold(rdmeta_writer_t *s, const rdmeta_seen_t *seen) {
        const rdmeta_cold_t *from = rdmeta_cold(seen->topic);
        rdmeta_said_t said        = seen->said;
        rdmeta_cold_t cold;

        said.reason = (uint16_t)rdmeta_file_reason_number(
                &s->reasons, s->image, said.reason);
        said.error  = rdmeta_topic_error(seen->topic);
        memset(&cold, 0, sizeof(cold));
        cold.flags   = from->flags;
        cold.version = from->version;
        memcpy(cold.id, from->id, sizeof(cold.id));
        cold.size = from->size;
        cold.said = rdmeta_said_word(said);
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
        const uint64_t begin = g->line[i] * RDMETA_LINE;
        const int64_t far    = (int64_t)(g->columns[i] - begin);
        rdmeta_err_t err     = put_until(s, begin);

        if (!err)
                err = put_hot(s, &g->seen[i], taken_us);
        if (!err)
                err = put_until(s, begin + RDMETA_SPLIT);
        return err ? err
                   : rdmeta_writer_put(s, &far, RDMETA_LINE - RDMETA_SPLIT);
}

static rdmeta_err_t put_whole(rdmeta_writer_t *s, const group_t *g, size_t i,
                              int64_t taken_us) {
        const uint64_t begin = g->line[i] * RDMETA_LINE;
        rdmeta_err_t err     = put_until(s, begin - RDMETA_TOPIC_LEAD);

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
                err = put_until(s, g->columns[i] - RDMETA_TOPIC_LEAD);
                if (!err)
                        err = put_cold(s, &g->seen[i]);
                if (!err)
                        err = put_columns(s, g->seen[i].topic);
        }
        return err ? err : put_until(s, g->end);
}

/* And the slots of their names are looked for, before somebody waits. */
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

rdmeta_err_t rdmeta_writer_blocks(rdmeta_writer_t *s, size_t n,
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
        if (!err) /* nobody's last line */
                err = rdmeta_writer_put(s, NULL, RDMETA_LINE);
        if (!err)
                err = rdmeta_writer_flush(s);
        section->length   = s->at - section->offset;
        section->checksum = rdmeta_checksum_end(&s->sum, NULL, 0);
        return err;
}

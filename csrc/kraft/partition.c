#include "kraft/partition.h"

/* Reads a list of `width` bytes per element. A null one has be NULL. */
static void list_read(rdmeta_buf_t *b, size_t width, rdmeta_wire_ids_t *out) {
        int null = 0;

        out->count = rdmeta_buf_count(b, 1, width, &null);
        out->be    = null || b->bad ? NULL : b->p;
        b->p += width * out->count;
}

/* Reads the one field of a tag. */
static void tag_read(rdmeta_buf_t *b, int which, int leader, int recovery,
                     rdmeta_kraft_partition_record_t *out) {
        if (leader)
                out->leader = rdmeta_buf_i32(b);
        else if (recovery)
                out->recovery = rdmeta_buf_i8(b);
        else
                list_read(b, which == RDMETA_KRAFT_DIRECTORIES ? 16 : 4,
                          &out->lists[which]);
}

/* Reads the tagged fields. `tags` has the list of each tag, `count` of them;
 * NONE: a version's tag that is not known. */
enum { NONE = -1, LEADER = -2, RECOVERY = -3 };

static void tags_read(rdmeta_buf_t *b, const int8_t *tags, uint32_t count,
                      rdmeta_kraft_partition_record_t *out) {
        uint32_t left = rdmeta_buf_uvar(b);
        rdmeta_buf_t inner;

        for (; left && !b->bad; left--) {
                const uint32_t tag = rdmeta_buf_uvar(b);
                const uint32_t n   = rdmeta_buf_uvar(b);
                const uint8_t *p   = rdmeta_buf_bytes(b, n);

                if (!p || tag >= count || tags[tag] == NONE)
                        continue;
                rdmeta_buf_init(&inner, p, n);
                tag_read(&inner, tags[tag], tags[tag] == LEADER,
                         tags[tag] == RECOVERY, out);
                if (inner.bad || inner.p != inner.end)
                        rdmeta_buf_fail(b);
        }
}

static void whole_read(rdmeta_buf_t *b, int32_t version,
                       rdmeta_kraft_partition_record_t *out) {
        static const int8_t tags[] = {RECOVERY, RDMETA_KRAFT_ELR,
                                      RDMETA_KRAFT_LAST_ELR};
        static const uint8_t none[1];
        int i;

        for (i = 0; i <= RDMETA_KRAFT_ADDING; i++) {
                list_read(b, 4, &out->lists[i]);
                if (!out->lists[i].be)
                        rdmeta_buf_fail(b); /* null, which it may not be */
        }
        out->leader          = rdmeta_buf_i32(b);
        out->leader_epoch    = rdmeta_buf_i32(b);
        out->partition_epoch = rdmeta_buf_i32(b);
        out->recovery        = 0;
        if (version >= 1) {
                list_read(b, 16, &out->lists[RDMETA_KRAFT_DIRECTORIES]);
                if (!out->lists[RDMETA_KRAFT_DIRECTORIES].be)
                        rdmeta_buf_fail(b);
        }
        tags_read(b, tags, version >= 2 ? 3 : 1, out);
        for (i = 0; i < RDMETA_KRAFT_LISTS; i++)
                if (!out->lists[i].be)
                        out->lists[i].be = none;
}

static void change_read(rdmeta_buf_t *b, int32_t version,
                        rdmeta_kraft_partition_record_t *out) {
        static const int8_t tags[3][9] = {
                {RDMETA_KRAFT_ISR, LEADER, RDMETA_KRAFT_REPLICAS,
                 RDMETA_KRAFT_REMOVING, RDMETA_KRAFT_ADDING, RECOVERY, NONE,
                 NONE, NONE},
                {RDMETA_KRAFT_ISR, LEADER, RDMETA_KRAFT_REPLICAS,
                 RDMETA_KRAFT_REMOVING, RDMETA_KRAFT_ADDING, RECOVERY, NONE,
                 NONE, RDMETA_KRAFT_DIRECTORIES},
                {RDMETA_KRAFT_ISR, LEADER, RDMETA_KRAFT_REPLICAS,
                 RDMETA_KRAFT_REMOVING, RDMETA_KRAFT_ADDING, RECOVERY,
                 RDMETA_KRAFT_ELR, RDMETA_KRAFT_LAST_ELR,
                 RDMETA_KRAFT_DIRECTORIES}};

        out->leader   = RDMETA_KRAFT_SAME_LEADER;
        out->recovery = -1;
        tags_read(b, tags[version], 9, out);
}

int rdmeta_kraft_partition_read(const rdmeta_kraft_record_t *record,
                                rdmeta_kraft_partition_record_t *out) {
        rdmeta_buf_t b = rdmeta_kraft_record_body(record);

        memset(out, 0, sizeof(*out));
        out->id       = rdmeta_buf_i32(&b);
        out->topic_id = rdmeta_buf_bytes(&b, 16);
        if (record->type == RDMETA_KRAFT_PARTITION)
                whole_read(&b, record->version, out);
        else
                change_read(&b, record->version, out);
        return !b.bad && b.p == b.end;
}

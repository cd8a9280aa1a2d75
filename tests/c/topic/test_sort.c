#include "topic/sort.h"

#include "support/testing.h"

enum { NAMES = 600, LONGEST = 60 };

static int naive(const void *a, const void *b) {
        const rdmeta_topic_t *x = *(const rdmeta_topic_t *const *)a;
        const rdmeta_topic_t *y = *(const rdmeta_topic_t *const *)b;
        size_t i;

        for (i = 0; i < x->name_len && i < y->name_len; i++)
                if (x->name[i] != y->name[i])
                        return (uint8_t)x->name[i] < (uint8_t)y->name[i] ? -1
                                                                         : 1;
        return x->name_len < y->name_len ? -1 : x->name_len > y->name_len;
}

/* The names have few different bytes and many common beginnings, also zeros and
 * bytes above 127. */
static size_t name_make(test_rng_t *rng, char *out) {
        static const char *const stems[] = {"", "a", "team-001.", "team-001.x",
                                            "a-stem-of-more-than-eight-bytes."};
        static const char bytes[] = {'a', 'b', 0, (char)0xff, '-'};
        const char *stem          = stems[test_below(rng, 5)];
        size_t n                  = strlen(stem), more = test_below(rng, 12);

        memcpy(out, stem, n);
        while (more--)
                out[n++] = bytes[test_below(rng, 5)];
        if (!n)
                out[n++] = 'z';
        return n;
}

static size_t names_make(test_rng_t *rng, rdmeta_memory_t *blocks,
                         rdmeta_topic_t **topics, size_t wanted) {
        static const uint8_t id[16];
        char name[LONGEST];
        size_t n = 0, k, tries;

        for (tries = 0; tries < wanted; tries++) {
                const rdmeta_str_t s = {name, name_make(rng, name)};

                for (k = 0; k < n; k++)
                        if (topics[k]->name_len == s.len &&
                            !memcmp(topics[k]->name, name, s.len))
                                break;
                if (k < n)
                        continue;
                topics[n] = rdmeta_topic_bare(blocks, s, id, 0, 0, 1);
                CHECK(topics[n]);
                n++;
        }
        return n;
}

TEST(test_names_come_in_the_order_of_their_bytes) {
        static rdmeta_sort_item_t items[NAMES];
        static rdmeta_topic_t *topics[NAMES];
        test_rng_t rng = test_rng(1);
        int again;

        for (again = 0; again < 200; again++) {
                rdmeta_memory_t blocks;
                size_t n, i;

                rdmeta_memory_init(&blocks, NULL, RDMETA_TOPIC_HEADER_SIZE);
                n = names_make(&rng, &blocks, topics,
                               test_below(&rng, NAMES + 1));
                for (i = 0; i < n; i++) {
                        items[i].topic = topics[i];
                        items[i].with  = (uint64_t)(uintptr_t)topics[i] ^ 7;
                }
                rdmeta_sort_topics(items, n);
                qsort(topics, n, sizeof(topics[0]), naive);
                for (i = 0; i < n; i++) {
                        CHECK(items[i].topic == topics[i]);
                        CHECK(items[i].with ==
                              ((uint64_t)(uintptr_t)topics[i] ^ 7));
                        rdmeta_topic_destroy(&blocks, topics[i]);
                }
                rdmeta_memory_destroy(&blocks);
        }
}

TEST_MAIN()

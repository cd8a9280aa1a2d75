#include "topic/sort.h"

#include <stdlib.h>

/* A loop prefetches the topic that it needs FETCH rounds later. */
enum { SORT_FEW = 8, SORT_LEVELS = 8, KEYS_FEW = 24, FETCH = 16 };

int rdmeta_names_compare(const char *a, size_t n, const char *b, size_t m) {
        const int res = memcmp(a, b, n < m ? n : m);

        return res ? res : n < m ? -1 : n > m;
}

int rdmeta_topics_compare(const rdmeta_topic_t *a, const rdmeta_topic_t *b) {
        return rdmeta_names_compare(a->name, a->name_len, b->name,
                                    b->name_len);
}

static int compare_items(const void *a, const void *b) {
        return rdmeta_topics_compare(((const rdmeta_sort_item_t *)a)->topic,
                                     ((const rdmeta_sort_item_t *)b)->topic);
}

static void sort_few_keys(rdmeta_sort_item_t *v, size_t n) {
        size_t i, k;

        for (i = 1; i < n; i++) {
                const rdmeta_sort_item_t item = v[i];

                for (k = i; k && v[k - 1].key > item.key; k--)
                        v[k] = v[k - 1];
                v[k] = item;
        }
}

/* Sorts by the first byte in which keys differ, in place (an American flag
 * sort), and then each byte value's items by the following bytes. No order of
 * the input makes it slow. */
static void sort_keys(rdmeta_sort_item_t *v, size_t n) {
        size_t ends[256] = {0}, at[256], i, sum = 0, b;
        uint64_t differ  = 0;
        unsigned shift;

        if (n <= KEYS_FEW) {
                sort_few_keys(v, n);
                return;
        }
        for (i = 1; i < n; i++)
                differ |= v[i].key ^ v[0].key;
        if (!differ)
                return;
        shift = (63 - (unsigned)__builtin_clzll(differ)) & ~7u;
        for (i = 0; i < n; i++)
                ends[v[i].key >> shift & 255]++;
        for (b = 0; b < 256; b++) {
                at[b] = sum;
                sum += ends[b];
                ends[b] = sum;
        }
        for (b = 0; b < 256; b++)
                while (at[b] < ends[b]) {
                        const rdmeta_sort_item_t item = v[at[b]];
                        const size_t to = item.key >> shift & 255;

                        v[at[b]]    = v[at[to]];
                        v[at[to]++] = item;
                }
        for (b = i = 0; b < 256 && shift; i = ends[b++])
                sort_keys(v + i, ends[b] - i);
}

/* Returns how many first bytes all names have in common. The first `depth` ones
 * are known to be. */
static size_t common_prefix(const rdmeta_sort_item_t *v, size_t n,
                            size_t depth) {
        const rdmeta_topic_t *first = v[0].topic;
        size_t len                  = first->name_len, i, k;

        for (i = 1; i < n && len > depth; i++) {
                const rdmeta_topic_t *t = v[i].topic;
                __builtin_prefetch(v[i + FETCH < n ? i + FETCH : i].topic);
                if (t->name_len < len)
                        len = t->name_len;
                for (k = depth; k + 8 <= len; k += 8)
                        if (rdmeta_load64(first->name + k) !=
                            rdmeta_load64(t->name + k))
                                break;
                while (k < len && first->name[k] == t->name[k])
                        k++;
                len = k;
        }
        return len;
}

/* Returns the eight bytes at `depth` as a number, with zeros after the end. */
static uint64_t key_at(const rdmeta_topic_t *t, size_t depth) {
        uint8_t tail[8] = {0};

        if (t->name_len >= depth + 8)
                return rdmeta_be64(t->name + depth);
        if (t->name_len > depth)
                memcpy(tail, t->name + depth, t->name_len - depth);
        return rdmeta_be64(tail);
}

static void sort_names(rdmeta_sort_item_t *v, size_t n, size_t depth,
                       int level) {
        size_t i, begin;

        if (n <= SORT_FEW || level == SORT_LEVELS) {
                if (n > 1)
                        qsort(v, n, sizeof(*v), compare_items);
                return;
        }
        depth = common_prefix(v, n, depth);
        for (i = 0; i < n; i++) {
                __builtin_prefetch(v[i + FETCH < n ? i + FETCH : i].topic);
                v[i].key = key_at(v[i].topic, depth);
        }
        sort_keys(v, n);
        for (begin = 0, i = 1; i <= n; i++)
                if (i == n || v[i].key != v[begin].key) {
                        sort_names(v + begin, i - begin, depth, level + 1);
                        begin = i;
                }
}

void rdmeta_sort_topics(rdmeta_sort_item_t *items, size_t n) {
        sort_names(items, n, 0, 0);
}

/*
 * fresh TOPICS IDS SEED: measures one fill of one cache, in a process that has
 * done nothing else. IDS is 8, 16 or 32, the bits that broker ids need.
 *
 * The response and its model are in pages that never were on the heap, and the
 * model's pages are freed before anything is measured. So resident memory grows
 * by the cache alone: its blocks, indexes, order, deadline lists, and whatever
 * the allocator keeps.
 *
 *     first_ns     the fill, with all page faults
 *     memcpy_ns    a copy of the response's bytes to pages not touched before
 *     rss_*        bytes after the fill; after a walk, which builds what is
 *                  missing of the ordered index; after the same response
 *                  again; the most while filling (0: the kernel has no figure)
 *     own_*        bytes by the cache's own count at the same moments
 */
#include "common.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static size_t read_file(const char *path, char *out, size_t room) {
        int fd    = open(path, O_RDONLY);
        ssize_t n = fd < 0 ? -1 : read(fd, out, room - 1);

        if (fd >= 0)
                close(fd);
        out[n > 0 ? n : 0] = '\0';
        return n > 0 ? (size_t)n : 0;
}

static int kib_after(const char *path, const char *label, double *bytes) {
        char text[4096];
        const char *line;
        unsigned long kib;

        read_file(path, text, sizeof(text));
        line = strstr(text, label);
        if (!line || sscanf(line + strlen(label), "%lu", &kib) != 1)
                return 0;
        *bytes = (double)kib * 1024;
        return 1;
}

/* Returns the resident bytes. smaps_rollup counts pages, but statm adds up
 * counters that lag by some hundreds of KiB. Uses read(2), as stdio would put a
 * buffer on the heap. */
static double resident(void) {
        unsigned long size, pages;
        char text[128];
        double bytes;

        if (kib_after("/proc/self/smaps_rollup", "Rss:", &bytes))
                return bytes;
        read_file("/proc/self/statm", text, sizeof(text));
        if (sscanf(text, "%lu %lu", &size, &pages) != 2)
                bench_die("/proc/self/statm cannot be read");
        return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

static int reset_peak(void) {
        int fd = open("/proc/self/clear_refs", O_WRONLY);
        int ok = fd >= 0 && write(fd, "5", 1) == 1;

        if (fd >= 0)
                close(fd);
        return ok;
}

static double own(rdmeta_cache_t *cache) {
        rdmeta_stats_t stats;

        rdmeta_cache_stats(cache, &stats);
        return (double)stats.bytes;
}

static double first_copy(const uint8_t *response, size_t len) {
        uint8_t *copy = gen_pages_untouched(len);
        double begin  = bench_now_ns(), end;

        memcpy(copy, response, len);
        end = bench_now_ns();
        if (copy[len / 2] != response[len / 2])
                bench_die("memcpy copied nothing");
        gen_pages_free(copy, len);
        return end - begin;
}

int main(int argc, char **argv) {
        double before, first, filled, walked, again, most, own_filled;
        double own_walked, own_again;
        rdmeta_applied_t applied;
        rdmeta_cache_t *cache;
        uint8_t *response;
        uint32_t topics;
        int has_peak;
        size_t len;
        gen_t g;

        if (argc != 4)
                bench_die("fresh TOPICS IDS SEED");
        bench_start();
        topics = (uint32_t)bench_number(argv[1], 1, 5000000);
        g      = bench_cluster(topics, bench_ids(argv[2]),
                               (uint64_t)bench_number(argv[3], 0, INT32_MAX));
        response = gen_pages(gen_response_bound(&g));
        len      = gen_response(&g, NULL, response);
        gen_free(&g);
        has_peak = reset_peak();
        before   = resident();

        cache  = bench_cache();
        first  = bench_apply(cache, response, len, topics, &applied);
        if (!has_peak || !kib_after("/proc/self/status", "VmHWM:", &most))
                most = before;
        filled = resident() - before;
        own_filled = own(cache);
        bench_walk(cache, topics);
        walked     = resident() - before;
        own_walked = own(cache);
        bench_apply(cache, response, len, topics, &applied);
        again     = resident() - before;
        own_again = own(cache);

        bench_print_begin("fresh");
        bench_print_number("topics", topics);
        bench_print_number("partitions", (double)topics * BENCH_PER_TOPIC);
        bench_print_number("bytes", (double)len);
        bench_print_number("first_ns", first);
        bench_print_number("memcpy_ns", first_copy(response, len));
        bench_print_number("rss_peak", most - before);
        bench_print_number("rss_filled", filled);
        bench_print_number("rss_walked", walked);
        bench_print_number("rss_again", again);
        bench_print_number("own_filled", own_filled);
        bench_print_number("own_walked", own_walked);
        bench_print_number("own_again", own_again);
        bench_print_end();
        rdmeta_cache_unref(cache);
        return 0;
}

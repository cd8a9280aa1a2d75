/* tsan */
/*
 * The child of a fork in the middle of a write: what only writers look at is
 * torn there, and to show that nobody looks at it, it is overwritten.
 */
#include "support/image_fixture.h"

#include <pthread.h>
#include <sys/wait.h>

typedef struct born {
        cw_t w;
        rdmeta_image_t *image;   /* taken before all that was said last */
        rdmeta_handle_t *handle; /* of "orders" */
        char *text, *image_text; /* what is read of the cache, of the image */
        rdmeta_stats_t stats;
} born_t;

static void born_init(born_t *b) {
        memset(b, 0, sizeof(*b));
        cw_init(&b->w, NULL);
        iw_fill(&b->w);
        CHECK(!cw_say(&b->w, "orders 0:1@5 1:2@7; away!3"));
        b->image = iw_image(&b->w);
        CHECK(!cw_say(&b->w, "orders 0:3@6 1:2@7"));
        cw_hint(&b->w, "in.flight", 0);
        b->handle = rdmeta_resolve(b->w.cache, "orders", 6);
        CHECK(b->handle);
        b->text       = iw_reader_text(b->w.reader, b->w.now.mono_us);
        b->image_text = iw_text(b->image, b->w.now.mono_us);
        CHECK(b->text && b->image_text);
        b->stats = cw_stats(&b->w);
}

static void born_let_go(born_t *b) {
        rdmeta_image_unref(b->image);
        rdmeta_handle_release(b->handle);
        free(b->text);
        free(b->image_text);
}

#define SCRAMBLE(what) memset(&(what), 0x5a, sizeof(what))

static void scramble_pages(rdmeta_slot_page_pool_t *pool) {
        SCRAMBLE(pool->free);
        SCRAMBLE(pool->n_free);
}

/* Its unit is what it was made with. */
static void scramble_slab(rdmeta_slab_t *slab) {
        const unsigned shift = slab->shift;

        SCRAMBLE(*slab);
        slab->shift = shift;
}

/* The places in lists of who was there. */
static void scramble_nodes(born_t *b) {
        rdmeta_live_image_t *h = (rdmeta_live_image_t *)(void *)b->image;

        SCRAMBLE(h->epoch_image);
        SCRAMBLE(h->names->node);
        SCRAMBLE(h->ids->node);
        SCRAMBLE(b->handle->node);
        SCRAMBLE(b->w.reader->reading.node);
        SCRAMBLE(b->w.stale->reading.node);
}

/* All but what readers see, the lock, and where memory comes from. */
static void scramble(born_t *b) {
        rdmeta_cache_t *c         = b->w.cache;
        rdmeta_table_t *tables[2] = {rdmeta_names(c), rdmeta_ids(c)};
        int i;

        scramble_nodes(b);
        for (i = 0; i < 2; i++) {
                SCRAMBLE(tables[i]->pins);
                SCRAMBLE(tables[i]->used);
                SCRAMBLE(tables[i]->tombstones);
        }
        scramble_pages(&c->live_images.names);
        scramble_pages(&c->live_images.ids);
        SCRAMBLE(c->wait.waiters);
        SCRAMBLE(c->wait.watches);
        SCRAMBLE(c->wait.due);
        SCRAMBLE(c->reclaim);
        scramble_slab(&c->entry_slab);
        for (i = 0; i < RDMETA_MEMORY_SLABS; i++)
                scramble_slab(&c->blocks.slabs[i]);
        SCRAMBLE(c->changelog);
        SCRAMBLE(c->order);
        SCRAMBLE(c->deadlines);
        SCRAMBLE(c->tree);
        SCRAMBLE(c->handles);
        SCRAMBLE(c->rewinds);
        SCRAMBLE(c->reasons.key);
        SCRAMBLE(c->reasons.count);
        SCRAMBLE(c->builder);
        SCRAMBLE(c->stats);
}

/* In the child of a fork, the lock being held by a thread that is not there. */
static void in_a_torn_child(void (*act)(born_t *b)) {
        int status;
        born_t b;
        pid_t pid;

        born_init(&b);
        rdmeta_notify_lock(&b.w.cache->wait);
        pid = fork();
        CHECK(pid >= 0);
        if (pid == 0) {
                alarm(40);
                scramble(&b);
                act(&b);
                _exit(7);
        }
        rdmeta_notify_unlock(&b.w.cache->wait);
        CHECK(waitpid(pid, &status, 0) == pid);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
        cw_check(&b.w);
        born_let_go(&b);
        cw_destroy(&b.w);
}

static void reads_the_same(rdmeta_reader_t *r, int64_t mono_us,
                           const char *wanted) {
        char *text;

        CHECK(r);
        text = iw_reader_text(r, mono_us);
        CHECK(text);
        CHECK_TEXT(text, wanted);
        free(text);
}

/* ---- all that reads ---------------------------------------------------- */

static void read_by_readers(born_t *b) {
        const int64_t mono_us = b->w.now.mono_us;
        rdmeta_reader_t *r;

        reads_the_same(b->w.reader, mono_us, b->text);
        r = rdmeta_reader_new(b->w.cache, 0);
        reads_the_same(r, mono_us, b->text);
        CHECK(rdmeta_leader(r, "orders", 6, 0, mono_us) == 3);
        CHECK(rdmeta_leader(r, "in.flight", 9, 0, mono_us) ==
              RDMETA_WAITING);
        rdmeta_reader_destroy(r);
        r = rdmeta_reader_new(b->w.cache, RDMETA_ALLOW_STALE);
        CHECK(r && rdmeta_leader(r, "orders", 6, 0, INT64_MAX) == 3);
        rdmeta_reader_destroy(r);
}

static void read_by_handles(born_t *b) {
        const int64_t mono_us = b->w.now.mono_us;
        rdmeta_reader_t *r    = rdmeta_reader_new(b->w.cache, 0);
        rdmeta_handle_t *h    = rdmeta_resolve(b->w.cache, "orders", 6);
        rdmeta_handle_t *none = rdmeta_resolve(b->w.cache, "nothing", 7);

        CHECK(r && h && none);
        CHECK(rdmeta_handle_leader(r, b->handle, 0, mono_us) == 3);
        CHECK(rdmeta_handle_leader(r, h, 0, mono_us) == 3);
        CHECK(rdmeta_handle_leader(r, h, 1, mono_us) == 2);
        CHECK(rdmeta_handle_leader(r, none, 0, mono_us) ==
              RDMETA_NOT_CACHED);
        rdmeta_reader_destroy(r);
        rdmeta_handle_release(rdmeta_handle_ref(h));
        rdmeta_handle_release(h);
        rdmeta_handle_release(none);
}

static int32_t count_change(void *opaque, const rdmeta_change_t *change) {
        CHECK(change->kind != RDMETA_RESYNC);
        ++*(int *)opaque;
        return 0;
}

/* One taken there says what readers do, and so does its file. */
static void read_by_images(born_t *b) {
        const rdmeta_time_t now = b->w.now;
        rdmeta_image_t *image   = rdmeta_cache_image(b->w.cache, now);
        const char *path        = iw_path("torn");
        rdmeta_image_info_t info;
        rdmeta_image_t *file;
        int changes = 0;

        CHECK(image);
        reads_the_same(rdmeta_image_reader(b->image, 0), now.mono_us,
                       b->image_text);
        rdmeta_image_info(image, &info);
        CHECK(info.topics == b->stats.topics && info.bytes);
        CHECK(info.partitions == b->stats.partitions);
        CHECK(info.version == b->stats.version);
        CHECK(!rdmeta_image_diff(b->image, image, count_change, &changes));
        CHECK(changes > 0);
        CHECK(!rdmeta_image_save(image, path, 0));
        file = iw_open(path, 0, now);
        CHECK(!rdmeta_image_verify(file));
        iw_same(file, image, now.mono_us);
        rdmeta_image_unref(file);
        rdmeta_image_unref(image);
}

static void read_stats(born_t *b) {
        rdmeta_stats_t stats;

        rdmeta_cache_stats(b->w.cache, &stats);
        CHECK(stats.topics == b->stats.topics);
        CHECK(stats.partitions == b->stats.partitions);
        CHECK(stats.version == b->stats.version);
        CHECK(stats.shared_deadline_us == b->stats.shared_deadline_us);
}

static void read_all(born_t *b) {
        const size_t blocks = b->w.heap.blocks, bytes = b->w.heap.bytes;

        read_by_readers(b);
        read_by_handles(b);
        read_stats(b);
        CHECK(b->w.heap.blocks == blocks && b->w.heap.bytes == bytes);
        read_by_images(b);
        CHECK(b->w.heap.blocks == blocks + 1); /* the reader of the old one */
}

static void test_all_that_reads_does_and_gives_back_what_it_took(void) {
        in_a_torn_child(read_all);
}

static void refused(born_t *b) {
        const rdmeta_str_t name = {"t", 1};
        rdmeta_cache_t *c       = b->w.cache;
        const rdmeta_time_t now = b->w.now;
        rdmeta_str_t ask;
        uint64_t until;
        int32_t resync;
        size_t n;

        CHECK(rdmeta_cache_apply(c, "", 0, 12, NULL, now, NULL) ==
              RDMETA_ERR_FORKED);
        CHECK(rdmeta_cache_apply_failure(c, NULL, now) == RDMETA_ERR_FORKED);
        CHECK(rdmeta_cache_hint(c, &name, 1, 0, 0, now, &ask, &n) ==
              RDMETA_ERR_FORKED);
        CHECK(rdmeta_cache_purge_hints(c, NULL, 0, now) ==
              RDMETA_ERR_FORKED);
        CHECK(rdmeta_cache_purge(c, now) == RDMETA_ERR_FORKED);
        CHECK(rdmeta_cache_sweep(c, now) == INT64_MAX);
        CHECK(!rdmeta_cache_changes(c, 0, NULL, NULL, &until, &resync));
        CHECK(until == b->stats.version && resync == 1);
        CHECK(!rdmeta_cache_changes(c, until, NULL, NULL, &until, &resync));
        CHECK(until == b->stats.version && resync == 0);
        CHECK(rdmeta_cache_wait(c, b->stats.version, NULL, 0, -1) == 0);
        CHECK(!rdmeta_watch_new(c, NULL, 0, NULL, NULL));
}

static void test_whoever_writes_or_waits_is_told(void) {
        in_a_torn_child(refused);
}

/* What of the cache is torn goes with the process. */
static void let_go(born_t *b) {
        const size_t bytes = b->w.heap.bytes;

        rdmeta_reader_destroy(b->w.reader);
        rdmeta_reader_destroy(b->w.stale);
        born_let_go(b);
        CHECK(b->w.heap.bytes < bytes);
        rdmeta_cache_unref(b->w.cache);
}

static void test_all_that_was_there_can_be_let_go(void) {
        in_a_torn_child(let_go);
}

/* ---- no memory, many threads, children of children ---------------------- */

static int32_t go_on(void *opaque, const rdmeta_topic_t *t) {
        (void)opaque;
        (void)t;
        return 0;
}

static void without_memory(born_t *b) {
        rdmeta_cache_t *c   = b->w.cache;
        test_heap_t *heap   = &b->w.heap;
        const size_t blocks = heap->blocks;
        rdmeta_image_t *image;
        rdmeta_reader_t *r;
        rdmeta_handle_t *h;
        rdmeta_err_t err;
        size_t k;

        for (k = 1, err = RDMETA_ERR_NO_MEMORY; err; k++) {
                heap->fail_at = heap->calls + k;
                err = rdmeta_reader_walk(b->w.reader, "", 0, 7, 0, go_on,
                                         NULL);
                CHECK(!err || err == RDMETA_ERR_NO_MEMORY);
                CHECK(heap->blocks == blocks && k < 20);
        }
        CHECK(k > 5);
        for (k = 1, image = NULL; !image; k++) {
                heap->fail_at = heap->calls + k;
                image         = rdmeta_cache_image(c, b->w.now);
                CHECK((image || heap->blocks == blocks) && k < 20);
        }
        rdmeta_image_unref(image);
        heap->fail_at = heap->calls + 1;
        r             = rdmeta_reader_new(c, 0);
        CHECK(!r);
        heap->fail_at = heap->calls + 1;
        h             = rdmeta_resolve(c, "orders", 6);
        CHECK(!h && heap->blocks == blocks);
}

static void test_without_memory_nothing_is_lost(void) {
        in_a_torn_child(without_memory);
}

static void *read_by_turns(void *arg) {
        born_t *b = arg;
        int k;

        for (k = 0; k < 20; k++) {
                rdmeta_reader_t *r = rdmeta_reader_new(b->w.cache, 0);
                rdmeta_image_t *image =
                        rdmeta_cache_image(b->w.cache, b->w.now);

                CHECK(r && image);
                CHECK(!rdmeta_reader_walk(r, "", 0, 7, b->w.now.mono_us,
                                          go_on, NULL));
                rdmeta_reader_destroy(r);
                rdmeta_image_unref(image);
                read_stats(b);
        }
        return NULL;
}

static void many_threads(born_t *b) {
        const size_t blocks = b->w.heap.blocks;
        pthread_t threads[3];
        int k;

        for (k = 0; k < 3; k++)
                CHECK(!pthread_create(&threads[k], NULL, read_by_turns, b));
        for (k = 0; k < 3; k++)
                CHECK(!pthread_join(threads[k], NULL));
        CHECK(b->w.heap.blocks == blocks);
}

static void test_threads_of_the_child_take_turns(void) {
        in_a_torn_child(many_threads);
}

/* Its parent's thread had the turn: nobody has it here. */
static void child_of_a_child(born_t *b) {
        int status;
        pid_t pid;

        rdmeta_notify_turn(&b->w.cache->wait);
        pid = fork();
        CHECK(pid >= 0);
        if (pid == 0) {
                alarm(40);
                read_all(b);
                _exit(7);
        }
        rdmeta_notify_turn_end(&b->w.cache->wait);
        CHECK(waitpid(pid, &status, 0) == pid);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
        read_all(b);
}

static void test_a_childs_child_reads_as_well(void) {
        in_a_torn_child(child_of_a_child);
}

/* ---- no write was going on ---------------------------------------------- */

static void *wait_for_turn(void *arg) {
        CHECK(rdmeta_notify_turn(&((born_t *)arg)->w.cache->wait));
        rdmeta_notify_turn_end(&((born_t *)arg)->w.cache->wait);
        return NULL;
}

static void test_a_turn_taken_by_another_thread_is_no_torn_cache(void) {
        const struct timespec nap = {0, 20000000};
        pthread_t thread;
        int status;
        born_t b;
        pid_t pid;

        born_init(&b);
        pid = fork();
        CHECK(pid >= 0);
        if (pid == 0) {
                alarm(40);
                CHECK(rdmeta_notify_turn(&b.w.cache->wait));
                CHECK(!pthread_create(&thread, NULL, wait_for_turn, &b));
                nanosleep(&nap, NULL);
                rdmeta_notify_turn_end(&b.w.cache->wait);
                CHECK(!pthread_join(thread, NULL));
                many_threads(&b);
                born_let_go(&b);
                cw_check(&b.w);
                cw_destroy(&b.w); /* nothing is left */
                _exit(7);
        }
        CHECK(waitpid(pid, &status, 0) == pid);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
        born_let_go(&b);
        cw_destroy(&b.w);
}

int main(void) {
        test_begin(60);
        RUN(test_all_that_reads_does_and_gives_back_what_it_took);
        RUN(test_whoever_writes_or_waits_is_told);
        RUN(test_all_that_was_there_can_be_let_go);
        RUN(test_without_memory_nothing_is_lost);
        RUN(test_threads_of_the_child_take_turns);
        RUN(test_a_childs_child_reads_as_well);
        RUN(test_a_turn_taken_by_another_thread_is_no_torn_cache);
        return 0;
}

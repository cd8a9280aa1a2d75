/* tsan */
/*
 * The child of a fork in the middle of a write. The data that only writers use
 * may be half-written there. The tests overwrite it, which shows that no
 * reader uses it.
 */
#include "support/image_fixture.h"

#include <pthread.h>
#include <sys/wait.h>

typedef struct forked {
        cw_t w;
        rdmeta_image_t *image;   /* taken before the last answer */
        rdmeta_handle_t *handle; /* of "orders" */
        char *text, *image_text; /* what readers of the two see */
        rdmeta_stats_t stats;
} forked_t;

static void forked_init(forked_t *f) {
        memset(f, 0, sizeof(*f));
        cw_init(&f->w, NULL);
        iw_fill(&f->w);
        CHECK(!cw_say(&f->w, "orders 0:1@5 1:2@7; away!3"));
        f->image = iw_image(&f->w);
        CHECK(!cw_say(&f->w, "orders 0:3@6 1:2@7"));
        cw_hint(&f->w, "in.flight", 0);
        f->handle = rdmeta_resolve(f->w.cache, "orders", 6);
        CHECK(f->handle);
        f->text       = iw_reader_text(f->w.reader, f->w.now.mono_us);
        f->image_text = iw_text(f->image, f->w.now.mono_us);
        CHECK(f->text && f->image_text);
        f->stats = cw_stats(&f->w);
}

static void forked_free(forked_t *f) {
        rdmeta_image_unref(f->image);
        rdmeta_handle_release(f->handle);
        free(f->text);
        free(f->image_text);
}

#define SCRAMBLE(what) memset(&(what), 0x5a, sizeof(what))

static void scramble_pages(rdmeta_slot_page_pool_t *pool) {
        SCRAMBLE(pool->free);
        SCRAMBLE(pool->n_free);
}

/* Overwrites a slab, except the size of its units, which never changes. */
static void scramble_slab(rdmeta_slab_t *slab) {
        const unsigned shift = slab->shift;

        SCRAMBLE(*slab);
        slab->shift = shift;
}

/* Overwrites the nodes of images, pins, handles and readers in their lists. */
static void scramble_nodes(forked_t *f) {
        rdmeta_live_image_t *h = (rdmeta_live_image_t *)(void *)f->image;

        SCRAMBLE(h->epoch_image);
        SCRAMBLE(h->names->node);
        SCRAMBLE(h->ids->node);
        SCRAMBLE(f->handle->node);
        SCRAMBLE(f->w.reader->reading.node);
        SCRAMBLE(f->w.stale->reading.node);
}

/* Overwrites everything except what readers use, the lock and the allocator. */
static void scramble(forked_t *f) {
        rdmeta_cache_t *c         = f->w.cache;
        rdmeta_table_t *tables[2] = {rdmeta_names(c), rdmeta_ids(c)};
        int i;

        scramble_nodes(f);
        for (i = 0; i < 2; i++) {
                SCRAMBLE(tables[i]->pins);
                SCRAMBLE(tables[i]->used);
                SCRAMBLE(tables[i]->tombstones);
        }
        scramble_pages(&c->live_images.names);
        scramble_pages(&c->live_images.ids);
        SCRAMBLE(c->notify.waiters);
        SCRAMBLE(c->notify.watches);
        SCRAMBLE(c->notify.due);
        SCRAMBLE(c->epochs);
        scramble_slab(&c->entry_slab);
        for (i = 0; i < RDMETA_MEMORY_SLABS; i++)
                scramble_slab(&c->blocks.slabs[i]);
        SCRAMBLE(c->changelog);
        SCRAMBLE(c->order);
        SCRAMBLE(c->deadlines);
        SCRAMBLE(c->tree);
        SCRAMBLE(c->handles);
        SCRAMBLE(c->notes);
        SCRAMBLE(c->reasons.key);
        SCRAMBLE(c->reasons.count);
        SCRAMBLE(c->builder);
        SCRAMBLE(c->stats);
}

/* Calls `act` in the child of a fork while the parent has the cache's lock. */
static void in_a_torn_child(void (*act)(forked_t *f)) {
        int status;
        forked_t f;
        pid_t pid;

        forked_init(&f);
        rdmeta_notify_lock(&f.w.cache->notify);
        pid = fork();
        CHECK(pid >= 0);
        if (pid == 0) {
                alarm(40);
                scramble(&f);
                act(&f);
                _exit(7);
        }
        rdmeta_notify_unlock(&f.w.cache->notify);
        CHECK(waitpid(pid, &status, 0) == pid);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
        cw_check(&f.w);
        forked_free(&f);
        cw_destroy(&f.w);
}

static void check_text(rdmeta_reader_t *r, int64_t mono_us,
                       const char *wanted) {
        char *text;

        CHECK(r);
        text = iw_reader_text(r, mono_us);
        CHECK(text);
        CHECK_TEXT(text, wanted);
        free(text);
}

/* ---- readers ----------------------------------------------------------- */

static void read_by_readers(forked_t *f) {
        const int64_t mono_us = f->w.now.mono_us;
        rdmeta_reader_t *r;

        check_text(f->w.reader, mono_us, f->text);
        r = rdmeta_reader_new(f->w.cache, 0);
        check_text(r, mono_us, f->text);
        CHECK(rdmeta_leader(r, "orders", 6, 0, mono_us) == 3);
        CHECK(rdmeta_leader(r, "in.flight", 9, 0, mono_us) ==
              RDMETA_WAITING);
        rdmeta_reader_destroy(r);
        r = rdmeta_reader_new(f->w.cache, RDMETA_ALLOW_STALE);
        CHECK(r && rdmeta_leader(r, "orders", 6, 0, INT64_MAX) == 3);
        rdmeta_reader_destroy(r);
}

static void read_by_handles(forked_t *f) {
        const int64_t mono_us = f->w.now.mono_us;
        rdmeta_reader_t *r    = rdmeta_reader_new(f->w.cache, 0);
        rdmeta_handle_t *h    = rdmeta_resolve(f->w.cache, "orders", 6);
        rdmeta_handle_t *none = rdmeta_resolve(f->w.cache, "nothing", 7);

        CHECK(r && h && none);
        CHECK(rdmeta_handle_leader(r, f->handle, 0, mono_us) == 3);
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

/* Checks that an image taken in the child, and its file, are right. */
static void read_by_images(forked_t *f) {
        const rdmeta_time_t now = f->w.now;
        rdmeta_image_t *image   = rdmeta_cache_image(f->w.cache, now);
        const char *path        = iw_path("torn");
        rdmeta_image_info_t info;
        rdmeta_image_t *file;
        int changes = 0;

        CHECK(image);
        check_text(rdmeta_image_reader(f->image, 0), now.mono_us,
                   f->image_text);
        rdmeta_image_info(image, &info);
        CHECK(info.topics == f->stats.topics && info.bytes);
        CHECK(info.partitions == f->stats.partitions);
        CHECK(info.version == f->stats.version);
        CHECK(!rdmeta_image_diff(f->image, image, count_change, &changes));
        CHECK(changes > 0);
        CHECK(!rdmeta_image_save(image, path, 0));
        file = iw_open(path, 0, now);
        CHECK(!rdmeta_image_verify(file));
        iw_same(file, image, now.mono_us);
        rdmeta_image_unref(file);
        rdmeta_image_unref(image);
}

static void read_stats(forked_t *f) {
        rdmeta_stats_t stats;

        rdmeta_cache_stats(f->w.cache, &stats);
        CHECK(stats.topics == f->stats.topics);
        CHECK(stats.partitions == f->stats.partitions);
        CHECK(stats.version == f->stats.version);
        CHECK(stats.shared_deadline_us == f->stats.shared_deadline_us);
}

static void read_all(forked_t *f) {
        const size_t blocks = f->w.heap.blocks, bytes = f->w.heap.bytes;

        read_by_readers(f);
        read_by_handles(f);
        read_stats(f);
        CHECK(f->w.heap.blocks == blocks && f->w.heap.bytes == bytes);
        read_by_images(f);
        CHECK(f->w.heap.blocks == blocks + 1); /* a reader of the old image */
}

static void test_every_reader_works_in_the_child_and_frees_its_memory(void) {
        in_a_torn_child(read_all);
}

static void refused(forked_t *f) {
        const rdmeta_str_t name = {"t", 1};
        rdmeta_cache_t *c       = f->w.cache;
        const rdmeta_time_t now = f->w.now;
        rdmeta_request_t sent   = {0};
        rdmeta_str_t ask;
        uint64_t until;
        int32_t resync;
        size_t n;

        CHECK(rdmeta_cache_request_sent(c, &sent) == RDMETA_ERR_FORKED);
        CHECK(!sent.flags);
        CHECK(rdmeta_cache_apply(c, "", 0, 12, NULL, now, NULL) ==
              RDMETA_ERR_FORKED);
        CHECK(rdmeta_cache_apply_failure(c, NULL, now) == RDMETA_ERR_FORKED);
        CHECK(rdmeta_cache_hint(c, &name, 1, 0, 0, now, &ask, &n) ==
              RDMETA_ERR_FORKED);
        CHECK(rdmeta_cache_purge_hints(c, NULL, 0, now) ==
              RDMETA_ERR_FORKED);
        CHECK(rdmeta_cache_purge(c, now) == RDMETA_ERR_FORKED);
        CHECK(rdmeta_cache_forget(c, &name, 1, now) == RDMETA_ERR_FORKED);
        CHECK(rdmeta_cache_due(c, now.mono_us, 0, NULL, NULL) ==
              RDMETA_ERR_FORKED);
        CHECK(rdmeta_cache_resolved(c, NULL, NULL) == RDMETA_ERR_FORKED);
        CHECK(rdmeta_cache_sweep(c, now) == INT64_MAX);
        CHECK(!rdmeta_cache_changes(c, 0, NULL, NULL, &until, &resync));
        CHECK(until == f->stats.version && resync == 1);
        CHECK(!rdmeta_cache_changes(c, until, NULL, NULL, &until, &resync));
        CHECK(until == f->stats.version && resync == 0);
        CHECK(rdmeta_cache_wait(c, f->stats.version, NULL, 0, -1) == 0);
        CHECK(!rdmeta_watch_new(c, NULL, 0, NULL, NULL));
}

static void test_writes_and_waits_in_the_child_are_refused(void) {
        in_a_torn_child(refused);
}

/* Frees everything; half-written memory of the cache ends with the process. */
static void free_all(forked_t *f) {
        const size_t bytes = f->w.heap.bytes;

        rdmeta_reader_destroy(f->w.reader);
        rdmeta_reader_destroy(f->w.stale);
        forked_free(f);
        CHECK(f->w.heap.bytes < bytes);
        rdmeta_cache_unref(f->w.cache);
}

static void test_the_child_can_free_everything_that_it_inherits(void) {
        in_a_torn_child(free_all);
}

/* ---- no memory, many threads, children of children ---------------------- */

static int32_t ignore_topic(void *opaque, const rdmeta_topic_t *t) {
        (void)opaque;
        (void)t;
        return 0;
}

static void without_memory(forked_t *f) {
        rdmeta_cache_t *c   = f->w.cache;
        test_heap_t *heap   = &f->w.heap;
        const size_t blocks = heap->blocks;
        rdmeta_image_t *image;
        rdmeta_reader_t *r;
        rdmeta_handle_t *h;
        rdmeta_err_t err;
        size_t k;

        for (k = 1, err = RDMETA_ERR_NO_MEMORY; err; k++) {
                heap->fail_at = heap->calls + k;
                err = rdmeta_reader_walk(f->w.reader, "", 0, 7, 0,
                                         ignore_topic, NULL);
                CHECK(!err || err == RDMETA_ERR_NO_MEMORY);
                CHECK(heap->blocks == blocks && k < 20);
        }
        CHECK(k > 5);
        for (k = 1, image = NULL; !image; k++) {
                heap->fail_at = heap->calls + k;
                image         = rdmeta_cache_image(c, f->w.now);
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

static void test_a_failed_allocation_in_the_child_loses_nothing(void) {
        in_a_torn_child(without_memory);
}

static void *read_by_turns(void *arg) {
        forked_t *f = arg;
        int k;

        for (k = 0; k < 20; k++) {
                rdmeta_reader_t *r = rdmeta_reader_new(f->w.cache, 0);
                rdmeta_image_t *image =
                        rdmeta_cache_image(f->w.cache, f->w.now);

                CHECK(r && image);
                CHECK(!rdmeta_reader_walk(r, "", 0, 7, f->w.now.mono_us,
                                          ignore_topic, NULL));
                rdmeta_reader_destroy(r);
                rdmeta_image_unref(image);
                read_stats(f);
        }
        return NULL;
}

static void many_threads(forked_t *f) {
        const size_t blocks = f->w.heap.blocks;
        pthread_t threads[3];
        int k;

        for (k = 0; k < 3; k++)
                CHECK(!pthread_create(&threads[k], NULL, read_by_turns, f));
        for (k = 0; k < 3; k++)
                CHECK(!pthread_join(threads[k], NULL));
        CHECK(f->w.heap.blocks == blocks);
}

static void test_threads_of_the_child_take_turns(void) {
        in_a_torn_child(many_threads);
}

/* Forks once more while this thread has the turn; the new child can read. */
static void child_of_a_child(forked_t *f) {
        int status;
        pid_t pid;

        rdmeta_notify_turn(&f->w.cache->notify);
        pid = fork();
        CHECK(pid >= 0);
        if (pid == 0) {
                alarm(40);
                read_all(f);
                _exit(7);
        }
        rdmeta_notify_turn_end(&f->w.cache->notify);
        CHECK(waitpid(pid, &status, 0) == pid);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
        read_all(f);
}

static void test_the_child_of_a_child_can_read_too(void) {
        in_a_torn_child(child_of_a_child);
}

/* ---- no write at the fork ----------------------------------------------- */

static void *wait_for_turn(void *arg) {
        CHECK(rdmeta_notify_turn(&((forked_t *)arg)->w.cache->notify));
        rdmeta_notify_turn_end(&((forked_t *)arg)->w.cache->notify);
        return NULL;
}

static void test_a_turn_of_another_thread_is_not_an_unfinished_write(void) {
        const struct timespec nap = {0, 20000000};
        pthread_t thread;
        int status;
        forked_t f;
        pid_t pid;

        forked_init(&f);
        pid = fork();
        CHECK(pid >= 0);
        if (pid == 0) {
                alarm(40);
                CHECK(rdmeta_notify_turn(&f.w.cache->notify));
                CHECK(!pthread_create(&thread, NULL, wait_for_turn, &f));
                nanosleep(&nap, NULL);
                rdmeta_notify_turn_end(&f.w.cache->notify);
                CHECK(!pthread_join(thread, NULL));
                many_threads(&f);
                forked_free(&f);
                cw_check(&f.w);
                cw_destroy(&f.w); /* nothing is left */
                _exit(7);
        }
        CHECK(waitpid(pid, &status, 0) == pid);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
        forked_free(&f);
        cw_destroy(&f.w);
}

int main(void) {
        test_begin(60);
        RUN(test_every_reader_works_in_the_child_and_frees_its_memory);
        RUN(test_writes_and_waits_in_the_child_are_refused);
        RUN(test_the_child_can_free_everything_that_it_inherits);
        RUN(test_a_failed_allocation_in_the_child_loses_nothing);
        RUN(test_threads_of_the_child_take_turns);
        RUN(test_the_child_of_a_child_can_read_too);
        RUN(test_a_turn_of_another_thread_is_not_an_unfinished_write);
        return 0;
}

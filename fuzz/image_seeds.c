/*
 * image_seeds DIRECTORY: makes the seeds of fuzz_image, small image files with
 * fuzz_image's byte in front.
 *
 * Each file has a feature of its own. They are small, since a mutation hits a
 * random place. Hash keys, and so the tables, differ from run to run.
 * `make image-seeds` runs it.
 */
#include "support/image_fixture.h"

/* Saves an image of the cache, and writes it as a seed. */
static void seed(cw_t *w, const char *directory, const char *name) {
        rdmeta_image_t *image = iw_image(w);
        const char *path      = iw_path(name);
        char out[512];
        uint8_t *bytes;
        size_t size;
        FILE *file;

        CHECK(!rdmeta_image_save(image, path, 0));
        bytes = iw_read(path, &size);
        snprintf(out, sizeof(out), "%s/%s", directory, name);
        file = fopen(out, "wb");
        CHECK(file);
        CHECK(fputc(1, file) == 1); /* bit 0: a copy, which ASan watches */
        CHECK(fwrite(bytes, 1, size, file) == size && !fclose(file));
        free(bytes);
        rdmeta_image_unref(image);
}

/* Makes a seed of a cache that has applied one answer, or none. */
static void seed_answer(const char *directory, const char *name,
                        const char *topics) {
        cw_t w;

        cw_init(&w, NULL);
        if (topics)
                CHECK(!cw_all(&w, topics));
        seed(&w, directory, name);
        cw_destroy(&w);
}

static void states(const char *directory) {
        cw_t w;

        cw_init(&w, NULL);
        CHECK(!cw_all(&w, "orders#a 0:1@5; b#b 0:2@7; d#d 0:1@1; e#e 0:1"));
        CHECK(!cw_say(&w, "orders#c 0:2@1; d!29; n!3; w!17"));
        CHECK(!cw_all(&w, "orders#c 0:2@1"));
        w.broker = 2;
        CHECK(!cw_all(&w, "orders#d 0:2@1; d!29; e#e 0:1"));
        seed(&w, directory, "states");
        cw_destroy(&w);
}

static void reasons(const char *directory) {
        cw_t w;

        cw_init(&w, NULL);
        w.reason = "start";
        CHECK(!cw_all(&w, "a 0:1; b 0:1; c 0:1; d 0:1"));
        w.reason = "";
        CHECK(!cw_say(&w, "b 0:1"));
        w.reason = NULL;
        CHECK(!cw_say(&w, "c 0:1"));
        w.reason = "not the leader any more";
        CHECK(!cw_say(&w, "d 0:2"));
        seed(&w, directory, "reasons");
        cw_destroy(&w);
}

int main(int argc, char **argv) {
        test_begin();
        CHECK(argc == 2);
        seed_answer(argv[1], "empty", NULL);
        seed_answer(argv[1], "one", "a 0:1");
        seed_answer(argv[1], "flat", "a#a 0:1@5/r1,2 1:2@5/r2,3 2:3@6/r3,1");
        seed_answer(argv[1], "shared",
                    "a#a 0:1@5/r1,2,3/i1,2 1:2@5/r2,3,1/o1 2:2@5/r1,2,3; "
                    "b 0:-1/e5");
        seed_answer(argv[1], "sparse",
                    "orders^8 3:1@5 7:2@5/r2,300/i300 9:1@70000");
        seed_answer(argv[1], "wide", "a~ 0:70000@1/r70000,1 1:1; b#b 0:300@9");
        seed_answer(argv[1], "names",
                    "a.name.of.twenty.bytes#n 0:1; a.name.of.more.than.thirty."
                    "two.bytes.in.all 0:2; a 0:1; eight888 0:1; "
                    "no.such.topic.her 0:1");
        states(argv[1]);
        reasons(argv[1]);
        return 0;
}

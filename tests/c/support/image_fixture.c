#include "support/image_fixture.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

/* ---- files ------------------------------------------------------------- */

static char directory[64];

static void directory_remove(void) {
        DIR *dir = opendir(directory);
        struct dirent *entry;
        char path[512];

        while (dir && (entry = readdir(dir)) != NULL) {
                snprintf(path, sizeof(path), "%s/%s", directory, entry->d_name);
                if (entry->d_name[0] != '.' ||
                    strstr(entry->d_name, ".rdmeta-"))
                        unlink(path);
        }
        if (dir)
                closedir(dir);
        rmdir(directory);
}

const char *iw_path(const char *name) {
        static char paths[8][256];
        static int next;
        char *path = paths[next++ & 7];

        if (!directory[0]) {
                /* In memory, if the system has /dev/shm. */
                strcpy(directory, "/dev/shm/rdmeta-test-XXXXXX");
                if (!mkdtemp(directory)) {
                        strcpy(directory, "/tmp/rdmeta-test-XXXXXX");
                        CHECK(mkdtemp(directory));
                }
                atexit(directory_remove);
        }
        snprintf(path, sizeof(paths[0]), "%s/%s", directory, name);
        return path;
}

int iw_files(void) {
        DIR *dir = opendir(directory);
        struct dirent *entry;
        int n = 0;

        CHECK(dir);
        while ((entry = readdir(dir)) != NULL)
                n += strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..");
        closedir(dir);
        return n;
}

uint8_t *iw_read(const char *path, size_t *size) {
        FILE *file = fopen(path, "rb");
        struct stat st;
        uint8_t *data;

        CHECK(file && !fstat(fileno(file), &st));
        *size = (size_t)st.st_size;
        data  = malloc(*size + 1);
        CHECK(data && fread(data, 1, *size, file) == *size);
        fclose(file);
        return data;
}

void iw_write(const char *path, const void *data, size_t size) {
        const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);

        CHECK(fd >= 0 && write(fd, data, size) == (ssize_t)size);
        close(fd);
}

rdmeta_image_t *iw_image(cw_t *w) {
        rdmeta_image_t *image = rdmeta_cache_image(w->cache, w->now);

        CHECK(image);
        return image;
}

void iw_save(cw_t *w, const char *path) {
        rdmeta_image_t *image = iw_image(w);

        CHECK(!rdmeta_image_save(image, path, 0));
        rdmeta_image_unref(image);
}

void iw_publish(cw_t *w, int32_t leader, const char *path) {
        char text[32];

        snprintf(text, sizeof(text), "a 0:%d@%d", leader,
                 (int)cw_version(w) + 1);
        CHECK(!cw_all(w, text));
        iw_save(w, path);
}

rdmeta_image_t *iw_open(const char *path, int32_t flags, rdmeta_time_t now) {
        rdmeta_image_t *image = NULL;

        CHECK(rdmeta_image_open(path, flags, now, &image) == RDMETA_OK);
        return image;
}

/* ---- all contents of an image ------------------------------------------ */

typedef struct printer {
        rdmeta_reader_t *r;
        FILE *out;
        int64_t mono_us;
        int malformed; /* 1: a call returned MALFORMED */
} printer_t;

static void print_ids(printer_t *t, char what, const rdmeta_ids_out_t *l) {
        uint32_t i;

        fprintf(t->out, "/%c", what);
        for (i = 0; i < l->count && i < l->capacity; i++)
                fprintf(t->out, "%d,", l->ids[i]);
        fprintf(t->out, "(%u)", l->count);
}

static void print_partition(printer_t *t, const rdmeta_topic_t *topic,
                            const rdmeta_topic_info_t *info, uint32_t i) {
        int32_t ids[3][32], leader;
        rdmeta_partition_t p, by_name;
        rdmeta_err_t err;

        memset(&p, 0, sizeof(p));
        p.replicas         = (rdmeta_ids_out_t){ids[0], 32, 0};
        p.isr              = (rdmeta_ids_out_t){ids[1], 32, 0};
        p.offline_replicas = (rdmeta_ids_out_t){ids[2], 32, 0};
        CHECK(!rdmeta_topic_partition_at(t->r, topic, i, &p));
        fprintf(t->out, " %d:%d@%d/l%d/e%d/u%d", p.partition, p.leader,
                p.leader_epoch, p.last_leader, p.error, p.unreachable);
        print_ids(t, 'r', &p.replicas);
        print_ids(t, 'i', &p.isr);
        print_ids(t, 'o', &p.offline_replicas);
        leader = rdmeta_leader(t->r, info->name.data, info->name.len,
                               p.partition, t->mono_us);
        memset(&by_name, 0, sizeof(by_name));
        err = rdmeta_partition(t->r, info->name.data, info->name.len,
                               p.partition, t->mono_us, &by_name);
        fprintf(t->out, "=%d", leader);
        t->malformed |= leader == RDMETA_ERR_MALFORMED ||
                        err == RDMETA_ERR_MALFORMED;
        fprintf(t->out, "=%d@%d", err, err ? 0 : by_name.leader_epoch);
}

static int32_t print_topic(void *opaque, const rdmeta_topic_t *topic) {
        printer_t *t = (printer_t *)opaque;
        const rdmeta_topic_t *by_name = NULL, *by_id = NULL;
        rdmeta_topic_info_t info;
        rdmeta_err_t err, id_err;
        uint32_t i;

        rdmeta_topic_info(t->r, topic, t->mono_us, &info);
        err = rdmeta_topic_find(t->r, info.name.data, info.name.len,
                                t->mono_us, &by_name);
        id_err = rdmeta_topic_find_id(t->r, info.topic_id, t->mono_us, &by_id);
        fprintf(t->out, "%.*s#", (int)info.name.len, info.name.data);
        for (i = 0; i < 16; i++)
                fprintf(t->out, "%02x", info.topic_id[i]);
        fprintf(t->out, "!%d^%d~%d v%" PRIu64 " s%d b%d %d %d", info.error,
                info.operations, info.internal, info.version, info.state,
                info.source_broker, err, id_err);
        if (info.reason.data)
                fprintf(t->out, " for '%.*s'", (int)info.reason.len,
                        info.reason.data);
        if (info.deadline_us > t->mono_us)
                fprintf(t->out, " t%" PRId64, info.deadline_us - t->mono_us);
        t->malformed |= err == RDMETA_ERR_MALFORMED ||
                        id_err == RDMETA_ERR_MALFORMED;
        for (i = 0; i < info.partitions && i < 4096; i++)
                print_partition(t, topic, &info, i);
        fprintf(t->out, "\n");
        return 0;
}

static void print_brokers(printer_t *t) {
        const rdmeta_brokers_t *brokers = rdmeta_brokers(t->r);
        const rdmeta_str_t cluster = rdmeta_brokers_cluster_id(brokers);
        rdmeta_broker_t b;
        uint32_t i;

        fprintf(t->out, "%.*s %d", (int)cluster.len,
                cluster.data ? cluster.data : "",
                rdmeta_brokers_controller(brokers));
        for (i = 0; i < rdmeta_brokers_count(brokers); i++) {
                CHECK(!rdmeta_brokers_at(brokers, i, &b));
                fprintf(t->out, " %d=%.*s:%d=%.*s", b.id, (int)b.host.len,
                        b.host.data, b.port, (int)b.rack.len,
                        b.rack.data ? b.rack.data : "");
        }
        fprintf(t->out, "\n");
}

char *iw_reader_text(rdmeta_reader_t *r, int64_t mono_us) {
        char *text  = NULL;
        size_t size = 0;
        printer_t t = {.r = r, .mono_us = mono_us};
        const rdmeta_topic_t *none;
        rdmeta_err_t err;

        t.out = open_memstream(&text, &size);
        CHECK(t.out);
        rdmeta_reader_enter(r);
        print_brokers(&t);
        err = rdmeta_reader_walk(r, "", 0, 7, mono_us, print_topic, &t);
        CHECK(!err || err == RDMETA_ERR_MALFORMED);
        t.malformed |= err != 0;
        /* The lookup of a missing name has to end, too. */
        err = rdmeta_topic_find(r, "no such topic at all", 20, mono_us, &none);
        fprintf(t.out, "%d %d\n", err,
                rdmeta_leader(r, "nor is this one here", 20, 0, mono_us));
        rdmeta_reader_leave(r);
        CHECK(!fclose(t.out));
        if (t.malformed) {
                free(text);
                return NULL;
        }
        return text;
}

char *iw_text(rdmeta_image_t *image, int64_t mono_us) {
        rdmeta_reader_t *r = rdmeta_image_reader(image, 0);
        char *text;

        CHECK(r);
        text = iw_reader_text(r, mono_us);
        rdmeta_reader_destroy(r);
        return text;
}

void iw_same(rdmeta_image_t *a, rdmeta_image_t *b, int64_t mono_us) {
        char *x = iw_text(a, mono_us), *y = iw_text(b, mono_us);

        CHECK(x && y);
        CHECK_TEXT(x, y);
        free(x);
        free(y);
}

/* ---- a cache with topics of all kinds ----------------------------------- */

static void fill_many(cw_t *w, const gen_shape_t *shape) {
        const rdmeta_request_t r = cw_request(w, RDMETA_ASKED_UNKNOWN);
        gen_cluster_t *cluster   = gen_cluster_new(shape);
        gen_bytes_t body         = {0};

        cluster->cluster_id = test_str(w->cluster_id);
        gen_response(cluster, w->api_version, &body);
        CHECK(!cw_apply(w, body.data, body.len, &r));
        gen_bytes_free(&body);
        gen_cluster_free(cluster);
}

void iw_fill(cw_t *w) {
        const gen_shape_t small = {.seed = 8, .brokers = 3, .first_broker = 1,
                                   .topics = 40, .partitions = 12,
                                   .replication = 2};
        /* Three topics with names of `small`, other ids and wide columns. */
        const gen_shape_t wide = {.seed = 7, .brokers = 10,
                                  .first_broker = 40000, .topics = 3,
                                  .partitions = 70, .replication = 3};

        w->reason = "start";
        CHECK(!cw_all(w, "a#a 0:1@5/r1,2,3/i1,2 1:2@5/r2,3,1; b#b 0:1@5; "
                         "c#c^7 0:1@300/r1000,2 70000:2@5; d#d 0:1@5; "
                         "gone#g 0:1@9; away#w 0:2@9/r1,2; last#l 0:1@9"));
        cw_pass(w, CW_S);
        w->reason = "wanted";
        CHECK(!cw_say(w, "a#a 0:-1@6/r1,2,3/i1,2/e5/o3 1:2@5/r2,3,1; d#e "
                         "0:1@1; n!3; v!29; w!17; last 0:3; "
                         "a.name.of.twenty.bytes#f~ 0:1@1 1:2@1 2:-1@3"));
        CHECK(!cw_all(w, "a#a 0:-1@6/r1,2,3/i1,2/e5/o3 1:2@5/r2,3,1; b#b "
                         "0:1@5; c#c^7 0:1@300/r1000,2 70000:2@5; d#e 0:1@1; "
                         "a.name.of.twenty.bytes#f~ 0:1@1 1:2@1 2:-1@3; z#z; "
                         "away#w 0:2@9/r1,2; last 0:3@9"));
        w->broker = 2;
        w->reason = "";
        CHECK(!cw_all(w, "a#a 0:-1@6/r1,2,3/i1,2/e5/o3 1:2@5/r2,3,1; b#b "
                         "0:1@5; c#c^7 0:1@300/r1000,2 70000:2@5; d#e 0:1@1; "
                         "a.name.of.twenty.bytes#f~ 0:1@1 1:2@1 2:-1@3; z#z; "
                         "last 0:3@9"));
        w->reason = "many";
        fill_many(w, &small);
        w->reason = NULL;
        fill_many(w, &wide);
        w->broker  = 1;
        w->brokers = "1,2=moved:1=rack,4=h4:5";
        w->reason  = "old age";
        CHECK(!cw_say(w, "a#a 0:-1@6/r1,2,3/i1,2/e5/o3 1:2@5/r2,3,1"));
        w->reason = NULL;
        cw_hint(w, "in-flight n", 0);
        cw_pass(w, CW_S);
        CHECK(cw_stats(w).retained && cw_stats(w).negatives);
}

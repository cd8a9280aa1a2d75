/*
 * A mutation driver for the fuzz targets, where libFuzzer is not available.
 *
 *     driver SECONDS PREFIX PATH...
 *
 * The driver runs every file of the paths (files, or directories of files)
 * unchanged, then mutations of them until the time is up. No coverage guides
 * it, so it needs a good corpus. Each input is in a block of exactly its size,
 * so that ASan detects a read of one byte too many.
 *
 * The driver writes an input that crashes, or that takes more than ten
 * seconds, to PREFIXcrash. To run it again, give that file as PATH and 0 as
 * SECONDS. FUZZ_SEED in the environment repeats a run.
 */
#include <dirent.h>
#include <fcntl.h>
#include <sanitizer/common_interface_defs.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { LARGEST = 1 << 20, SLOWEST_S = 10 };

typedef struct input {
        uint8_t *data;
        size_t size;
} input_t;

typedef struct corpus {
        input_t *inputs;
        size_t count;
} corpus_t;

/* The input that runs now, for signal handlers and the sanitizer's callback. */
static input_t running;
static char crash_path[4096];

static void crash_save(void) {
        int fd = open(crash_path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
        if (fd < 0)
                return;
        if (write(fd, running.data, running.size) < 0)
                perror(crash_path);
        close(fd);
}

/* Saves the input and exits. SIGALRM: it is too slow. SIGABRT: an assertion
 * failed, which ASan does not handle. */
static void on_signal(int signo) {
        static const char text[] = "an input took too long\n";
        crash_save();
        if (signo == SIGALRM && write(2, text, sizeof(text) - 1) < 0)
                _exit(2);
        _exit(1);
}

static uint64_t random_next(uint64_t *state) {
        uint64_t z = (*state += 0x9e3779b97f4a7c15u); /* splitmix64 */
        z          = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z          = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        return z ^ (z >> 31);
}

static size_t random_below(uint64_t *state, size_t n) {
        return n ? (size_t)(random_next(state) % n) : 0;
}

static void *must_alloc(size_t size) {
        void *p = malloc(size ? size : 1);
        if (!p) {
                perror("malloc");
                exit(2);
        }
        return p;
}

static void run_one(const uint8_t *data, size_t size) {
        running.data = must_alloc(size);
        running.size = size;
        memcpy(running.data, data, size);
        alarm(SLOWEST_S);
        LLVMFuzzerTestOneInput(running.data, size);
        alarm(0);
        free(running.data);
        running.data = NULL;
        running.size = 0;
}

static void corpus_add(corpus_t *corpus, uint8_t *data, size_t size) {
        corpus->inputs = realloc(corpus->inputs, (corpus->count + 1) *
                                                         sizeof(input_t));
        if (!corpus->inputs)
                exit(2);
        corpus->inputs[corpus->count].data = data;
        corpus->inputs[corpus->count].size = size;
        corpus->count++;
}

static void corpus_load(corpus_t *corpus, const char *path) {
        struct stat st;
        char inner[4096];
        FILE *file;
        uint8_t *data;

        if (stat(path, &st) != 0) {
                perror(path);
                exit(2);
        }
        if (S_ISDIR(st.st_mode)) {
                DIR *dir = opendir(path);
                struct dirent *entry;
                while (dir && (entry = readdir(dir))) {
                        if (entry->d_name[0] == '.')
                                continue;
                        snprintf(inner, sizeof(inner), "%s/%s", path,
                                 entry->d_name);
                        corpus_load(corpus, inner);
                }
                if (dir)
                        closedir(dir);
                return;
        }
        file = fopen(path, "rb");
        data = must_alloc((size_t)st.st_size);
        if (!file ||
            fread(data, 1, (size_t)st.st_size, file) != (size_t)st.st_size) {
                perror(path);
                exit(2);
        }
        fclose(file);
        corpus_add(corpus, data, (size_t)st.st_size);
}

/* Writes an extreme number, big-endian, at any place: it may hit a size or a
 * count. */
static void put_number(uint64_t *state, uint8_t *data, size_t size) {
        static const int64_t numbers[] = {-1,     0,     1,     127,
                                          128,    255,   32767, 32768,
                                          65535,  65536, INT32_MAX,
                                          INT32_MIN, 100000};
        size_t width = (size_t)1 << random_below(state, 4);
        size_t at;
        uint64_t v = (uint64_t)numbers[random_below(
                state, sizeof(numbers) / sizeof(numbers[0]))];

        if (size < width)
                return;
        at = random_below(state, size - width + 1);
        while (width--) {
                data[at + width] = (uint8_t)v;
                v >>= 8;
        }
}

/* Removes or inserts up to 32 bytes. Returns the new size. */
static size_t resize(uint64_t *state, uint8_t *data, size_t size, int grow) {
        size_t n  = 1 + random_below(state, 32);
        size_t at = random_below(state, size + 1);
        size_t i;

        if (grow) {
                if (size + n > LARGEST)
                        return size;
                memmove(data + at + n, data + at, size - at);
                for (i = 0; i < n; i++)
                        data[at + i] = (uint8_t)random_next(state);
                return size + n;
        }
        if (n > size - at)
                n = size - at;
        memmove(data + at, data + at + n, size - at - n);
        return size - n;
}

/* Replaces the end of an input by the end of another one. Returns the new
 * size. */
static size_t take_end(uint64_t *state, uint8_t *data, size_t size,
                       const input_t *other) {
        size_t at   = random_below(state, size + 1);
        size_t from = random_below(state, other->size + 1);
        size_t n    = other->size - from;

        if (n > LARGEST - at)
                n = LARGEST - at;
        memcpy(data + at, other->data + from, n);
        return at + n;
}

static size_t mutate(uint64_t *state, const corpus_t *corpus, uint8_t *data,
                     size_t size) {
        const input_t *other =
                &corpus->inputs[random_below(state, corpus->count)];

        switch (random_below(state, 8)) {
        case 0:
        case 1:
                if (size)
                        data[random_below(state, size)] ^=
                                (uint8_t)(1u << random_below(state, 8));
                return size;
        case 2:
                if (size)
                        data[random_below(state, size)] =
                                (uint8_t)random_next(state);
                return size;
        case 3:
        case 4:
                put_number(state, data, size);
                return size;
        case 5:
                return resize(state, data, size, 0);
        case 6:
                return resize(state, data, size, 1);
        default:
                return take_end(state, data, size, other);
        }
}

static uint64_t fuzz_for(const corpus_t *corpus, int seconds, uint64_t seed) {
        uint8_t *data  = must_alloc(LARGEST);
        uint64_t state = seed, runs = 0;
        time_t end     = time(NULL) + seconds;

        while (time(NULL) < end) {
                const input_t *from =
                        &corpus->inputs[random_below(&state, corpus->count)];
                size_t size  = from->size < LARGEST ? from->size : LARGEST;
                size_t times = 1 + random_below(&state, 6);

                memcpy(data, from->data, size);
                while (times--)
                        size = mutate(&state, corpus, data, size);
                run_one(data, size);
                runs++;
        }
        free(data);
        return runs;
}

int main(int argc, char **argv) {
        corpus_t corpus = {NULL, 0};
        const char *env = getenv("FUZZ_SEED");
        uint64_t seed   = env ? strtoull(env, NULL, 0) : (uint64_t)time(NULL);
        uint64_t runs;
        size_t i;
        int a;

        if (argc < 4) {
                fprintf(stderr, "usage: %s SECONDS PREFIX PATH...\n", argv[0]);
                return 2;
        }
        snprintf(crash_path, sizeof(crash_path), "%scrash", argv[2]);
        signal(SIGALRM, on_signal);
        signal(SIGABRT, on_signal);
        __sanitizer_set_death_callback(crash_save);
        for (a = 3; a < argc; a++)
                corpus_load(&corpus, argv[a]);
        if (!corpus.count) {
                fprintf(stderr, "the corpus is empty\n");
                return 2;
        }
        printf("FUZZ_SEED=%llu, %zu seeds\n", (unsigned long long)seed,
               corpus.count);
        fflush(stdout);
        for (i = 0; i < corpus.count; i++)
                run_one(corpus.inputs[i].data, corpus.inputs[i].size);
        runs = fuzz_for(&corpus, atoi(argv[1]), seed);
        printf("%llu runs\n", (unsigned long long)(runs + corpus.count));
        for (i = 0; i < corpus.count; i++)
                free(corpus.inputs[i].data);
        free(corpus.inputs);
        return 0;
}

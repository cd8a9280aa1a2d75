/* leader FILE TOPIC PARTITION: prints the leader, in a program without Python.
 * A feeder writes FILE, with cache.publish(FILE) or image.save(). */
#include <rdmeta.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static rdmeta_time_t now(void) {
        struct timespec mono, wall;
        clock_gettime(CLOCK_MONOTONIC, &mono);
        clock_gettime(CLOCK_REALTIME, &wall);
        return (rdmeta_time_t){mono.tv_sec * 1000000LL + mono.tv_nsec / 1000,
                               wall.tv_sec * 1000000LL + wall.tv_nsec / 1000};
}

int main(int argc, char **argv) {
        rdmeta_attach_t *file;
        rdmeta_reader_t *reader; /* one thread's; follows the file */
        int32_t leader = RDMETA_ERR_NO_MEMORY;

        if (argc != 4)
                return 2;
        rdmeta_err_t err = rdmeta_attach_new(argv[1], 0, 0, now(), &file);
        if (err) {
                fprintf(stderr, "%s: %s\n", argv[1], rdmeta_err_name(err));
                return 1;
        }
        if ((reader = rdmeta_attach_reader(file, 0)))
                leader = rdmeta_leader(reader, argv[2], strlen(argv[2]),
                                       atoi(argv[3]), now().mono_us);
        if (leader >= 0)
                printf("broker %d\n", leader);
        else
                puts(rdmeta_err_name(leader)); /* RDMETA_NOT_CACHED ... */
        rdmeta_reader_destroy(reader);
        rdmeta_attach_destroy(file);
        return leader < 0;
}

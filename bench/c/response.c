/* response TOPICS IDS SEED: writes a Metadata v12 response's body to standard
 * output, for the benches in Python. IDS is 8, 16 or 32, the bits that broker
 * ids need. */
#include "common.h"

#include <stdio.h>

int main(int argc, char **argv) {
        uint8_t *response;
        uint32_t topics;
        size_t len;
        gen_t g;

        if (argc != 4)
                bench_die("response TOPICS IDS SEED");
        topics = (uint32_t)bench_number(argv[1], 1, 5000000);
        g      = bench_cluster(topics, bench_ids(argv[2]),
                               (uint64_t)bench_number(argv[3], 0, INT32_MAX));
        response = gen_pages(gen_response_bound(&g));
        len      = gen_response(&g, NULL, response);
        if (fwrite(response, 1, len, stdout) != len || fflush(stdout))
                bench_die("the response cannot be written");
        return 0;
}

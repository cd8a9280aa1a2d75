/*
 * Metadata responses: the first byte is the API version, the rest the body.
 *
 * The version is four bits, so that two that do not exist are among them; the
 * fifth says that a trailing byte is tolerated, as the mock brokers need it.
 */
#include "support/wire_check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        if (size == 0)
                return 0;
        wire_check(data + 1, size - 1, (int16_t)(data[0] & 15),
                   data[0] & 16 ? RDMETA_REQ_TOLERATE_TRAILING : 0, NULL);
        return 0;
}

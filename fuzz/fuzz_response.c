/*
 * Decodes Metadata responses: the first byte has flags, the rest is the body.
 *
 *     byte 0     bits 0-3: API version (two of the 16 do not exist)
 *                bit 4: tolerate a trailing byte, as the mock brokers need it
 *     the rest   the body
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

/*
 * crc32: the CRC-32 of zlib, Ethernet and librdkafka's partitioners, four bytes
 * at a time.
 */
#include "base/crc_table.h"
#include "rdmeta.h"

/* tables[k][b] is the sum of the byte b with k zero bytes behind it. */
static const uint32_t tables[4][256] = {
        RDMETA_CRC_TABLE(0x77073096u, 0xee0e612cu, 0x076dc419u,
                         0x0edb8832u, 0x1db71064u, 0x3b6e20c8u,
                         0x76dc4190u, 0xedb88320u),
        RDMETA_CRC_TABLE(0x191b3141u, 0x32366282u, 0x646cc504u,
                         0xc8d98a08u, 0x4ac21251u, 0x958424a2u,
                         0xf0794f05u, 0x3b83984bu),
        RDMETA_CRC_TABLE(0x01c26a37u, 0x0384d46eu, 0x0709a8dcu,
                         0x0e1351b8u, 0x1c26a370u, 0x384d46e0u,
                         0x709a8dc0u, 0xe1351b80u),
        RDMETA_CRC_TABLE(0xb8bc6765u, 0xaa09c88bu, 0x8f629757u,
                         0xc5b428efu, 0x5019579fu, 0xa032af3eu,
                         0x9b14583du, 0xed59b63bu)};

uint32_t rdmeta_crc32(const void *data, size_t len) {
        const uint8_t *p = (const uint8_t *)data;
        uint32_t sum     = UINT32_MAX;

        for (; len >= 4; len -= 4, p += 4) {
                sum ^= (uint32_t)p[0] | (uint32_t)p[1] << 8 |
                       (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
                sum = tables[3][sum & 0xff] ^ tables[2][sum >> 8 & 0xff] ^
                      tables[1][sum >> 16 & 0xff] ^ tables[0][sum >> 24];
        }
        for (; len; len--, p++)
                sum = tables[0][(sum ^ *p) & 0xff] ^ sum >> 8;
        return ~sum;
}

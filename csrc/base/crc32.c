/*
 * crc32: the CRC-32 of zlib, Ethernet and librdkafka's partitioners, four bytes
 * at a time.
 *
 * The sum is linear over xor: the entry of a byte is the xor of the entries of
 * its bits. So the compiler makes each table of 256 from eight of them.
 */
#include "rdmeta.h"

#define BIT(i, b, v) ((i) >> (b) & 1 ? (v) : 0)
#define ENTRY(i, a, b, c, d, e, f, g, h) \
        (BIT(i, 0, a) ^ BIT(i, 1, b) ^ BIT(i, 2, c) ^ BIT(i, 3, d) ^ \
         BIT(i, 4, e) ^ BIT(i, 5, f) ^ BIT(i, 6, g) ^ BIT(i, 7, h))
#define ROW4(i, ...) \
        ENTRY(i, __VA_ARGS__), ENTRY(i + 1, __VA_ARGS__), \
                ENTRY(i + 2, __VA_ARGS__), ENTRY(i + 3, __VA_ARGS__)
#define ROW16(i, ...) \
        ROW4(i, __VA_ARGS__), ROW4(i + 4, __VA_ARGS__), \
                ROW4(i + 8, __VA_ARGS__), ROW4(i + 12, __VA_ARGS__)
#define ROW64(i, ...) \
        ROW16(i, __VA_ARGS__), ROW16(i + 16, __VA_ARGS__), \
                ROW16(i + 32, __VA_ARGS__), ROW16(i + 48, __VA_ARGS__)
#define TABLE(...) \
        { ROW64(0, __VA_ARGS__), ROW64(64, __VA_ARGS__), \
          ROW64(128, __VA_ARGS__), ROW64(192, __VA_ARGS__) }

/* tables[k][b] is the sum of the byte b with k zero bytes behind it. */
static const uint32_t tables[4][256] = {
        TABLE(0x77073096u, 0xee0e612cu, 0x076dc419u, 0x0edb8832u, 0x1db71064u,
              0x3b6e20c8u, 0x76dc4190u, 0xedb88320u),
        TABLE(0x191b3141u, 0x32366282u, 0x646cc504u, 0xc8d98a08u, 0x4ac21251u,
              0x958424a2u, 0xf0794f05u, 0x3b83984bu),
        TABLE(0x01c26a37u, 0x0384d46eu, 0x0709a8dcu, 0x0e1351b8u, 0x1c26a370u,
              0x384d46e0u, 0x709a8dc0u, 0xe1351b80u),
        TABLE(0xb8bc6765u, 0xaa09c88bu, 0x8f629757u, 0xc5b428efu, 0x5019579fu,
              0xa032af3eu, 0x9b14583du, 0xed59b63bu)};

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

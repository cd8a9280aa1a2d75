#include "base/crc32c.h"

#include "base/crc_table.h"
#include "base/hash.h"

/* tables[k][b] is the sum of the byte b with k zero bytes behind it. */
static const uint32_t tables[8][256] = {
        RDMETA_CRC_TABLE(0xf26b8303u, 0xe13b70f7u, 0xc79a971fu,
                         0x8ad958cfu, 0x105ec76fu, 0x20bd8edeu,
                         0x417b1dbcu, 0x82f63b78u),
        RDMETA_CRC_TABLE(0x13a29877u, 0x274530eeu, 0x4e8a61dcu,
                         0x9d14c3b8u, 0x3fc5f181u, 0x7f8be302u,
                         0xff17c604u, 0xfbc3faf9u),
        RDMETA_CRC_TABLE(0xa541927eu, 0x4f6f520du, 0x9edea41au,
                         0x38513ec5u, 0x70a27d8au, 0xe144fb14u,
                         0xc76580d9u, 0x8b277743u),
        RDMETA_CRC_TABLE(0xdd45aab8u, 0xbf672381u, 0x7b2231f3u,
                         0xf64463e6u, 0xe964b13du, 0xd725148bu,
                         0xaba65fe7u, 0x52a0c93fu),
        RDMETA_CRC_TABLE(0x38116facu, 0x7022df58u, 0xe045beb0u,
                         0xc5670b91u, 0x8f2261d3u, 0x1ba8b557u,
                         0x37516aaeu, 0x6ea2d55cu),
        RDMETA_CRC_TABLE(0xef306b19u, 0xdb8ca0c3u, 0xb2f53777u,
                         0x6006181fu, 0xc00c303eu, 0x85f4168du,
                         0x0e045bebu, 0x1c08b7d6u),
        RDMETA_CRC_TABLE(0x68032cc8u, 0xd0065990u, 0xa5e0c5d1u,
                         0x4e2dfd53u, 0x9c5bfaa6u, 0x3d5b83bdu,
                         0x7ab7077au, 0xf56e0ef4u),
        RDMETA_CRC_TABLE(0x493c7d27u, 0x9278fa4eu, 0x211d826du,
                         0x423b04dau, 0x847609b4u, 0x0d006599u,
                         0x1a00cb32u, 0x34019664u)};

static uint32_t add_byte(uint32_t sum, uint8_t byte) {
        return tables[0][(sum ^ byte) & 0xff] ^ sum >> 8;
}

uint32_t rdmeta_crc32c_by_tables(const void *data, size_t len) {
        const uint8_t *p = (const uint8_t *)data;
        uint32_t sum     = UINT32_MAX, rest;
        uint64_t word;

        for (; len >= 8; len -= 8, p += 8) {
                word = rdmeta_load64(p) ^ sum;
                rest = (uint32_t)(word >> 32);
                sum  = tables[7][word & 0xff] ^ tables[6][word >> 8 & 0xff] ^
                      tables[5][word >> 16 & 0xff] ^
                      tables[4][word >> 24 & 0xff] ^ tables[3][rest & 0xff] ^
                      tables[2][rest >> 8 & 0xff] ^
                      tables[1][rest >> 16 & 0xff] ^ tables[0][rest >> 24];
        }
        for (; len; len--)
                sum = add_byte(sum, *p++);
        return ~sum;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) static uint32_t
by_instruction(const void *data, size_t len) {
        const uint8_t *p = (const uint8_t *)data;
        uint64_t sum     = UINT32_MAX;

        for (; len >= 8; len -= 8, p += 8)
                sum = __builtin_ia32_crc32di(sum, rdmeta_load64(p));
        for (; len; len--)
                sum = __builtin_ia32_crc32qi((uint32_t)sum, *p++);
        return ~(uint32_t)sum;
}
#endif

uint32_t rdmeta_crc32c(const void *data, size_t len) {
#if defined(__x86_64__)
        if (__builtin_cpu_supports("sse4.2"))
                return by_instruction(data, len);
#endif
        return rdmeta_crc32c_by_tables(data, len);
}

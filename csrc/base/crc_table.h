/*
 * crc_table: tables of a CRC, made by the compiler.
 *
 * The sum is linear over xor: the entry of a byte is the xor of the entries of
 * its bits. So the compiler makes each table of 256 from eight of them.
 */
#pragma once

#define RDMETA_CRC_BIT(i, b, v) ((i) >> (b) & 1 ? (v) : 0)
#define RDMETA_CRC_ENTRY(i, a, b, c, d, e, f, g, h) \
        (RDMETA_CRC_BIT(i, 0, a) ^ RDMETA_CRC_BIT(i, 1, b) ^ \
         RDMETA_CRC_BIT(i, 2, c) ^ RDMETA_CRC_BIT(i, 3, d) ^ \
         RDMETA_CRC_BIT(i, 4, e) ^ RDMETA_CRC_BIT(i, 5, f) ^ \
         RDMETA_CRC_BIT(i, 6, g) ^ RDMETA_CRC_BIT(i, 7, h))
#define RDMETA_CRC_ROW4(i, ...) \
        RDMETA_CRC_ENTRY(i, __VA_ARGS__), \
                RDMETA_CRC_ENTRY(i + 1, __VA_ARGS__), \
                RDMETA_CRC_ENTRY(i + 2, __VA_ARGS__), \
                RDMETA_CRC_ENTRY(i + 3, __VA_ARGS__)
#define RDMETA_CRC_ROW16(i, ...) \
        RDMETA_CRC_ROW4(i, __VA_ARGS__), \
                RDMETA_CRC_ROW4(i + 4, __VA_ARGS__), \
                RDMETA_CRC_ROW4(i + 8, __VA_ARGS__), \
                RDMETA_CRC_ROW4(i + 12, __VA_ARGS__)
#define RDMETA_CRC_ROW64(i, ...) \
        RDMETA_CRC_ROW16(i, __VA_ARGS__), \
                RDMETA_CRC_ROW16(i + 16, __VA_ARGS__), \
                RDMETA_CRC_ROW16(i + 32, __VA_ARGS__), \
                RDMETA_CRC_ROW16(i + 48, __VA_ARGS__)
#define RDMETA_CRC_TABLE(...) \
        { RDMETA_CRC_ROW64(0, __VA_ARGS__), \
          RDMETA_CRC_ROW64(64, __VA_ARGS__), \
          RDMETA_CRC_ROW64(128, __VA_ARGS__), \
          RDMETA_CRC_ROW64(192, __VA_ARGS__) }

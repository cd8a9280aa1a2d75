/* require: an assertion for tests and fuzz targets that every build checks. A
 * condition that does not hold calls abort(), which a fuzzer reports. */
#pragma once

#include <stdio.h>
#include <stdlib.h>

#define REQUIRE(cond)                                                         \
        do {                                                                  \
                if (!(cond)) {                                                \
                        fprintf(stderr, "%s:%d: %s does not hold\n",          \
                                __FILE__, __LINE__, #cond);                   \
                        abort();                                              \
                }                                                             \
        } while (0)

/* holds: an assertion of tests and fuzz targets that is there in every build;
 * what does not hold is abort(), which a fuzzer takes for a find. */
#ifndef RDMETA_HOLDS_H
#define RDMETA_HOLDS_H

#include <stdio.h>
#include <stdlib.h>

#define HOLDS(cond)                                                           \
        do {                                                                  \
                if (!(cond)) {                                                \
                        fprintf(stderr, "%s:%d: %s does not hold\n",          \
                                __FILE__, __LINE__, #cond);                   \
                        abort();                                              \
                }                                                             \
        } while (0)

#endif

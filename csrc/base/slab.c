#include "base/slab.h"

#include "base/alloc.h"

/* From CHUNK_LARGE bytes on, chunks are large pages. */
enum {
        CHUNK_MIN   = 16 << 10,
        CHUNK_LARGE = 16 << 20,
        /* The bytes of a reservation that a chunk's end may leave unused. */
        CHUNK_REST = 1 << 10
};

void rdmeta_slab_init(rdmeta_slab_t *slab, const rdmeta_allocator_t *allocator,
                      size_t unit, size_t header_size) {
        memset(slab, 0, sizeof(*slab));
        slab->allocator   = allocator;
        slab->header_size = (unsigned)header_size;
        slab->least       = 2 * CHUNK_MIN;
        while (((size_t)1 << slab->shift) < unit)
                slab->shift++;
}

static void chunk_free(rdmeta_slab_t *slab, rdmeta_slab_chunk_t *chunk) {
        slab->bytes -= chunk->size;
#ifdef RDMETA_SLAB_ASAN
        ASAN_UNPOISON_MEMORY_REGION(chunk, chunk->size);
#endif
        rdmeta_free(slab->allocator, chunk, chunk->size);
}

static void chunks_free(rdmeta_slab_t *slab, rdmeta_slab_chunk_t *chunk) {
        while (chunk) {
                rdmeta_slab_chunk_t *next = chunk->next;

                chunk_free(slab, chunk);
                chunk = next;
        }
}

void rdmeta_slab_destroy(rdmeta_slab_t *slab) {
        chunks_free(slab, slab->chunks);
        chunks_free(slab, slab->fresh);
        rdmeta_free(slab->allocator, slab->leaving,
                    slab->leaving_room * sizeof(*slab->leaving));
        slab->chunks = slab->fresh = NULL;
        slab->leaving = NULL;
        slab->cur = slab->end = NULL;
}

/* ---- chunks -------------------------------------------------------------- */

/* Returns the first address from `p` on that a piece can be handed out at. */
static char *slab_align(const rdmeta_slab_t *slab, char *p) {
        const uintptr_t unit = (uintptr_t)1 << slab->shift;
        const uintptr_t at   = (uintptr_t)p + slab->header_size;

        return p + slab->header_size + (((at + unit - 1) & ~(unit - 1)) - at);
}

static char *chunk_first(const rdmeta_slab_t *slab,
                         rdmeta_slab_chunk_t *chunk) {
        return slab_align(slab, (char *)(chunk + 1));
}

static char *chunk_end(const rdmeta_slab_t *slab, rdmeta_slab_chunk_t *chunk) {
        return (char *)chunk + chunk->size - slab->header_size;
}

/* Returns the bytes that the chunk's pieces can take. */
static size_t chunk_room(const rdmeta_slab_t *slab,
                         rdmeta_slab_chunk_t *chunk) {
        const size_t room = (size_t)(chunk_end(slab, chunk) -
                                     chunk_first(slab, chunk));

        return room >> slab->shift << slab->shift;
}

/* Returns the bytes of cur's chunk that were never handed out. */
static size_t slab_rest(const rdmeta_slab_t *slab) {
        return (size_t)(slab->end - slab->cur) >> slab->shift << slab->shift;
}

/* Puts the rest of cur's chunk into the lists. It is too small for the piece
 * that is allocated now, but smaller ones will fit. */
static void slab_list_rest(rdmeta_slab_t *slab) {
        size_t units = slab_rest(slab) >> slab->shift, n;

        for (; units; units -= n) {
                n = units < RDMETA_SLAB_LISTS ? units : RDMETA_SLAB_LISTS - 1;
                rdmeta_slab_free(slab, slab->cur, n << slab->shift);
                slab->cur += n << slab->shift;
        }
        slab->cur = slab->end;
}

static size_t chunk_size(const rdmeta_slab_t *slab) {
        const size_t size = slab->bytes / 16;

        if (size < CHUNK_MIN)
                return CHUNK_MIN;
        return slab->bytes >= CHUNK_LARGE ? RDMETA_ALLOC_LARGE
                                          : size & ~(size_t)7;
}

/* Appends a new chunk to `fresh` and returns it; NULL: no memory. */
static rdmeta_slab_chunk_t *chunk_new(rdmeta_slab_t *slab, size_t size) {
        rdmeta_slab_chunk_t **at = &slab->fresh;
        rdmeta_slab_chunk_t *chunk =
                (rdmeta_slab_chunk_t *)rdmeta_alloc_large(
                        slab->allocator, size);

        if (!chunk)
                return NULL;
        while (*at)
                at = &(*at)->next;
        *at         = chunk;
        chunk->next = NULL;
        chunk->size = size;
        chunk->live = 0;
        slab->bytes += size;
        slab->fresh_bytes += chunk_room(slab, chunk);
        return chunk;
}

/* Sets `cur` to the first fresh chunk and returns 1; 0: no memory. */
static int chunk_begin(rdmeta_slab_t *slab) {
        rdmeta_slab_chunk_t *chunk = slab->fresh;

        if (!chunk && !chunk_new(slab, chunk_size(slab)))
                return 0;
        chunk = slab->fresh;
        slab_list_rest(slab);
        slab->fresh_bytes -= chunk_room(slab, chunk);
        slab->fresh  = chunk->next;
        chunk->next  = slab->chunks;
        slab->chunks = chunk;
        slab->cur    = chunk_first(slab, chunk);
        slab->end    = chunk_end(slab, chunk);
        return 1;
}

void rdmeta_slab_reserve(rdmeta_slab_t *slab, size_t bytes) {
        const size_t own = sizeof(rdmeta_slab_chunk_t) +
                           2 * slab->header_size + ((size_t)2 << slab->shift);
        const size_t reserved = slab_rest(slab) + slab->fresh_bytes;
        const rdmeta_slab_chunk_t *chunk;
        size_t size;

        bytes = bytes > reserved ? bytes - reserved : 0;
        while (bytes) {
                size = (bytes < RDMETA_ALLOC_LARGE ? bytes + own + 7
                                                   : RDMETA_ALLOC_LARGE) &
                       ~(size_t)7;
                /* A chunk of nearly a large page becomes one. */
                if (size > RDMETA_ALLOC_LARGE / 8 * 7)
                        size = RDMETA_ALLOC_LARGE;
                chunk = chunk_new(slab, size);
                if (!chunk)
                        break;
                size -= size < RDMETA_ALLOC_LARGE ? own : own + CHUNK_REST;
                bytes = bytes > size ? bytes - size : 0;
        }
}

/* ---- pieces -------------------------------------------------------------- */

/* Returns the bytes that are allocated for a large piece. Before its header
 * lies the distance from the block's begin to the address handed out. */
static size_t large_size(const rdmeta_slab_t *slab, size_t units) {
        return ((units + 1) << slab->shift) + sizeof(uint32_t);
}

void *rdmeta_slab_alloc_slow(rdmeta_slab_t *slab, size_t units) {
        const size_t size = large_size(slab, units);
        char *raw, *p;
        uint32_t off;

        if (units < RDMETA_SLAB_LISTS) {
                if (!chunk_begin(slab))
                        return NULL;
                return rdmeta_slab_alloc(slab, units << slab->shift);
        }
        raw = (char *)rdmeta_alloc(slab->allocator, size);
        if (!raw)
                return NULL;
        slab->bytes += size;
        p   = slab_align(slab, raw + sizeof(off));
        off = (uint32_t)(p - raw);
        memcpy(p - slab->header_size - sizeof(off), &off, sizeof(off));
        return p;
}

void rdmeta_slab_free_large(rdmeta_slab_t *slab, void *p, size_t units) {
        const size_t size = large_size(slab, units);
        char *at          = (char *)p;
        uint32_t off;

        memcpy(&off, at - slab->header_size - sizeof(off), sizeof(off));
        slab->bytes -= size;
        rdmeta_free(slab->allocator, at - off, size);
}

/* ---- leaving ------------------------------------------------------------- */

/* Returns the chunk that `p` lies in, of n chunks in the order of their
 * addresses; NULL: none of them. */
static rdmeta_slab_chunk_t *chunk_of(rdmeta_slab_chunk_t *const *all, size_t n,
                                     const void *p) {
        const uintptr_t at = (uintptr_t)p;
        size_t lo          = 0;

        while (n > 1) { /* all[lo], if any */
                const size_t half = n / 2;

                if ((uintptr_t)all[lo + half] <= at)
                        lo += half;
                n -= half;
        }
        if (!n || at - (uintptr_t)all[lo] >= all[lo]->size)
                return NULL;
        return all[lo];
}

int rdmeta_slab_leaves(const rdmeta_slab_t *slab, const void *p) {
        return chunk_of(slab->leaving, slab->n_leaving, p) != NULL;
}

static void leaving_free_array(rdmeta_slab_t *slab) {
        const size_t size = slab->leaving_room * sizeof(*slab->leaving);

        rdmeta_free(slab->allocator, slab->leaving, size);
        slab->bytes -= size;
        slab->leaving      = NULL;
        slab->leaving_room = 0;
}

/* Frees a leaving chunk without live pieces. */
static void leaving_free_chunk(rdmeta_slab_t *slab,
                               rdmeta_slab_chunk_t *chunk) {
        rdmeta_slab_chunk_t **at = &slab->chunks;
        size_t i                 = 0;

        while (*at != chunk)
                at = &(*at)->next;
        *at = chunk->next;
        while (slab->leaving[i] != chunk)
                i++;
        slab->leaving_free -= chunk_room(slab, chunk);
        slab->n_leaving--;
        memmove(&slab->leaving[i], &slab->leaving[i + 1],
                (slab->n_leaving - i) * sizeof(*slab->leaving));
        chunk_free(slab, chunk);
        if (!slab->n_leaving)
                leaving_free_array(slab);
}

int rdmeta_slab_free_leaving(rdmeta_slab_t *slab, void *p, size_t bytes) {
        rdmeta_slab_chunk_t *chunk =
                chunk_of(slab->leaving, slab->n_leaving, p);

        if (!chunk)
                return 0;
        rdmeta_slab_poison(slab, p, bytes);
        chunk->live -= bytes;
        slab->leaving_free += bytes;
        if (!chunk->live)
                leaving_free_chunk(slab, chunk);
        return 1;
}

static int by_address(const void *a, const void *b) {
        const uintptr_t x = (uintptr_t)*(rdmeta_slab_chunk_t *const *)a;
        const uintptr_t y = (uintptr_t)*(rdmeta_slab_chunk_t *const *)b;

        return (x > y) - (x < y);
}

/* Orders the emptiest chunk first. */
static int by_free(const void *a, const void *b) {
        const rdmeta_slab_chunk_t *x = *(rdmeta_slab_chunk_t *const *)a;
        const rdmeta_slab_chunk_t *y = *(rdmeta_slab_chunk_t *const *)b;
        const double p = (double)x->free / (double)x->size;
        const double q = (double)y->free / (double)y->size;

        return p != q ? (p < q) - (p > q) : by_address(a, b);
}

/* Counts the listed bytes of each chunk. */
static void plan_count(rdmeta_slab_t *slab, rdmeta_slab_chunk_t **all,
                       size_t n) {
        const rdmeta_slab_free_t *f;
        size_t units;

        for (units = 1; units < RDMETA_SLAB_LISTS; units++)
                for (f = slab->lists[units]; f; f = f->next)
                        chunk_of(all, n, f)->free += units << slab->shift;
}

/* Returns how many of the chunks, the emptiest first, leave. It prefers several
 * at once, since the owner searches all its pieces for those to move. */
static size_t plan_choose(const rdmeta_slab_t *slab,
                          rdmeta_slab_chunk_t *const *all, size_t n) {
        const size_t spare  = slab->bytes / 16;
        const size_t wanted = slab->free > spare ? slab->free - spare : 1;
        size_t i, size = 0, gained = 0;

        for (i = 0; i < n && gained < wanted; i++) {
                size += all[i]->size;
                gained += all[i]->free;
                if (all[i]->free < all[i]->size / 16 ||
                    (i && size > slab->bytes / 8))
                        break;
        }
        return i;
}

/* Takes the leaving chunks' pieces off the lists. */
static void plan_unlist(rdmeta_slab_t *slab) {
        size_t units;

        for (units = 1; units < RDMETA_SLAB_LISTS; units++) {
                rdmeta_slab_free_t *f = slab->lists[units], *last = NULL;

                slab->lists[units] = NULL;
                for (; f; f = f->next) {
                        if (rdmeta_slab_leaves(slab, f)) {
                                slab->free -= units << slab->shift;
                                continue;
                        }
                        if (last)
                                last->next = f;
                        else
                                slab->lists[units] = f;
                        last = f;
                }
                if (last)
                        last->next = NULL;
        }
}

/* Counts the live bytes of each chunk that is new in `leaving`, and frees those
 * that have none. */
static void plan_begin(rdmeta_slab_t *slab) {
        size_t i = slab->n_leaving;

        plan_unlist(slab);
        while (i--) {
                rdmeta_slab_chunk_t *chunk = slab->leaving[i];

                if (chunk->live) /* an earlier plan's */
                        continue;
                chunk->live = chunk_room(slab, chunk) - chunk->free;
                if (slab->cur != slab->end && chunk == slab->chunks) {
                        chunk->live -= slab_rest(slab);
                        slab->cur = slab->end = NULL;
                }
                slab->leaving_free += chunk_room(slab, chunk) - chunk->live;
                if (!chunk->live)
                        leaving_free_chunk(slab, chunk);
        }
}

/* Makes the first n of `all` leave, besides the chunks that leave already.
 * Those are never among the n, since their pieces are in no list. `all` has
 * room for both. */
static void plan_join(rdmeta_slab_t *slab, rdmeta_slab_chunk_t **all, size_t n,
                      size_t room) {
        const size_t before = slab->n_leaving;

        if (before) {
                memcpy(all + n, slab->leaving, before * sizeof(*all));
                leaving_free_array(slab);
        }
        slab->bytes += room * sizeof(*all);
        slab->leaving      = all;
        slab->leaving_room = room;
        slab->n_leaving    = before + n;
        qsort(all, before + n, sizeof(*all), by_address);
        plan_begin(slab);
}

size_t rdmeta_slab_plan(rdmeta_slab_t *slab, size_t part) {
        rdmeta_slab_chunk_t **all, *chunk;
        size_t n = 0, i = 0;

        if (slab->free < slab->least || slab->free <= slab->bytes / part ||
            slab->leaving_free > slab->bytes / part)
                return 0;
        for (chunk = slab->chunks; chunk; chunk = chunk->next)
                n++;
        all = (rdmeta_slab_chunk_t **)rdmeta_alloc(slab->allocator,
                                                   n * sizeof(*all));
        if (!all)
                return 0;
        for (chunk = slab->chunks; chunk; chunk = chunk->next) {
                chunk->free = 0;
                all[i++]    = chunk;
        }
        qsort(all, n, sizeof(*all), by_address);
        plan_count(slab, all, n);
        qsort(all, n, sizeof(*all), by_free);
        i = plan_choose(slab, all, n);
        if (i)
                plan_join(slab, all, i, n);
        else
                rdmeta_free(slab->allocator, all, n * sizeof(*all));
        return i;
}

/* ---- counts -------------------------------------------------------------- */

size_t rdmeta_slab_spare(const rdmeta_slab_t *slab) {
        return slab->free + slab_rest(slab) + slab->fresh_bytes +
               slab->leaving_free;
}

const char *rdmeta_slab_check(const rdmeta_slab_t *slab, size_t *used) {
        rdmeta_slab_chunk_t *chunk = slab->chunks;
        const rdmeta_slab_free_t *f;
        size_t free = 0, room = 0, fresh_bytes = 0, leaving_free = 0;
        size_t units, i;

        for (units = 1; units < RDMETA_SLAB_LISTS; units++)
                for (f = slab->lists[units]; f; f = f->next) {
                        free += units << slab->shift;
                        if (rdmeta_slab_leaves(slab, f))
                                return "a listed piece's chunk is leaving";
                }
        if (free != slab->free)
                return "free pieces are miscounted";
        for (; chunk; chunk = chunk->next)
                room += chunk_room(slab, chunk);
        for (i = 0; i < slab->n_leaving; i++) {
                chunk = slab->leaving[i];
                if (!chunk->live || chunk->live > chunk_room(slab, chunk) ||
                    (i && (uintptr_t)chunk <=
                                  (uintptr_t)slab->leaving[i - 1]))
                        return "a leaving chunk is miscounted";
                leaving_free += chunk_room(slab, chunk) - chunk->live;
        }
        for (chunk = slab->fresh; chunk; chunk = chunk->next)
                fresh_bytes += chunk_room(slab, chunk);
        if (fresh_bytes != slab->fresh_bytes ||
            leaving_free != slab->leaving_free)
                return "fresh or leaving bytes are miscounted";
        *used = room - free - slab_rest(slab) - leaving_free;
        return NULL;
}

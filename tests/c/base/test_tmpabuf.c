/* tmpabuf: returns an object only if both passes agree. */
#include "base/tmpabuf.h"

#include "support/testing.h"

enum { PIECES = 12, ROUNDS = 3000, LONGEST = 40 };

typedef struct piece {
        int kind; /* 0 bytes, 1 an array, 2 a string, 3 a null string */
        size_t n;
        char bytes[LONGEST * 4];
        const char *copy;
} piece_t;

static rdmeta_str_t piece_str(const piece_t *p) {
        rdmeta_str_t s = {p->kind == 3 ? NULL : p->bytes, p->n};
        return s;
}

static void piece_random(piece_t *p, test_rng_t *r) {
        size_t i;

        p->kind = (int)test_below(r, 4);
        p->n    = p->kind == 3 ? 0 : test_below(r, LONGEST);
        for (i = 0; i < sizeof(p->bytes); i++)
                p->bytes[i] = (char)test_u64(r);
}

static void piece_add(const piece_t *p, rdmeta_tmpabuf_t *b) {
        if (p->kind == 0)
                rdmeta_tmpabuf_add(b, p->n);
        else if (p->kind == 1)
                rdmeta_tmpabuf_add_array(b, p->n, 4);
        else
                rdmeta_tmpabuf_add_str(b, piece_str(p));
}

static void piece_fill(piece_t *p, rdmeta_tmpabuf_t *b) {
        rdmeta_str_t s;
        void *copy;

        if (p->kind < 2) {
                copy = p->kind == 0 ? rdmeta_tmpabuf_alloc(b, p->n)
                                    : rdmeta_tmpabuf_alloc_array(b, p->n, 4);
                CHECK(copy);
                memcpy(copy, p->bytes, p->kind == 0 ? p->n : 4 * p->n);
                p->copy = copy;
        } else {
                s       = rdmeta_tmpabuf_write_str(b, piece_str(p));
                p->copy = s.data;
                CHECK(s.len == p->n && !s.data == (p->kind == 3));
        }
}

/* Checks a piece's contents, NUL and alignment, and the zeros after it. */
static size_t piece_check(const piece_t *p, const char *base, size_t at) {
        const size_t bytes = p->kind == 1 ? 4 * p->n : p->n;
        size_t end         = at + bytes + (p->kind == 2);

        if (p->kind == 3)
                return at;
        CHECK(p->copy == base + at && at % RDMETA_TMPABUF_ALIGN == 0);
        CHECK(bytes == 0 || !memcmp(p->copy, p->bytes, bytes));
        if (p->kind == 2)
                CHECK(p->copy[bytes] == '\0');
        for (; end % RDMETA_TMPABUF_ALIGN; end++)
                CHECK(base[end] == 0);
        return end;
}

static void build_random(test_rng_t *r, const rdmeta_allocator_t *a) {
        static piece_t pieces[PIECES];
        const size_t n = 1 + test_below(r, PIECES);
        size_t i, at;
        rdmeta_tmpabuf_t b;
        char *object;
        void *header;

        rdmeta_tmpabuf_init(&b);
        rdmeta_tmpabuf_add(&b, 8);
        for (i = 0; i < n; i++) {
                piece_random(&pieces[i], r);
                piece_add(&pieces[i], &b);
        }
        CHECK(rdmeta_tmpabuf_start(&b, a));
        header = rdmeta_tmpabuf_alloc(&b, 8);
        CHECK(header);
        memcpy(header, "a header", 8);
        for (i = 0; i < n; i++)
                piece_fill(&pieces[i], &b);
        object = rdmeta_tmpabuf_finish(&b);
        CHECK(object && !memcmp(object, "a header", 8));
        for (at = 8, i = 0; i < n; i++)
                at = piece_check(&pieces[i], object, at);
        CHECK(at == b.size);
        rdmeta_free(a, object, b.size);
}

TEST(test_filling_ends_at_the_size_of_the_sizing_pass) {
        test_heap_t heap;
        rdmeta_allocator_t a = test_allocator(&heap);
        test_rng_t r         = test_rng(1);
        size_t i;

        for (i = 0; i < ROUNDS; i++) {
                build_random(&r, &a);
                CHECK(heap.calls == i + 1 && !heap.blocks && !heap.bytes);
        }
        build_random(&r, NULL);
}

TEST(test_filling_too_little_is_no_object) {
        test_heap_t heap;
        rdmeta_allocator_t a = test_allocator(&heap);
        rdmeta_tmpabuf_t b;

        rdmeta_tmpabuf_init(&b);
        rdmeta_tmpabuf_add(&b, 8);
        rdmeta_tmpabuf_add(&b, 1);
        CHECK(rdmeta_tmpabuf_start(&b, &a));
        CHECK(rdmeta_tmpabuf_alloc(&b, 8));
        CHECK(!rdmeta_tmpabuf_finish(&b));
        CHECK(heap.calls == 1 && !heap.blocks && !heap.bytes);
}

TEST(test_filling_too_much_fails_and_stays_failed) {
        test_heap_t heap;
        rdmeta_allocator_t a = test_allocator(&heap);
        rdmeta_tmpabuf_t b;

        rdmeta_tmpabuf_init(&b);
        rdmeta_tmpabuf_add(&b, 16);
        CHECK(rdmeta_tmpabuf_start(&b, &a));
        CHECK(!rdmeta_tmpabuf_alloc(&b, 17));
        CHECK(!rdmeta_tmpabuf_alloc(&b, 8));
        CHECK(!rdmeta_tmpabuf_write_str(&b, test_str("a")).data);
        CHECK(!rdmeta_tmpabuf_finish(&b));
        CHECK(!heap.blocks && !heap.bytes);
}

/* An error in sizing sticks, so there is no allocation. */
static void check_overflowed(rdmeta_tmpabuf_t *b) {
        test_heap_t heap;
        rdmeta_allocator_t a = test_allocator(&heap);

        rdmeta_tmpabuf_add(b, 8);
        CHECK(!rdmeta_tmpabuf_start(b, &a));
        CHECK(!rdmeta_tmpabuf_alloc(b, 0) && !rdmeta_tmpabuf_alloc(b, 8));
        CHECK(!rdmeta_tmpabuf_finish(b));
        CHECK(!heap.calls && !heap.blocks);
}

TEST(test_sums_that_overflow_allocate_nothing) {
        const rdmeta_str_t longest = {"", SIZE_MAX};
        rdmeta_tmpabuf_t b;
        size_t i;

        for (i = 0; i < 8; i++) {
                rdmeta_tmpabuf_init(&b);
                rdmeta_tmpabuf_add(&b, 8);
                rdmeta_tmpabuf_add(&b, SIZE_MAX - i);
                check_overflowed(&b);
        }
        rdmeta_tmpabuf_init(&b);
        rdmeta_tmpabuf_add(&b, SIZE_MAX / 2);
        rdmeta_tmpabuf_add(&b, SIZE_MAX / 2);
        check_overflowed(&b);
        rdmeta_tmpabuf_init(&b);
        rdmeta_tmpabuf_add_array(&b, SIZE_MAX / 4 + 1, 4);
        check_overflowed(&b);
        rdmeta_tmpabuf_init(&b);
        rdmeta_tmpabuf_add_str(&b, longest);
        check_overflowed(&b);
}

TEST(test_overflow_while_filling_is_an_error) {
        const rdmeta_str_t longest = {"", SIZE_MAX};
        test_heap_t heap;
        rdmeta_allocator_t a = test_allocator(&heap);
        rdmeta_tmpabuf_t b;
        int how;

        for (how = 0; how < 3; how++) {
                rdmeta_tmpabuf_init(&b);
                rdmeta_tmpabuf_add(&b, 8);
                CHECK(rdmeta_tmpabuf_start(&b, &a));
                if (how == 0)
                        CHECK(!rdmeta_tmpabuf_alloc(&b, SIZE_MAX));
                else if (how == 1)
                        CHECK(!rdmeta_tmpabuf_alloc_array(
                            &b, SIZE_MAX / 4 + 1, 4));
                else
                        CHECK(!rdmeta_tmpabuf_write_str(&b, longest).data);
                CHECK(!rdmeta_tmpabuf_alloc(&b, 8));
                CHECK(!rdmeta_tmpabuf_finish(&b));
        }
        CHECK(heap.calls == 3 && !heap.blocks);
}

TEST(test_no_memory_leaves_nothing_to_clean_up) {
        test_heap_t heap;
        rdmeta_allocator_t a = test_allocator(&heap);
        rdmeta_tmpabuf_t b;

        heap.fail_at = 1;
        rdmeta_tmpabuf_init(&b);
        rdmeta_tmpabuf_add(&b, 8);
        CHECK(!rdmeta_tmpabuf_start(&b, &a));
        CHECK(!rdmeta_tmpabuf_alloc(&b, 8) && !rdmeta_tmpabuf_finish(&b));
        CHECK(heap.calls == 1 && !heap.blocks);
}

TEST(test_an_empty_string_is_not_a_null_one) {
        rdmeta_tmpabuf_t b;
        rdmeta_str_t empty, null;
        void *object;

        rdmeta_tmpabuf_init(&b);
        rdmeta_tmpabuf_add_str(&b, test_str(""));
        rdmeta_tmpabuf_add_str(&b, test_str(NULL));
        CHECK(rdmeta_tmpabuf_start(&b, NULL));
        empty = rdmeta_tmpabuf_write_str(&b, test_str(""));
        null  = rdmeta_tmpabuf_write_str(&b, test_str(NULL));
        CHECK(empty.data && empty.len == 0 && empty.data[0] == '\0');
        CHECK(!null.data && null.len == 0);
        object = rdmeta_tmpabuf_finish(&b);
        CHECK(object);
        rdmeta_free(NULL, object, b.size);
}

TEST_MAIN()

/* reasons against an array of texts, and with allocations that fail. */
#include "store/reasons.h"

#include "support/testing.h"

typedef struct fixture {
        test_heap_t heap;
        rdmeta_allocator_t allocator;
        rdmeta_reasons_t reasons;
} fixture_t;

static void fixture_init(fixture_t *w) {
        uint64_t seed = test_seed;

        w->allocator = test_allocator(&w->heap);
        rdmeta_reasons_init(&w->reasons, &w->allocator, &seed);
}

static void fixture_check(const fixture_t *w) {
        CHECK(rdmeta_reasons_check(&w->reasons));
        CHECK(w->heap.bytes == w->reasons.bytes);
}

static void fixture_destroy(fixture_t *w) {
        fixture_check(w);
        rdmeta_reasons_destroy(&w->reasons);
        CHECK(!w->heap.blocks && !w->heap.bytes);
}

static uint32_t number(fixture_t *w, rdmeta_str_t reason) {
        uint16_t n;

        CHECK(!rdmeta_reasons_number(&w->reasons, reason, &n));
        fixture_check(w);
        return n;
}

static int is(const fixture_t *w, uint32_t n, rdmeta_str_t wanted) {
        const rdmeta_str_t text = rdmeta_reasons_text(&w->reasons, n);

        return text.data && text.len == wanted.len &&
               !memcmp(text.data, wanted.data, wanted.len);
}

static rdmeta_str_t nth(char *out, uint32_t i) {
        const rdmeta_str_t s = {out, (size_t)sprintf(out, "for %u", i)};

        return s;
}

FIXTURE_TEST(test_no_reason_is_zero_and_costs_nothing) {
        const rdmeta_str_t none = {NULL, 0};

        CHECK(number(w, none) == 0 && !w->heap.calls);
        CHECK(!rdmeta_reasons_text(&w->reasons, 0).data);
        CHECK(!rdmeta_reasons_text(&w->reasons, 1).data);
        CHECK(!rdmeta_reasons_text(&w->reasons, UINT32_MAX).data);
}

FIXTURE_TEST(test_equal_texts_share_a_number_and_others_do_not) {
        char a[] = "start", b[] = "start";

        CHECK(number(w, test_str(a)) == 1);
        a[0] = 'x'; /* it was copied */
        CHECK(number(w, test_str(b)) == 1);
        CHECK(number(w, test_str("star")) == 2);
        CHECK(number(w, test_str("")) == 3); /* an empty reason is a reason */
        CHECK(number(w, test_str("")) == 3);
        CHECK(is(w, 1, test_str("start")) && is(w, 3, test_str("")));
        CHECK(w->reasons.count == 3);
}

FIXTURE_TEST(test_a_text_does_not_move_when_others_come) {
        const char *texts[RDMETA_REASONS_MAX + 1];
        char text[32];
        uint32_t i;
        uint16_t n;

        for (i = 1; i <= RDMETA_REASONS_MAX; i++) {
                CHECK(!rdmeta_reasons_number(&w->reasons, nth(text, i), &n));
                CHECK(n == i);
                texts[i] = rdmeta_reasons_text(&w->reasons, i).data;
        }
        for (i = 1; i <= RDMETA_REASONS_MAX; i++) {
                CHECK(is(w, i, nth(text, i)));
                CHECK(rdmeta_reasons_text(&w->reasons, i).data == texts[i]);
                CHECK(!rdmeta_reasons_number(&w->reasons, nth(text, i), &n));
                CHECK(n == i);
        }
}

FIXTURE_TEST(test_a_text_beyond_the_last_number_gets_none) {
        char text[32];
        uint32_t i;
        size_t bytes;

        for (i = 1; i <= RDMETA_REASONS_MAX; i++)
                CHECK(number(w, nth(text, i)) == i);
        bytes = w->heap.bytes;
        CHECK(number(w, nth(text, i)) == 0);
        CHECK(!rdmeta_reasons_text(&w->reasons, i).data);
        CHECK(number(w, nth(text, 1)) == 1);
        CHECK(w->heap.bytes == bytes);
}

/* Returns where 300 bytes with `character` at `offset` are cut. */
static size_t cut(const char *character, size_t offset) {
        const size_t len = strlen(character);
        char text[300];
        rdmeta_str_t s = {text, sizeof(text)};

        memset(text, 'x', sizeof(text));
        memcpy(text + offset, character, len);
        s = rdmeta_reason_cut(s);
        CHECK(s.data == text);
        return s.len;
}

TEST(test_a_long_text_is_cut_between_characters) {
        const char *euro = "\xe2\x82\xac", *crab = "\xf0\x9f\xa6\x80";
        char text[300];
        rdmeta_str_t s = {text, RDMETA_REASON_MAX};
        fixture_t w;

        CHECK(cut("x", 0) == 255);
        CHECK(cut(euro, 252) == 255);
        CHECK(cut(euro, 253) == 253 && cut(euro, 254) == 254);
        CHECK(cut(euro, 255) == 255);
        CHECK(cut(crab, 251) == 255 && cut(crab, 252) == 252);
        CHECK(cut(crab, 253) == 253 && cut(crab, 254) == 254);
        CHECK(cut("\x80\x80\x80\x80\x80\x80", 250) == 255); /* not UTF-8 */
        memset(text, 'y', sizeof(text));
        CHECK(rdmeta_reason_cut(s).len == RDMETA_REASON_MAX);
        fixture_init(&w);
        CHECK(number(&w, s) == 1);
        s.len = sizeof(text);
        CHECK(number(&w, s) == 1);
        CHECK(rdmeta_reasons_text(&w.reasons, 1).len == RDMETA_REASON_MAX);
        fixture_destroy(&w);
}

FIXTURE_TEST(test_forgotten_texts_leave_no_trace) {
        size_t blocks, bytes;
        char text[32];
        uint32_t i, n;

        for (i = 1; i <= 40; i++)
                number(w, nth(text, i));
        blocks = w->heap.blocks;
        bytes  = w->heap.bytes;
        for (n = 900; n; n /= 3) {
                for (i = 41; i <= 41 + n; i++)
                        number(w, nth(text, i));
                rdmeta_reasons_forget(&w->reasons, 40);
                fixture_check(w);
                CHECK(w->heap.blocks == blocks && w->heap.bytes == bytes);
                for (i = 1; i <= 40; i++)
                        CHECK(number(w, nth(text, i)) == i);
                CHECK(!rdmeta_reasons_text(&w->reasons, 41).data);
        }
        CHECK(number(w, test_str("another")) == 41);
        rdmeta_reasons_forget(&w->reasons, 0);
        CHECK(!w->heap.blocks);
        CHECK(number(w, test_str("again")) == 1);
}

FIXTURE_TEST(test_without_memory_no_text_is_kept) {
        uint16_t n = 7;
        int k;

        for (k = 0; k < 2; k++) {
                w->heap.fail_at = w->heap.calls + 1 + (size_t)k;
                CHECK(rdmeta_reasons_number(&w->reasons, test_str("a"), &n) ==
                      RDMETA_ERR_NO_MEMORY);
                CHECK(n == 0 && !w->heap.blocks);
                fixture_check(w);
        }
        w->heap.fail_at = 0;
        CHECK(number(w, test_str("a")) == 1);
        w->heap.fail_at = w->heap.calls + 1;
        CHECK(rdmeta_reasons_number(&w->reasons, test_str("b"), &n) ==
              RDMETA_ERR_NO_MEMORY);
        fixture_check(w);
        CHECK(number(w, test_str("a")) == 1);
        CHECK(number(w, test_str("b")) == 2);
}

TEST_MAIN()

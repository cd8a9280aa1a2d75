#include "arrow/text.h"

#include "base/hash.h"

/* Returns how many bytes of s are one UTF-8 character; 0: s begins with none.
 * As RFC 3629 says, it accepts no overlong form, no surrogate, and nothing
 * above U+10FFFF. */
static size_t text_character(const uint8_t *s, size_t len) {
        uint32_t low = 0x80, high = 0xbf;
        size_t n = 0, i;

        if (s[0] < 0x80)
                return 1;
        if (s[0] >= 0xc2 && s[0] <= 0xdf)
                n = 2;
        else if (s[0] >= 0xe0 && s[0] <= 0xef)
                n = 3;
        else if (s[0] >= 0xf0 && s[0] <= 0xf4)
                n = 4;
        if (!n || n > len)
                return 0;
        if (s[0] == 0xe0)
                low = 0xa0;
        else if (s[0] == 0xed)
                high = 0x9f;
        else if (s[0] == 0xf0)
                low = 0x90;
        else if (s[0] == 0xf4)
                high = 0x8f;
        if (s[1] < low || s[1] > high)
                return 0;
        for (i = 2; i < n; i++)
                if (s[i] < 0x80 || s[i] > 0xbf)
                        return 0;
        return n;
}

static int text_is_ascii(const char *s, size_t len) {
        uint64_t bits = 0;
        size_t i;

        for (i = 0; i + 8 <= len; i += 8)
                bits |= rdmeta_load64(s + i);
        for (; i < len; i++)
                bits |= (uint8_t)s[i];
        return !(bits & UINT64_C(0x8080808080808080));
}

static const char replacement[3] = {'\xef', '\xbf', '\xbd'}; /* U+FFFD */

/* Returns the size of the text as UTF-8. Writes it, if `out` is not NULL. */
static size_t text_clean(char *out, const char *s, size_t len) {
        size_t size = 0, i = 0;

        while (i < len) {
                const size_t n =
                        text_character((const uint8_t *)s + i, len - i);
                const char *from  = n ? s + i : replacement;
                const size_t more = n ? n : sizeof(replacement);
                if (out)
                        memcpy(out + size, from, more);
                size += more;
                i += n ? n : 1;
        }
        return size;
}

size_t rdmeta_text_size(const char *s, size_t len) {
        return text_is_ascii(s, len) ? len : text_clean(NULL, s, len);
}

/* Copies the bytes as they are, or with replacements. Each replaced byte makes
 * the text longer, so an equal size means that there is none. */
void rdmeta_text_copy(char *out, size_t size, const char *s, size_t len) {
        if (size == len)
                memcpy(out, s, len);
        else
                text_clean(out, s, len);
}

void rdmeta_text_id(char out[RDMETA_ARROW_ID], const uint8_t id[16]) {
        static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                     "abcdefghijklmnopqrstuvwxyz"
                                     "0123456789-_";
        uint32_t bits = 0;
        int have = 0, i, n = 0;

        for (i = 0; i < 16; i++) {
                bits = bits << 8 | id[i];
                for (have += 8; have >= 6; have -= 6)
                        out[n++] = digits[bits >> (have - 6) & 63];
        }
        out[n] = digits[bits << (6 - have) & 63];
}

#include "support/cache_script.h"

#include <stdarg.h>

enum { SCRIPT = 4096, WORDS = 8 };

typedef struct script {
        cw_t w;
        int32_t by[WORDS];
        size_t n_by, answers;
        char brokers[64];
        const char *action; /* for the message of a failure */
} script_t;

#define EXPECT(cond)                                                         \
        do {                                                                 \
                if (!(cond)) {                                               \
                        fprintf(stderr, "in \"%s\":\n", s->action);          \
                        CHECK(cond);                                         \
                }                                                            \
        } while (0)

/* Cuts `text` at the separators, and spaces off both ends of each part. Returns
 * how many parts there are. */
static size_t split(char *text, const char *separator, char **parts,
                    size_t max) {
        size_t n = 0;
        char *next, *end;

        for (; text; text = next) {
                CHECK(n < max);
                next = strstr(text, separator);
                if (next) {
                        *next = '\0';
                        next += strlen(separator);
                }
                text += strspn(text, " ");
                for (end = text + strlen(text); end > text && end[-1] == ' ';)
                        *--end = '\0';
                parts[n++] = text;
        }
        return n;
}

static void answer(script_t *s, const char *topics, int kept) {
        if (s->n_by)
                s->w.broker = s->by[s->answers++ % s->n_by];
        EXPECT(!cw_say(&s->w, topics));
        EXPECT(kept < 0 || s->w.applied.kept_back == (uint32_t)kept);
}

static void set_by(script_t *s, char *list) {
        char *ids[WORDS];
        size_t i;

        s->n_by    = split(list, ",", ids, WORDS);
        s->answers = 0;
        for (i = 0; i < s->n_by; i++)
                s->by[i] = atoi(ids[i]);
}

static void insist(script_t *s, const char *topics) {
        int i;

        for (i = 1; i <= RDMETA_REWIND_ANSWERS; i++) {
                s->w.broker = 1 + i % 2;
                answer(s, topics, i < RDMETA_REWIND_ANSWERS);
                cw_pass(&s->w, 5 * CW_S / 4);
        }
}

/* Does one action, and returns 0 if it is not of this kind. */
static int act(script_t *s, const char *verb, char *rest, int round) {
        char *in_turn[WORDS];
        int kept = !strcmp(verb, "kept")    ? 1
                   : !strcmp(verb, "taken") ? 0
                   : !strcmp(verb, "say")   ? -1
                                            : -2;

        if (kept > -2)
                answer(s, in_turn[(size_t)round %
                                  split(rest, " / ", in_turn, WORDS)],
                       kept);
        else if (!strcmp(verb, "all"))
                EXPECT(!cw_all(&s->w, rest));
        else if (!strcmp(verb, "insist"))
                insist(s, rest);
        else if (!strcmp(verb, "by"))
                set_by(s, rest);
        else if (!strcmp(verb, "brokers"))
                s->w.brokers = strcpy(s->brokers, rest);
        else if (!strcmp(verb, "candidates"))
                s->w.candidates = atoi(rest);
        else if (!strcmp(verb, "wait"))
                cw_pass(&s->w, (int64_t)(atof(rest) * 1e6 + 0.5));
        else if (!strcmp(verb, "at"))
                s->w.now.mono_us = strtoll(rest, NULL, 10);
        else
                return 0;
        return 1;
}

static void expect(script_t *s, const char *verb, const char *rest) {
        int p = 0, leader = 0, epoch = 0;
        const int n = sscanf(rest, "%d %d %d", &p, &leader, &epoch);

        if (!strcmp(verb, "sent")) {
                cw_sent(&s->w);
                if (n > 0)
                        s->w.sent_version = (uint64_t)p;
        } else if (!strcmp(verb, "hint")) {
                EXPECT(cw_leader_hint(&s->w, "t", p, leader, epoch, NULL));
        } else if (!strcmp(verb, "changed")) {
                EXPECT(s->w.applied.changed == (uint32_t)p);
        } else if (!strcmp(verb, "is")) {
                CHECK_TEXT(cw_topic(&s->w, "t"), rest);
        } else if (!strcmp(verb, "leader")) {
                EXPECT(cw_leader(&s->w, "t", p) == leader);
        } else if (!strcmp(verb, "last")) {
                EXPECT(cw_leader_stale(&s->w, "t", p) == leader);
        } else {
                EXPECT(!strcmp(verb, "stale"));
                EXPECT(cw_leader(&s->w, "t", p) == RDMETA_STALE);
        }
}

static void step(script_t *s, const char *text, int round) {
        char copy[SCRIPT], *actions[WORDS], *verb, *rest;
        size_t i, n;

        strcpy(copy, text);
        n = split(copy, " & ", actions, WORDS);
        for (i = 0; i < n; i++) {
                s->action = text;
                verb      = actions[i];
                rest      = verb + strcspn(verb, " ");
                if (*rest)
                        *rest++ = '\0';
                if (!act(s, verb, rest, round))
                        expect(s, verb, rest);
        }
}

void cw_script(void (*conf)(rdmeta_conf_t *conf), const char *script, ...) {
        char text[SCRIPT], *steps[64];
        static script_t s;
        size_t i, n;
        va_list args;

        va_start(args, script);
        CHECK(vsnprintf(text, sizeof(text), script, args) < SCRIPT);
        va_end(args);
        memset(&s, 0, sizeof(s));
        cw_init(&s.w, conf);
        n = split(text, "|", steps, 64);
        for (i = 0; i < n; i++) {
                int at = 0, times = 1, round;

                if (sscanf(steps[i], "%dx %n", &times, &at) != 1 || !at)
                        times = 1, at = 0;
                for (round = 0; round < times; round++)
                        step(&s, steps[i] + at, round);
        }
        cw_destroy(&s.w);
}

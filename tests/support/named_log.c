/*
 * Stops a process at the step in which a file of Delta's log gets its name.
 *
 * LD_PRELOAD puts it before libc, as delta-rs has no hook. TEST_LOG is "log",
 * to stop before the step, or "logged", to stop behind it; a line of the
 * output says that the process waits there.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef int (*linkat_t)(int, const char *, int, const char *, int);

static void stop_at(const char *step, const char *name)
{
    const char *wanted = getenv("TEST_LOG");

    if (wanted == NULL || strcmp(wanted, step) != 0)
        return;
    if (strstr(name, "/_delta_log/0") == NULL)
        return;
    dprintf(STDOUT_FILENO, "%s\n", step);
    for (;;)
        pause();
}

int linkat(int from, const char *path, int to, const char *name, int flags)
{
    linkat_t real = (linkat_t)dlsym(RTLD_NEXT, "linkat");
    int done;

    stop_at("log", name);
    done = real(from, path, to, name, flags);
    stop_at("logged", name);
    return done;
}

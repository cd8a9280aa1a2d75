# The compiler flags, here and nowhere else: the Makefile includes this file
# and setup.py reads it. Lines of `NAME = words`, nothing cleverer.
#
# Baseline of the architecture (no -march=native): figures hold for the wheel
# as built. Wider instructions only by run-time dispatch.
# NANOARROW_DLL is nothing: its functions are not for others to call.
RDMETA_CFLAGS = -O2 -std=c11 -D_GNU_SOURCE -DNANOARROW_DLL= -pthread -fvisibility=hidden
# Calls from the binding into the library, which are in one file, are direct.
RDMETA_LDFLAGS = -pthread -Wl,-Bsymbolic-functions
# Warnings are errors in `make lint`, and only there: a newer compiler's new
# warning must not break anybody's build.
RDMETA_WARNINGS = -Wall -Wextra -Wstrict-prototypes -Wshadow

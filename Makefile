# Everything a contributor types. Each target makes what it needs.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
# Compiling uses every core; what prints is one after the other.
JOBS ?= $(shell nproc)
MAKEFLAGS += --no-builtin-rules $(if $(filter 0,$(MAKELEVEL)),-j$(JOBS))
.DEFAULT_GOAL := help
.SECONDARY:

include csrc/flags.mk

PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
ifeq ($(origin CC),default)
CC := gcc
endif

# V=1 shows the compiler's command lines.
Q := $(if $(V),,@)

# Seconds for all fuzz targets together, and the bound of one C test.
FUZZ_SECONDS ?= 60
C_TIMEOUT ?= 300

VERSION := $(shell sed -n 's/^__version__ = "\(.*\)"/\1/p' rdmeta/_version.py)
SONAME := librdmeta.so.$(firstword $(subst ., ,$(VERSION)))

# Files by folder, however deep they lie.
files = $(sort $(shell find $(1) -type f -name '$(2)'))

C_SOURCES := $(call files,csrc,*.c)
C_OWN := $(filter-out csrc/vendor/%,$(C_SOURCES))
C_HEADERS := $(filter-out csrc/vendor/%,$(call files,csrc,*.h))
C_SUPPORT := $(call files,tests/c/support,*.c)
C_TESTS := $(call files,tests/c,test_*.c)
# Tests have threads if their name or their first line says so.
C_THREAD_TESTS := $(sort $(call files,tests/c,test_*thread*.c) \
	$(foreach t,$(C_TESTS),$(shell head -n 1 $(t) | grep -q 'tsan' && echo $(t))))
FUZZ_TARGETS := $(wildcard fuzz/fuzz_*.c)
C_BENCHES := $(call files,bench/c,*.c)
C_PUBLIC := $(wildcard csrc/include/*.h)

.PHONY: help
help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' \
		$(MAKEFILE_LIST)

# ---------------------------------------------------------------- Python

$(PY):
	$(PYTHON) -m venv $(VENV)

BUILD_INPUTS := setup.py pyproject.toml constraints.txt csrc/flags.mk \
	$(C_SOURCES) $(C_HEADERS) $(call files,rdmeta,*.pyx) \
	$(call files,rdmeta,*.px[di])

$(VENV)/.built: $(BUILD_INPUTS) | $(PY)
	@echo "installing into $(VENV) (the first time: some minutes)"
	$(PY) -m pip install -q -c constraints.txt setuptools Cython
	$(PY) -m pip install -q --no-build-isolation -c constraints.txt -e '.[dev]'
	@touch $@

.PHONY: build demo test test-all nightly pytest packaging scenarios bench bench-spark bench-peers wheel
build: $(VENV)/.built ## .venv, packages and the extension, in place

demo: build ## the whole path on an embedded cluster; BOOTSTRAP=host:port: yours
	$(PY) -m rdmeta.demo

# What pytest leaves out: the parts of real systems that take minutes (`make test-all`), what only
# `make nightly` runs, and what has a target of its own.
OTHERS := packaging or real or nightly
# Tests wait for servers and other processes about as long as they compute.
PYTEST = $(PY) -m pytest -n $(shell expr 2 \* $(JOBS)) --dist loadgroup --no-loadscope-reorder

test: build optional-jars ## C tests, Python tests, proofs on real Kafka and Spark
	@$(MAKE) --no-print-directory ctest
	@$(MAKE) --no-print-directory pytest

test-all: build optional-jars ## and those marked slow: what CI runs
	@$(MAKE) --no-print-directory ctest
	$(PYTEST) -m "not ($(OTHERS))"

# Without Maven, or without what it fetches, the tests of real Kafka are skipped.
.PHONY: optional-jars
optional-jars: build
	@if command -v mvn >/dev/null; then $(MAKE) --no-print-directory kafka-jars || \
		echo "no Kafka was fetched: its tests are skipped"; fi

# This takes longer than CI may: an hour of threads, one of fuzzing, a minute of damaged frames, a
# million seeds of the simulation, five rounds of each scenario and of the command on Apache Kafka.
NIGHTLY_SECONDS ?= 3600

nightly: build ## hours: stress, fuzzing, ASan, packaging, a million seeds, scenarios
	@$(MAKE) --no-print-directory stress STRESS_SECONDS=$(NIGHTLY_SECONDS)
	@$(MAKE) --no-print-directory fuzz FUZZ_SECONDS=$(NIGHTLY_SECONDS)
	@$(MAKE) --no-print-directory asan
	@$(MAKE) --no-print-directory packaging
	RDMETA_DAMAGE_SECONDS=60 $(PY) -m pytest -k damaged tests/net tests/client
	RDMETA_SEEDS=100 $(PY) -m pytest -m "" tests/pipeline/test_random_fleets.py
	RDMETA_KILLS=every $(PY) -m pytest tests/pipeline/test_killed*.py
	@if command -v mvn >/dev/null; then $(MAKE) --no-print-directory table-jars; fi
	@$(MAKE) --no-print-directory .cache/airflow || echo "no Airflow: its test is skipped"
	RDMETA_KILLS=every $(PY) -m pytest -m nightly
	RDMETA_KILLS=every $(PY) -m pytest tests/spark
	@$(MAKE) --no-print-directory $(OLDER_SPARKS:%=.cache/pyspark/%)
	@$(MAKE) --no-print-directory oldest
	for spark in $(OLDER_SPARKS); do RDMETA_KILLS=every RDMETA_PYSPARK=$$spark \
		PYTHONPATH=$(CURDIR)/.cache/pyspark/$$spark:$(CURDIR) \
		$(PY) -m pytest -m "not ($(OTHERS)) or nightly" tests/spark; done
	RDMETA_QUIET_SECONDS=30 $(PY) -m pytest -k no_second_line tests/client
	@$(MAKE) --no-print-directory simulate SEEDS=1000000
	@$(MAKE) --no-print-directory scenarios
	for round in 1 2 3 4 5; do $(PY) -m pytest -m "not real" tests/real/test_*_on_kafka.py; done
	RDMETA_AWAY_SECONDS=60 $(PY) -m pytest -m "not real" tests/real/test_pipeline_on_kafka.py
	RDMETA_SEEDS=50 $(PY) -m pytest tests/pipeline/gold --ignore tests/pipeline/gold/test_gold_is_truth.py
	RDMETA_SEEDS=200 $(PY) -m pytest tests/pipeline/gold/test_gold_is_truth.py -k random
	RDMETA_SEEDS=10 $(PY) -m pytest tests/report/test_sections.py tests/report/test_known_truth.py
	RDMETA_SEEDS=40 $(PY) -m pytest tests/spark/test_gold_frames.py -k equal_rows_as_data_frames

# The newest patch of each older Spark; CI runs the one of constraints.txt.
OLDER_SPARKS := 4.0.5 4.1.4 4.2.1

.cache/pyspark/%: | $(PY)
	@echo "fetching Spark $*"
	@rm -rf $@ $@.part
	@$(PY) -m pip install -q --no-deps --target $@.part pyspark==$*
	@mv $@.part $@

# Airflow, for a test of examples/spark; it shares no environment with other packages.
AIRFLOW_VERSION := 3.3.2

.cache/airflow:
	@rm -rf $@
	@$(PYTHON) -m venv $@
	@$@/bin/python -m pip install -q apache-airflow==$(AIRFLOW_VERSION) \
		apache-airflow-providers-apache-spark || { rm -rf $@; exit 1; }

# The lower bounds of pyproject.toml. An older confluent-kafka has no id of a cluster and lists
# brokers that are down, and the runner of click 8.1 mixes stdout and stderr.
build/oldest/.made: constraints-oldest.txt | $(PY)
	@rm -rf $(@D)
	@$(PY) -m pip install -q --no-deps --target $(@D) -r $<
	@touch $@

.PHONY: oldest
oldest: build build/oldest/.made ## tests of what users bring, with the oldest packages
	PYTHONPATH=$(CURDIR)/build/oldest:$(CURDIR) $(PY) -m pytest \
		-k "not gives_what_confluent_kafka_gives[cluster and not could_not_keep and not that_go_and_come" \
		tests/metrics tests/test_embedded.py tests/test_ffi.py tests/net/test_sasl.py \
		tests/cli/test_app.py tests/cli/test_completion.py tests/cli/test_output.py \
		tests/cli/test_image_command.py tests/cli/test_watch.py tests/compat/test_confluent.py \
		tests/core/test_arrow_tables.py tests/core/test_fold.py tests/history \
		tests/pipeline/test_run.py tests/pipeline/test_tables.py tests/pipeline/test_delta.py \
		tests/pipeline/test_iceberg.py tests/pipeline/gold tests/report/test_page.py \
		tests/report/test_sections.py

pytest: build ## Python tests of `make test`; PYTEST_ARGS=: some of them
	$(if $(PYTEST_ARGS),$(PY) -m pytest $(PYTEST_ARGS),$(PYTEST) -m "not (slow or $(OTHERS))")

# Brokers for tests/real, kept in .cache; without Maven those tests are skipped.
KAFKA_VERSIONS := 4.3.0 3.9.1

.PHONY: kafka-jars
kafka-jars: $(KAFKA_VERSIONS:%=.cache/kafka/%) spark-kafka-jars ## Apache Kafka, for tests/real

.cache/kafka/%: tests/real/pom.xml
	@echo "fetching Kafka $*"
	@rm -rf $@ $@.part
	@mvn -q -B -ntp -f $< -Dkafka.version=$* dependency:copy-dependencies \
		-DincludeScope=runtime -DoutputDirectory=$(CURDIR)/$@.part
	@mv $@.part $@ && touch $@

# One after the other: two Mavens do not share a local repository.
kafka_before :=
$(foreach v,$(KAFKA_VERSIONS), \
	$(eval .cache/kafka/$v: | $(kafka_before)) \
	$(eval kafka_before := .cache/kafka/$v))

# axe-core finds what hinders readers of a page: for tests/report, with Chromium.
AXE_VERSION := 4.14.1

.PHONY: axe
axe: .cache/axe-core/$(AXE_VERSION) ## axe-core, for tests/report; needs npm

.cache/axe-core/%:
	@rm -rf $@ $@.part && mkdir -p $@.part
	@cd $@.part && npm pack --silent axe-core@$* && tar xzf axe-core-$*.tgz --strip-components=1
	@mv $@.part $@

# Spark's Kafka connector, for a test of tests/real. Maven Central has no 4.3.0 of it;
# that of 4.2.0 runs in both.
SPARK_KAFKA_VERSION := 4.2.0

.PHONY: spark-kafka-jars
spark-kafka-jars: .cache/spark-kafka/$(SPARK_KAFKA_VERSION)

.cache/spark-kafka/%: tests/spark/pom.xml | $(KAFKA_VERSIONS:%=.cache/kafka/%)
	@echo "fetching Spark's Kafka connector $*"
	@rm -rf $@ $@.part
	@mvn -q -B -ntp -f $< -Dspark.version=$* dependency:copy-dependencies \
		-DincludeScope=runtime -DoutputDirectory=$(CURDIR)/$@.part
	@mv $@.part $@ && touch $@

# Delta and Iceberg for Spark; no release of theirs is for the newest Spark.
.PHONY: table-jars
table-jars: .cache/table-jars .cache/pyspark/4.2.1 .cache/pyspark/4.1.4 ## Delta and Iceberg for Spark, for tests/spark

.cache/table-jars: tests/spark/tables.xml
	@rm -rf $@ $@.part
	@mvn -q -B -ntp -f $< dependency:copy-dependencies \
		-DincludeScope=runtime -DoutputDirectory=$(CURDIR)/$@.part
	@mv $@.part $@ && touch $@

# Rounds of each scenario. Five or more also write docs/internals/scenarios.md.
SCENARIO_ROUNDS ?= 5

scenarios: build optional-jars ## clients on Apache Kafka that fails; writes their page
	SCENARIO_ROUNDS=$(SCENARIO_ROUNDS) $(PY) -m pytest -m real tests/real $(PYTEST_ARGS)

.PHONY: screenshots
screenshots: build ## the pictures of README and docs/report.md; needs chromium
	$(PY) tools/screenshots.py

packaging: build ## sdist and wheel, built and used outside the tree
	$(PY) -m pytest -m packaging $(PYTEST_ARGS)

bench: build ## measure, print a table, write bench/results.json
	$(PY) -m bench

bench-spark: build ## the pipeline on Spark beside other engines: an hour at full size
	$(PY) -m bench --spark $(SPARK_ARGS)

bench-peers: build ## other clients beside it; installs what it needs
	$(PY) -m bench.peers $(PEERS_ARGS)

wheel: build ## dist/: sdist and wheel
	PIP_CONSTRAINT=$(CURDIR)/constraints.txt $(PY) -m build

# --------------------------------------------------------------------- C

# One set of objects for each way of compiling: build/FLAVOUR/...
flags_lib := -DNDEBUG -fPIC
flags_ctest := -O1 -g -DRDMETA_POISON
flags_stress := -g -DRDMETA_POISON
flags_asan := -O1 -g -fno-omit-frame-pointer \
	-fsanitize=address,undefined -fno-sanitize-recover=all
flags_tsan := -O1 -g -DRDMETA_POISON -fno-omit-frame-pointer \
	-fsanitize=thread
flags_lint := -Werror
flags_libfuzzer := $(flags_asan) -fsanitize=fuzzer-no-link
cc_libfuzzer := clang

objects = $(patsubst %.c,build/$(1)/%.o,$(2))

# Vendored code is compiled without warnings: it is not changed here.
define flavour
build/$(1)/%.o: %.c csrc/flags.mk
	@mkdir -p $$(@D)
	@echo "  cc $$@"
	$(Q)$(or $(cc_$(1)),$(CC)) $(CFLAGS) $(RDMETA_CFLAGS) \
		$$(if $$(filter csrc/vendor/%,$$<),-w,$(RDMETA_WARNINGS)) \
		$(flags_$(1)) -Icsrc -Icsrc/include -Itests/c -MMD -MP -c -o $$@ $$<

build/$(1)/core.a: $(call objects,$(1),$(C_SOURCES))
	@rm -f $$@
	$(Q)$(AR) rcs $$@ $$^

build/$(1)/bin/%: build/$(1)/tests/c/%.o \
		$(call objects,$(1),$(C_SUPPORT)) build/$(1)/core.a
	@mkdir -p $$(@D)
	$(Q)$(or $(cc_$(1)),$(CC)) $(LDFLAGS) $(flags_$(1)) -o $$@ $$^ \
		$(RDMETA_LDFLAGS)
endef
$(foreach f,lib ctest stress asan tsan lint libfuzzer,$(eval $(call flavour,$(f))))

-include $(shell test -d build && find build -name '*.d')

binaries = $(patsubst tests/c/%.c,build/$(1)/bin/%,$(2))

.PHONY: ctest asan tsan
ctest: $(call binaries,ctest,$(C_TESTS)) ## C unit tests, asserts on
	@tools/run-c-tests $(C_TIMEOUT) $^

asan: $(call binaries,asan,$(C_TESTS)) ## the same under ASan and UBSan
	@ASAN_OPTIONS=detect_stack_use_after_return=1 \
		UBSAN_OPTIONS=print_stacktrace=1 \
		tools/run-c-tests $(C_TIMEOUT) $^

tsan: $(call binaries,tsan,$(C_THREAD_TESTS)) ## C tests with threads under TSan
	@TSAN_OPTIONS=halt_on_error=1 \
		tools/run-c-tests $(C_TIMEOUT) $^

# ---------------------------------------------------------------- stress

STRESS_SECONDS ?= 3600

.PHONY: stress
stress: build/stress/bin/stress build ## threads over checked values for STRESS_SECONDS; memory
	@echo "C and Python beside each other, $(STRESS_SECONDS) s each"
	@trap 'kill $$python 2>/dev/null || :' EXIT; \
	STRESS_SECONDS=$(STRESS_SECONDS) $(PY) -m pytest -q -s tests/core/test_stress.py & \
	python=$$!; timeout $$((3 * $(STRESS_SECONDS) + 300)) $< $(STRESS_SECONDS); \
	wait $$python

# ------------------------------------------------------------ simulation

# SEED=n runs one seed alone and prints all of its events; MISTAKE= plants one.
SIMULATE := $(if $(SEED),--seed $(SEED),$(if $(FIRST),--first $(FIRST)) \
	$(if $(SEEDS),--seeds $(SEEDS)) \
	$(if $(SIMULATE_SECONDS),--seconds $(SIMULATE_SECONDS)) \
	$(if $(SEEDS)$(SIMULATE_SECONDS),,--seconds 60))

.PHONY: simulate mistakes
simulate: build ## the client in a simulated cluster: SEEDS=, SIMULATE_SECONDS=, SEED=
	@$(PY) tests/simulation $(SIMULATE) $(if $(MISTAKE),--mistake '$(MISTAKE)')

mistakes: build ## the seeds that find the planted mistakes, anew
	$(PY) tests/simulation --find-mistakes

# ------------------------------------------------------------------ fuzz

# libFuzzer wants clang and its runtime; without them the mutation driver
# runs the same targets under gcc and ASan.
LIBFUZZER = $(shell echo 'int LLVMFuzzerTestOneInput(const char *p, long n); \
	int LLVMFuzzerTestOneInput(const char *p, long n) {return !p && n;}' | \
	clang -x c -fsanitize=fuzzer,address - -o /dev/null 2>/dev/null && echo yes)

.PHONY: fuzz fuzz-libfuzzer fuzz-driver
fuzz: ## every target for FUZZ_SECONDS in all
	@$(MAKE) --no-print-directory \
		$(if $(LIBFUZZER),fuzz-libfuzzer,fuzz-driver)

FUZZ_SUPPORT := tests/c/support/cache_check.o tests/c/support/wire_gen.o

build/libfuzzer/bin/fuzz_%: build/libfuzzer/fuzz/fuzz_%.o \
		$(addprefix build/libfuzzer/,$(FUZZ_SUPPORT)) build/libfuzzer/core.a
	@mkdir -p $(@D)
	$(Q)clang $(LDFLAGS) $(flags_libfuzzer) -fsanitize=fuzzer -o $@ $^ \
		$(RDMETA_LDFLAGS)

build/asan/bin/fuzz_%: build/asan/fuzz/fuzz_%.o build/asan/fuzz/driver.o \
		$(addprefix build/asan/,$(FUZZ_SUPPORT)) build/asan/core.a
	@mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS) $(flags_asan) -o $@ $^ $(RDMETA_LDFLAGS)

.PHONY: image-seeds
image-seeds: build/ctest/bin/image_seeds ## fuzz/corpus/fuzz_image anew
	$< fuzz/corpus/fuzz_image

build/ctest/bin/image_seeds: build/ctest/fuzz/image_seeds.o \
		$(call objects,ctest,$(C_SUPPORT)) build/ctest/core.a
	@mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS) $(flags_ctest) -o $@ $^ $(RDMETA_LDFLAGS)

fuzz-libfuzzer: $(patsubst fuzz/%.c,build/libfuzzer/bin/%,$(FUZZ_TARGETS))
	@echo "fuzzing with clang and libFuzzer"
	@tools/run-fuzz libfuzzer $(FUZZ_SECONDS) $^

fuzz-driver: $(patsubst fuzz/%.c,build/asan/bin/%,$(FUZZ_TARGETS))
	@echo "fuzzing with the mutation driver under gcc and ASan"
	@tools/run-fuzz driver $(FUZZ_SECONDS) $^

# ------------------------------------------------------------------ lint

LINT_C := $(C_OWN) $(foreach d,tests/c fuzz,$(call files,$(d),*.c)) $(C_BENCHES)
# A list that is empty by mistake would pass.
found = $(if $($(1)),,$(error $(1) is empty: there is nothing to check))

.PHONY: lint lint-c lint-python
lint: ## ruff, mypy --strict, stubs as built, C warnings as errors, generated files
	@$(MAKE) --no-print-directory lint-c
	@$(MAKE) --no-print-directory lint-python

lint-c: $(call objects,lint,$(LINT_C))
	$(foreach l,C_OWN C_HEADERS C_PUBLIC C_SUPPORT C_TESTS C_BENCHES FUZZ_TARGETS, \
		$(call found,$(l)))
	@for header in $(C_HEADERS); do \
		$(CC) $(RDMETA_CFLAGS) $(RDMETA_WARNINGS) -Werror -Icsrc \
			-Icsrc/include -fsyntax-only -include $$header \
			-x c /dev/null; \
	done
	@if command -v g++ >/dev/null; then for header in $(C_PUBLIC); do \
		g++ -Wall -Wextra -Werror -Icsrc/include -fsyntax-only \
			-include $$header -x c++ /dev/null; \
	done; fi

lint-python: build
	$(PY) -m ruff check .
	$(PY) -m mypy
	$(PY) -m mypy.stubtest rdmeta._core --concise \
		--mypy-config-file pyproject.toml --allowlist tools/stubtest.allow
	$(PY) tools/generated.py --check

# ------------------------------------------------------------- librdmeta

.PHONY: librdmeta
LIBRDMETA := $(addprefix build/lib/,librdmeta.a librdmeta.so pkgconfig/rdmeta.pc)

librdmeta: $(LIBRDMETA) ## build/lib: for programs without Python
	@mkdir -p build/include
	@cp csrc/include/*.h build/include/

build/lib/librdmeta.a: build/lib/core.a
	@cp $< $@

build/lib/librdmeta.so: $(call objects,lib,$(C_SOURCES))
	@mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS) -shared -Wl,-soname,$(SONAME) -Wl,-z,defs \
		-o build/lib/$(SONAME) $^ $(RDMETA_LDFLAGS)
	$(Q)ln -sf $(SONAME) $@

build/lib/pkgconfig/rdmeta.pc: csrc/rdmeta.pc.in rdmeta/_version.py Makefile
	@mkdir -p $(@D)
	$(Q)sed 's|@VERSION@|$(VERSION)|' $< > $@

PREFIX ?= /usr/local
INSTALLED = $(DESTDIR)$(PREFIX)

.PHONY: install
install: librdmeta ## headers, librdmeta and its .pc into $(DESTDIR)$(PREFIX)
	install -d $(INSTALLED)/include $(INSTALLED)/lib/pkgconfig
	install -m 644 csrc/include/*.h $(INSTALLED)/include
	install -m 644 build/lib/librdmeta.a $(INSTALLED)/lib
	install -m 755 build/lib/$(SONAME) $(INSTALLED)/lib
	ln -sf $(SONAME) $(INSTALLED)/lib/librdmeta.so
	install -m 644 build/lib/pkgconfig/rdmeta.pc $(INSTALLED)/lib/pkgconfig

# ----------------------------------------------------------------- clean

.PHONY: clean distclean
clean: ## what was built; .venv stays
	rm -rf build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache \
		rdmeta/_core.c rdmeta/_core.*.so $(VENV)/.built

distclean: clean ## .venv too; Kafka's jars stay, in .cache
	rm -rf $(VENV)

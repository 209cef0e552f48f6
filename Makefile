# Thin: each target is one CMake preset (CMakePresets.json) or one script. `make test` and `make demo` need nothing done before.
PRESET ?= release
PREFIX ?= /usr/local
SECONDS_EACH ?= 60
RUNS_EACH ?= -1
BUILD  := build/$(PRESET)
# WARNINGS=errors: as CI builds. A build folder stays as it was last told.
WARNINGS ?=
CONFIGURE := $(if $(filter errors,$(WARNINGS)),-DCAIRN_WARNINGS_AS_ERRORS=ON)

.DELETE_ON_ERROR:
.PHONY: help build demo test test-long test-faults bench bench-codecs bench-durable bench-mcrengine bench-orchestration race calibrate simulate-papers simulate-mcrengine sim exhaustive mutants fuzz fmt tidy clean install setup

help:
	@echo "make demo       install what is missing, build what it needs, checkpoint LAMMPS, kill it, restore it, compare"
	@echo "make test       install what is missing, build, run all tests (PRESET=dev|release|asan|tsan)"
	@echo "make test-long  the tests that take hours"
	@echo "make test-faults  every fault at every step of a flush, on a small cluster (ARGS='node killed'); root only, half an hour"
	@echo "make bench      capture, flush and restore against what the machine can do (ARGS=--help)"
	@echo "make bench-codecs  what codecs, merging schemes and others' compressors make of checkpoints (ARGS='FOLDER...', --help)"
	@echo "make bench-durable how soon checkpoints are durable on slow storage, by how they are stored (ARGS='FOLDER...'); below a folder of this machine: ARGS='--sink PATH FOLDER...'"
	@echo "make bench-mcrengine  mcrEngine's five ways to checkpoint and restart, and Cairn's, on slow storage; root only (ARGS='FOLDER...', --short)"
	@echo "make bench-orchestration  orcheck's layouts of a file a process, striped, on one server, one after the other, and Cairn's, on slow storage; root only (ARGS=--short)"
	@echo "make race       Cairn and others on a small cluster with real networks and storage; root only (ARGS=--help)"
	@echo "make calibrate  the race's settings, simulated: how far cairn simulate is from what was measured"
	@echo "make simulate-papers  the papers' figures, simulated, beside the numbers of their text (ARGS=--scale: and what they did not have)"
	@echo "make simulate-mcrengine  mcrEngine's Figures 10 to 13 and Cairn's modes, simulated up to 15,408 processes"
	@echo "make sim        20,000 random simulated clusters with faults (ARGS='--from 1 --count 50000', '--seed 7', --help)"
	@echo "make exhaustive  every fault at every step of a small job, then pairs of them until a million states (an hour; ARGS=--help)"
	@echo "make mutants    plants bugs in the engine, one at a time: the simulated clusters must find each (ARGS='--only NAME', --list), or the tests that it names (--by-tests)"
	@echo "make fuzz       feed the decoders hostile bytes (SECONDS_EACH=$(SECONDS_EACH), RUNS_EACH=$(RUNS_EACH))"
	@echo "make fmt        format the sources       make tidy     clang-tidy"
	@echo "make build      all (PRESET=dev|release|asan|tsan; WARNINGS=errors: a warning ends it, as in CI)"
	@echo "make install    PREFIX=$(PREFIX)         make clean    remove build/"

setup:
	@scripts/setup

build: setup
	@scripts/build $(PRESET) $(CONFIGURE)

# Who runs one thing need not build all: a newcomer's demonstration comes after a third of the work.
demo: setup
	@scripts/build $(PRESET) $(CONFIGURE) cairn_demo
	@scripts/demo $(BUILD)

# What the testbed needs is installed where that is possible; elsewhere its tests are skipped.
test: build
	@test "$$(id -u)" != 0 || scripts/setup testbed || echo "the tests on the testbed are skipped"
	@ctest --preset $(PRESET) --output-junit $(CURDIR)/$(BUILD)/tests.xml || { scripts/show-failed $(BUILD)/tests.xml; exit 1; }
	@scripts/show-skipped $(BUILD)/tests.xml

test-long: build
	@ctest --preset release-long

test-faults: build
	@test "$$(id -u)" = 0 || { echo "make test-faults needs root: it makes network namespaces and mounts"; exit 1; }
	@scripts/setup testbed
	@CAIRN_BUILD=$(BUILD) tests/faults_test.py --all $(ARGS)

bench: build
	@bench/run $(BUILD) $(ARGS)

# On folders of one's own: ARGS='FOLDER...'; without them on sets that it makes. Others' codecs take part where they are installed (bench/README.md).
bench-codecs:
	@scripts/setup codecs
	@scripts/build $(PRESET) $(CONFIGURE) cairn_codecs cairn_codecs_tables
	@bench/codecs_tables $(BUILD) $(ARGS)

# On a cluster whose servers are slow beside a codec: ARGS='FOLDER...'. Below a folder of this machine, without root: ARGS='--sink PATH FOLDER...'.
bench-durable: build
ifeq ($(filter --sink%,$(ARGS)),)
	@test "$$(id -u)" = 0 || { echo "make bench-durable needs root: it makes network namespaces and mounts (but with ARGS='--sink PATH FOLDER...')"; exit 1; }
	@scripts/setup testbed
endif
	@scripts/python-environment $(BUILD)/python
	@bench/durable $(BUILD) $(ARGS)

# mcrEngine's ways beside Cairn's, on the same cluster: ARGS='FOLDER...', '--short FOLDER'.
bench-mcrengine: build
	@test "$$(id -u)" = 0 || { echo "make bench-mcrengine needs root: it makes network namespaces and mounts"; exit 1; }
	@scripts/setup testbed
	@scripts/build $(PRESET) $(CONFIGURE) cairn_codecs_tables
	@scripts/python-environment $(BUILD)/python
	@bench/mcrengine $(BUILD) $(ARGS)

# orcheck's Figures 5 to 8 on the testbed.
bench-orchestration: build
	@test "$$(id -u)" = 0 || { echo "make bench-orchestration needs root: it makes network namespaces and mounts"; exit 1; }
	@scripts/setup testbed
	@bench/orchestration $(BUILD) $(ARGS)

race: build
	@test "$$(id -u)" = 0 || { echo "make race needs root: it makes network namespaces and mounts"; exit 1; }
	@scripts/setup testbed
	@bench/race $(BUILD) $(ARGS)

# How far `cairn simulate` is from what the race measured; neither root nor the testbed is needed.
calibrate: build
	@bench/calibrate $(BUILD) $(ARGS)

simulate-papers: build
	@bench/papers $(BUILD) $(ARGS)

simulate-mcrengine: build
	@bench/mcrengine_figures.py $(BUILD) $(ARGS)

sim: setup
	@scripts/build $(PRESET) $(CONFIGURE) cairn_seeds
	@$(BUILD)/src/proof/cairn_seeds $(ARGS)

exhaustive: setup
	@scripts/build $(PRESET) $(CONFIGURE) cairn_exhaustive
	@$(BUILD)/src/proof/cairn_exhaustive --states 1000000 $(ARGS)

# Of a copy of the tree, under build/mutants.
mutants: setup
	@tests/mutants.py $(ARGS)

fuzz:
	@scripts/setup fuzz
	@cmake --preset fuzz -DCAIRN_FUZZ_SECONDS=$(SECONDS_EACH) -DCAIRN_FUZZ_RUNS=$(RUNS_EACH)
	@cmake --build --preset fuzz

fmt:
	@scripts/setup fmt
	@git ls-files '*.cpp' '*.hpp' '*.h' '*.c' | xargs clang-format-14 -i

tidy: build
	@scripts/setup tidy
	@git ls-files 'src/*.cpp' | xargs -P 2 -n 4 clang-tidy-14 --quiet -p $(BUILD)

install: setup
	@scripts/build $(PRESET) $(CONFIGURE) cairn_installed
	@cmake --install $(BUILD) --prefix $(PREFIX)

clean:
	@rm -rf build

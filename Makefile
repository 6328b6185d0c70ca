# Each target sets up what it needs; nothing has to be installed first but Python 3.11 and its venv module.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
ARGS ?=
# Tests run side by side, in three workers more than processors; PARALLEL= runs them one after another.
PARALLEL ?= -n auto --dist loadgroup
# Tests start a thousand programs, each of which would compile all of its modules.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: run test test-vm ovnk-edits unit properties soak mutants check format lock manifests compiled test-compiled test-pure check-native bench bench-antrea bench-frrk8s bench-fib bench-speed sbom clean help bfd-kills

help:                ## this list
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

run: $(VENV)/.installed  ## the demo: an agent and a router on loopback (ARGS=--once: one round, then exit)
	@$(BIN)/waggle demo $(ARGS)

test: $(VENV)/.installed-dev  ## everything, with real routers, an API server and a browser where they can be installed
	@tests/support/install-routers
	@tests/support/install-prometheus
	@tests/support/install-shells
	@tests/support/install-chromium
	@$(BIN)/python -m tests.support.builds $(BIN)/python -m pytest $(PARALLEL) $(ARGS)

unit: $(VENV)/.installed-dev  ## the quick tests only, properties with a part of their examples
	@$(BIN)/python -m pytest --hypothesis-profile quick -m "not interop and not netns and not apiserver and not helm and not program" $(PARALLEL) $(ARGS)

test-vm: $(VENV)/.installed-dev  ## the tests on VRF devices, in a VM with a kernel that has them: emulated, slow (as root, on Debian)
	@tests/support/install-routers
	@nice $(BIN)/python -m tests.support.vm $(BIN)/python -m pytest -m vrf -p no:cacheprovider -o timeout=1500 $(or $(ARGS),tests/interop/test_vrfs.py tests/interop/test_vrf_bfd.py tests/interop/test_device.py)

ovnk-edits: $(VENV)/.installed-dev  ## 200 random edits of OVN-Kubernetes' objects: an API server, the operator, two agents and BIRD (OVNK_EDITS=N, OVNK_SEED=N)
	@tests/support/install-routers
	@tests/support/install-apiserver >/dev/null
	@OVNK_EDITS=$${OVNK_EDITS:-200} $(BIN)/python -m pytest -q tests/dialects/test_ovnk_apiserver.py -k fabric $(ARGS)

soak: $(VENV)/.installed-dev  ## ten minutes of a node's life: objects that come, conflict and go, an agent that is killed, and BIRD (SOAK_SECONDS=N, SOAK_SEED=N)
	@tests/support/install-routers
	@SOAK_SECONDS=$${SOAK_SECONDS:-600} $(BIN)/python -m pytest -q tests/interop/test_node_life.py $(ARGS)

bfd-kills: $(VENV)/.installed-dev  ## an agent is killed a hundred times, while BIRD watches its BFD session and its routes (BFD_KILLS=N)
	@tests/support/install-routers
	@BFD_KILLS=$${BFD_KILLS:-100} $(BIN)/python -m pytest -q -o timeout=3600 tests/interop/test_bfd.py -k killed $(ARGS)

mutants: $(VENV)/.installed-dev  ## mutants of each rule of docs/rfcs.md, of merging, and of mistakes corrected once, against their tests (ARGS="-k 8212", ARGS="-k correction", ARGS="--random 200 --seed 1")
	@$(BIN)/python -m tests.mutants $(ARGS)

properties: $(VENV)/.installed-dev  ## the properties with five times as many examples, and merging FRRConfigurations against its model, on 100,000 random sets (MODEL_SEED=N: other ones)
	@$(BIN)/python -m pytest -q --hypothesis-profile thorough -m hypothesis -o timeout=3600 tests/reconcilers tests/resources $(PARALLEL) $(ARGS)
	@MODEL_SETS=100000 $(BIN)/python -m pytest -q tests/reconcilers/frrk8s/test_model.py $(PARALLEL) $(ARGS)

check: $(VENV)/.installed-dev  ## ruff, mypy --strict, import contracts
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@PYTHONPATH=.:cmd $(BIN)/lint-imports

format: $(VENV)/.installed-dev  ## ruff's formatter and its safe fixes
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

manifests: $(VENV)/.installed-dev  ## write what is generated under deploy/: CRDs, the schema of the values, plain manifests (needs Go)
	@helm=$$(tests/support/install-helm) && test -n "$$helm" && $(BIN)/python -m deploy.generate --helm "$$helm"

compiled: $(VENV)/.installed-dev  ## the hot path of the speaker and of Services as C, in build/compiled, and a wheel of it in dist (needs gcc)
	@command -v cc >/dev/null || { echo "a C compiler is missing. On Debian and Ubuntu: apt-get install gcc libc6-dev"; exit 1; }
	@rm -rf build/compiled && mkdir -p build/compiled
	@cp -r pyproject.toml README.md LICENSE cells cmd docs examples reconcilers resources speaker statedb build/compiled
	@cd build/compiled && HATCH_BUILD_HOOKS_ENABLE=1 $(CURDIR)/$(BIN)/python -m pip --quiet --disable-pip-version-check wheel . --no-deps --no-build-isolation -w $(CURDIR)/dist
	@ls dist/*.whl

test-compiled: compiled  ## the tests of what is compiled, with it as C (tests/support/compiled_form.py: the tests that cannot)
	@$(BIN)/python -m pytest -p tests.support.compiled_form -o "pythonpath=build/compiled build/compiled/cmd . cmd" tests/speaker tests/statedb tests/resources tests/reconcilers $(PARALLEL) $(ARGS)

test-pure: $(VENV)/.installed-dev  ## the speaker's tests that use a prefix table, with tables in Python
	@tests=$$($(BIN)/python -m tests.support.table_tests) && WAGGLE_PURE=1 $(BIN)/python -m pytest $$tests $(PARALLEL) $(ARGS)

TABLE_OPERATIONS ?= 1000000
SANITIZERS = -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer -O1 -g
# Leaks are looked for by a test, of a million operations as well: the interpreter keeps what it has interned. Sanitizers and
# the debug allocator keep what was freed, so that this test runs without them, too.
check-native: $(VENV)/.installed-dev  ## the prefix table in C with sanitizers and Python's debug allocator, a million operations, and the speaker's fuzz targets
	@command -v cc >/dev/null || { echo "a C compiler is missing. On Debian and Ubuntu: apt-get install gcc libc6-dev"; exit 1; }
	@rm -rf build/sanitized && mkdir -p build/sanitized && cp -r speaker tests pyproject.toml build/sanitized && $(BIN)/python -c 'import sys; from pathlib import Path; sys.path.insert(0, "speaker/rib/prefix_table"); from build import build; build(Path("build/sanitized/speaker/rib/prefix_table"), *"$(SANITIZERS)".split())'
	@cd build/sanitized && LD_PRELOAD="$$(cc -print-file-name=libasan.so) $$(cc -print-file-name=libubsan.so)" ASAN_OPTIONS=detect_leaks=0 PYTHONMALLOC=malloc_debug TABLE_OPERATIONS=$(TABLE_OPERATIONS) NATIVE_FLAGS="$(SANITIZERS)" NATIVE_FOLDER=$(CURDIR)/build/sanitized/$(PREFIX_TABLE) $(CURDIR)/$(BIN)/python -P -m pytest -p no:cacheprovider --timeout 3600 -o "pythonpath=. $(CURDIR) $(CURDIR)/cmd" -q tests/speaker/rib tests/speaker/fuzz $(ARGS)
	@TABLE_OPERATIONS=$(TABLE_OPERATIONS) $(BIN)/python -m pytest -p no:cacheprovider -q --timeout 3600 tests/speaker/rib/prefix_table/test_native_memory.py -k stay_level

bench: $(VENV)/.installed-dev build/bench-tester compiled  ## the measurements: database, render, a change to a hundred routers, questions about a full table, the speaker
	@$(BIN)/python -m bench.bench_statedb
	@$(BIN)/python -m bench.bench_render
	@$(BIN)/python -m bench.bench_propagation
	@$(BIN)/python -m bench.bench_start
	@$(BIN)/python -m bench.bench_kubernetes
	@$(BIN)/python -m bench.bench_pause
	@$(BIN)/python -m bench.bench_filters
	@$(BIN)/python -m bench.bench_questions
	@$(BIN)/python -m bench.bench_scrape
	@$(BIN)/python -m bench.bench_status_writes
	@$(BIN)/python -m bench.bench_leave
	@$(BIN)/python -m bench.bench_best_paths
	@$(BIN)/python -m bench.bench_loss
	@$(BIN)/python -m bench.bench_loss_live
	@$(BIN)/python -m bench.bench_kernel
	@$(BIN)/python -m bench.bench_kernel_turns
	@$(BIN)/python -m bench.bench_rounds
	@$(BIN)/python -m bench.bench_tracing --p3 5
	@$(BIN)/python -m bench.bench_antrea
	@$(BIN)/python -m bench.bench_frrk8s
	@$(BIN)/python -m bench.bench_ovnk
	@tests/support/install-routers
	@$(BIN)/python -m bench.speed $(ARGS)

bench-antrea: $(VENV)/.installed-dev  ## BGPPolicies of Antrea beside the same cluster with Cilium's objects (ARGS=--help)
	@$(BIN)/python -m bench.bench_antrea $(ARGS)

bench-frrk8s: $(VENV)/.installed-dev  ## FRRConfigurations of a node, of a cluster and in a review (ARGS=--help)
	@$(BIN)/python -m bench.bench_frrk8s $(ARGS)

bench-fib: $(VENV)/.installed-dev  ## routes into the kernel, beside BIRD and FRR: all steps, and each goal with its verdict (as root; ARGS="--rounds 1", ARGS=--help)
	@tests/support/install-routers
	@$(BIN)/python -m bench.bench_fib --all $(ARGS)

bench-speed: $(VENV)/.installed-dev build/bench-tester  ## the speaker against other routers (ARGS=--full, ARGS=--help)
	@tests/support/install-routers
	@$(BIN)/python -m bench.speed $(ARGS)

build/bench-tester: bench/tester/main.c bench/tester/session.c bench/tester/tester.h
	@command -v cc >/dev/null || { echo "a C compiler is missing. On Debian and Ubuntu: apt-get install gcc libc6-dev"; exit 1; }
	@mkdir -p build
	@cc -std=c11 -O2 -Wall -Wextra -Werror -o $@ bench/tester/main.c bench/tester/session.c

LOCK := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links --no-header
lock: $(VENV)/.installed  ## pin the dependencies again
	@$(LOCK) --group uv -o requirements-uv.lock
	@$(LOCK) --group build pyproject.toml -o requirements.lock
	@$(LOCK) --group dev pyproject.toml -c requirements.lock -o requirements-dev.lock

sbom: $(VENV)/.installed-dev  ## the packages of the image with their hashes, as CycloneDX JSON: dist/waggle.cdx.json
	@mkdir -p dist
	@$(BIN)/cyclonedx-py requirements --pyproject pyproject.toml --output-reproducible requirements.lock -o dist/waggle.cdx.json 2>/dev/null
	@echo dist/waggle.cdx.json

clean:               ## remove the virtual environment and all caches
	rm -rf $(VENV) build dist speaker/rib/prefix_table/native.*.so .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "waggle needs Python 3.11 or later; name one with: make PYTHON=python3.11 ..."; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "Python's venv module is missing. On Debian and Ubuntu: apt-get install python3-venv"; exit 1; }
	@$(PYTHON) -m venv $(VENV)

# uv takes a fifth of pip's time. It asks pip's index, and trusts the authorities of the system; what it cannot
# install (an index with settings that pip alone knows, a machine that there is no uv for), pip installs.
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check install
define INSTALL
index=$${PIP_INDEX_URL:-$$($(BIN)/python -m pip config get global.index-url 2>/dev/null)}; \
[ -z "$$index" ] || export UV_DEFAULT_INDEX="$$index"; \
install() { UV_SYSTEM_CERTS=1 $(BIN)/uv pip install --quiet --python $(BIN)/python "$$@" 2>/dev/null || $(PIP) "$$@"; }; install
endef

PREFIX_TABLE := speaker/rib/prefix_table
$(VENV)/.installed: $(BIN)/python requirements-uv.lock requirements.lock pyproject.toml $(addprefix $(PREFIX_TABLE)/,native.c build.py hatch_hook.py)
	@echo "installing into $(VENV) ..."
	@$(PIP) --only-binary uv --require-hashes -r requirements-uv.lock 2>/dev/null || echo "without uv, which takes longer"
	@$(INSTALL) --require-hashes -r requirements.lock
	@$(INSTALL) --no-deps --no-build-isolation -e .
	@$(BIN)/python $(PREFIX_TABLE)/build.py --missing
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.installed requirements-dev.lock
	@$(INSTALL) --require-hashes -r requirements-dev.lock
	@touch $@

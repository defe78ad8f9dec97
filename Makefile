# make demo: the main job on the sample SDK.  make test-fast: while working.  make test: every check.  make help: the rest.
PYTHON ?= python3
# Packages in the versions and with the hashes that CI installs. NEWEST=1: the newest that pyproject.toml allows, as its users
# may have, in an environment of its own.
VENV := $(if $(NEWEST),.venv-newest,.venv)
BIN := $(VENV)/bin
CACHE := .cache
# One more than two cores: tests wait for servers, disks and tools for a quarter of their time.
WORKERS ?= 3
# Python compiles what it imports unless PYTHONDONTWRITEBYTECODE is set: each command would then take seconds to start.
# Of other packages pip does it, but not of editable ones.
COMPILE = $(BIN)/python -m compileall -q src
export PIP_CACHE_DIR := $(CURDIR)/$(CACHE)/pip
export UV_CACHE_DIR := $(CURDIR)/$(CACHE)/uv

.PHONY: flaws hostile gpus help setup demo test test-newest test-fast test-deep lock security lint typecheck contracts docs dist workflows bench fuzz faults corpus repair-proof environments check-tables debian debian-sid debian-experimental frameworks bazel extension clean

help:            ## this list
	@sed -n 's/^\([a-z-]*\):.*## */\1\t/p' Makefile

setup: $(VENV)/.setup  ## the virtual environment with everything that the other targets need

# Locked: without isolation, so that what builds is locked as well. Newest: pip first, as that of a platform may be years old.
install_locked = $(BIN)/python -m pip install --quiet --require-hashes --requirement $(1) && \
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
install_newest = $(BIN)/python -m pip install --quiet --upgrade pip && \
	$(BIN)/python -m pip install --quiet --editable '.[dev,release,security]'

# The packages that rocwheel runs with, and no others: the demo starts sooner.
$(VENV)/.demo: pyproject.toml .ci/requirements-demo.txt
	$(PYTHON) -m venv $(VENV)
	$(if $(NEWEST),$(install_newest),$(call install_locked,.ci/requirements-demo.txt))
	$(COMPILE)
	@touch $@

$(VENV)/.setup: $(VENV)/.demo .ci/requirements.txt
	$(if $(NEWEST),,$(call install_locked,.ci/requirements.txt))
	@touch $@

lock: setup      ## .ci/requirements*.txt anew: the newest versions of what setup and CI install, with the hashes of their files
	bash scripts/lock-requirements.sh $(BIN)

flaws: setup     ## bandit and zizmor: what is often done wrong in code and in workflows
	$(BIN)/bandit --quiet --recursive --configfile pyproject.toml src scripts trials
	$(BIN)/zizmor --offline --quiet .

security: flaws  ## the same, and known vulnerabilities of what CI installs (asks PyPI's advisories)
	bash scripts/audit-requirements.sh $(BIN)

demo: $(VENV)/.demo  ## build, index, install and self-test the sample SDK
	$(BIN)/rocwheel demo --dest-dir demo

test: setup      ## every test but the long corpora
	bash scripts/install-debian-packages.sh
	$(COMPILE)
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m "not corpus"

test-newest:     ## the same with the newest releases of all packages, before each release
	rm -rf .venv-newest
	$(MAKE) NEWEST=1 test

test-fast: setup ## the tests to run while working: all that start no commands, tools or installations; under a minute
	$(COMPILE)
	$(BIN)/python -m pytest -n 2 --dist worksteal -q -m "not corpus and not slow"

test-deep: setup ## all cases of kills, hostile input and real tools, and properties with twenty times as many examples (TESTS="tests/binary": of these)
	$(COMPILE)
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -q -m "not corpus" --deep --hypothesis-profile deep $(TESTS)

lint: setup      ## ruff: rules and format; the style of the prose (docs/style.md)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python scripts/check_style.py

typecheck: setup ## mypy, strict
	$(BIN)/mypy

contracts: setup ## import-linter: imports point down
	$(BIN)/lint-imports --config contracts.toml

docs: setup      ## the documentation site, into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

dist: setup      ## the sdist and the wheel, into dist/, checked in a clean environment
	bash scripts/check-distributions.sh $(BIN)

workflows: setup ## checks of what other services run: workflows, the action, hooks, issue forms
	bash scripts/check-workflows.sh $(BIN)

bench: setup     ## the benchmarks; prints tables
	$(BIN)/python -m trials.benchmarks

$(VENV)/.fuzz: $(VENV)/.setup
	$(BIN)/python -m pip install --quiet --editable '.[fuzz]'
	@touch $@

fuzz: $(VENV)/.fuzz ## fuzzing: every parser of foreign bytes, a minute each (FUZZ_SECONDS=600: ten; FUZZ="elf. wheels.": these)
	$(BIN)/python -m trials.fuzz $(FUZZ)

faults: setup    ## each call of commands that write fails in turn, and they are killed (FAULTS="build index": these)
	$(BIN)/python -m trials.faults $(FAULTS)

gpus: setup      ## unmodified HIP loads files on 67 GPUs under a stand-in for the driver, and has to do what runs-on says (GPUS=5.2: that release)
	bash scripts/install-debian-packages.sh
	$(BIN)/python -m trials.gpus $(GPUS)

hostile: setup   ## hostile inputs on every command that takes such; writes the tables of tests/hostile/RESULTS.md; root
	$(BIN)/python -m tests.hostile.table

$(VENV)/.corpus: $(VENV)/.setup
	$(BIN)/python -m pip install --quiet --editable '.[corpus]'
	@touch $@

corpus: $(VENV)/.corpus ## the long run: every ELF and PE file of this machine, published wheels, Debian's device code (CORPORA="pe audit": these)
	sh scripts/fetch_device_code_corpus.sh
	if command -v npm > /dev/null; then bash scripts/fetch_sarif_schema.sh; fi
	bash scripts/install-debian-packages.sh
	$(BIN)/python -m trials.corpora $(CORPORA)
	$(BIN)/python -m pytest -n 2 -m corpus

repair-proof: setup  ## repaired wheels of the index before the real loader: it has to find what it found before; 5 GB in .cache
	$(BIN)/python -m tests.support.repair_proof

environments: setup  ## the sample's packages in three releases of Debian, five Pythons, as root and as a user; a table
	$(BIN)/python -m scripts.environments $(ENVIRONMENTS)

check-tables: setup ## the tables of GPUs, products and libraries against their public sources, before each release
	$(BIN)/python -m scripts.check_tables $(TABLES)

debian: setup    ## Debian's real ROCm packages become wheels, installed and used
	bash examples/debian/run.sh

debian-sid: setup ## the ROCm of Debian sid becomes wheels, installed and used in a sid chroot; root, 30 GB, half an hour
	bash examples/debian-sid/run.sh sid

debian-experimental: setup ## the same with the ROCm 7 of Debian experimental
	bash examples/debian-sid/run.sh experimental

$(CACHE)/debian-newest/work-experimental/complete: | $(VENV)/.setup
	bash examples/debian-sid/build.sh experimental $(CACHE)/debian-newest

frameworks: setup $(CACHE)/debian-newest/work-experimental/complete  ## published wheels of JAX and bitsandbytes use packages of Debian experimental's ROCm 7; root
	bash examples/frameworks/run.sh $(CACHE)/debian-newest/work-experimental/packages/dist

$(CACHE)/debian-run/away/packages/dist:
	$(MAKE) debian

bazel: setup     ## the example for JAX: Bazel builds, rocwheel assembles, JAX discovers the plugin
	$(BIN)/rocwheel build --artifact-dir src/rocwheel/sample --dest-dir $(CACHE)/bazel-sdk --quiet
	bash examples/bazel/run.sh $(CACHE)/bazel-sdk/dist

extension: setup $(CACHE)/debian-run/away/packages/dist  ## a HIP extension built against the packages of make debian
	bash examples/hip-extension/run.sh

clean:           ## remove what the other targets made, but not downloads
	rm -rf .venv .venv-newest demo site build dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name .cache -prune -o -name __pycache__ -prune -exec rm -r {} +

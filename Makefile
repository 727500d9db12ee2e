# Everything runs in .venv, made from the locked dependencies; nothing but python3 (3.11 or later) is needed beforehand.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
LOCK := requirements/dev.lock
EXTRAS := --extra all --extra fsspec --extra ray --extra nvidia --extra dev --extra docs --extra bench --extra aquatope --extra serving-examples
UNUSED := requirements/unused.txt
READY := $(VENV)/.ready
LOOPS := src/fairway/compiled/kernels.json
COMPILED := hatch_build.py $(shell grep -rl --include=*.py --include=*.c 'fairway.compiled import\|fairway_take' src/fairway)
PROBLEM := examples/mixed-cluster.json
TRACE := examples/gavel-cluster-jobs.tsv
REPORT := report.html
MUTATED := $(addprefix src/fairway/,allocate configure place engine store live service)
BENCHMARKS = $(filter-out _% soak,$(basename $(notdir $(wildcard benchmarks/*.py))))

.DEFAULT_GOAL := help
.PHONY: help setup compiled dashboard demo demo-sim test lint types imports unit audit advisories docs tables bench soak \
	mutants mutants-changed fuzz lock format clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

setup: $(READY)  ## make .venv with the locked dependencies and Fairway in it

# hatchling is in the lock file, so building Fairway itself fetches nothing that is not locked. The lock file is complete
# but for what $(UNUSED) names, so nothing is resolved here.
$(READY): $(LOCK) pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Fairway needs Python 3.11 or later: make PYTHON=/path/to/python3.11 ..." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r $(LOCK)
	@echo "compiling the numerical loops, which takes a minute or two the first time"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

# A loop that has changed since is compiled by itself; where there is no compiler, numba does it at the first call.
$(LOOPS): $(COMPILED) | $(READY)
	@$(BIN)/python -m fairway.compiled || echo "the loops could not be compiled ahead; numba compiles them when they run" >&2

compiled: $(LOOPS)  ## compile the numerical loops that have changed

# What is built is committed, so that nothing but python3 is needed to install, test and use Fairway.
dashboard: $(READY)  ## build the page that fairway up shows, from dashboard/ into the package
	$(BIN)/python dashboard/generate_types.py
	$(BIN)/python dashboard/node.py npm ci --no-fund --no-audit --silent
	$(BIN)/python dashboard/node.py npx openapi-typescript openapi.json -o src/openapi.ts
	$(BIN)/python dashboard/node.py npm run --silent build
	$(BIN)/python dashboard/sources.py

demo: $(READY)  ## run training jobs of two teams live, on emulated accelerators, against what the simulator predicts
	@$(BIN)/python examples/live_demo.py

demo-sim: $(READY)  ## run a published trace on a mixed cluster under four policies, and write a report
	@echo "96 training jobs, as published with Gavel for its cluster of 8 V100, 16 P100 and 24 K80: $(TRACE)"
	@echo "The first policy is blind to how fast a job runs on which type, as most schedulers are; the others know."
	@echo
	$(BIN)/fairway simulate training --trace $(TRACE) --cluster v100=8,p100=16,k80=24 \
		--policy max-min-fairness:agnostic --policy max-min-fairness --policy max-min-fairness:space-sharing \
		--policy fifo --report $(REPORT)
	@echo
	@echo "Open $(REPORT) in a browser: completion times, who ran where, who got its share, what it cost."
	@echo "One decision by itself: $(BIN)/fairway allocate $(PROBLEM) --policy max-min-fairness --table"

test: lint types imports unit docs advisories  ## lint, check types and imports, run every test, build the documentation

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/mypy

imports: $(READY)
	$(BIN)/lint-imports

unit: $(READY) compiled
	$(BIN)/pytest -n auto

# Where no index with the advisories is reached, as without a network, this says so and is no failure.
audit: $(READY)  ## look for known vulnerabilities of the locked dependencies
	@$(BIN)/python -m tests.audit $(LOCK)

advisories: $(READY)
	@$(BIN)/python -m tests.audit --only-tell $(LOCK)

docs: $(READY)  ## build the documentation into site/; any warning is an error
	$(BIN)/zensical build --clean --strict

tables: $(READY)  ## write the tables of the documentation that say what the fields of jobs and requests mean
	$(BIN)/python -m fairway.report.field_table docs/live.md docs/serve.md

bench: $(READY)  ## run every benchmark against its peer, one JSON document each
	@set -e; for name in $(BENCHMARKS); do $(BIN)/python -m benchmarks.$$name --json -; done

soak: $(READY)  ## simulate a million faults, run the tests that take minutes, then an hour of load with kills (FAULTS= SEED= MINUTES=)
	$(BIN)/python -m fairway.simtest --component all --seed $(or $(SEED),0) --faults $(or $(FAULTS),1000000) --jobs 2
	$(BIN)/pytest -m soak
	$(BIN)/python -m benchmarks.soak --minutes $(or $(MINUTES),60) --seed $(or $(SEED),0)

mutants: $(READY)  ## change one operator at a time and see whether a test notices (SEED=1 COUNT=50 PATHS=src/fairway/store)
	$(BIN)/python -m tests.mutants $(or $(PATHS),src/fairway/store) --count $(or $(COUNT),50) --seed $(or $(SEED),0)

mutants-changed: $(READY)  ## the same for the lines that are new or different since a revision (BASE=main COUNT=100)
	$(BIN)/python -m tests.mutants $(or $(PATHS),$(MUTATED)) --changed $(or $(BASE),main) \
		--count $(or $(COUNT),100) --seed $(or $(SEED),0)

fuzz: $(READY)  ## give hostile bytes to every door, guided by coverage (SECONDS=60 for each, DOORS="job-yaml http")
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check "atheris>=2.3" || \
		echo "atheris cannot be installed here; inputs are mutated without guidance" >&2
	$(BIN)/python -m tests.fuzz $(DOORS) --seconds $(or $(SECONDS),60) --seed $(or $(SEED),1)

lock: $(READY)  ## resolve the dependencies again and write the lock file (UPGRADE=--upgrade for newer versions)
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --fork-strategy fewest $(EXTRAS) --excludes $(UNUSED) \
		--generate-hashes --no-emit-index-url --custom-compile-command "make lock" $(UPGRADE) \
		pyproject.toml --output-file $(LOCK)

format: $(READY)  ## let ruff format the code and sort its imports
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

clean:  ## remove everything that make made
	rm -rf $(VENV) $(REPORT) src/fairway/compiled/kernels.* site build dist .cache .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

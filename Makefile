# Everything runs in .venv, made from the locked dependencies; nothing but python3 (3.11 or later) is needed beforehand.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
LOCK := requirements/dev.lock
READY := $(VENV)/.ready
PROBLEM := examples/mixed-cluster.json
BENCHMARKS = $(filter-out _%,$(basename $(notdir $(wildcard benchmarks/*.py))))

.DEFAULT_GOAL := help
.PHONY: help setup demo test lint types imports unit docs bench lock format clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

setup: $(READY)  ## make .venv with the locked dependencies and Fairway in it

# hatchling is in the lock file, so building Fairway itself fetches nothing that is not locked.
$(READY): $(LOCK) pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Fairway needs Python 3.11 or later: make PYTHON=/path/to/python3.11 ..." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $(LOCK)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

demo: $(READY)  ## allocate a small mixed cluster under four policies
	@echo "Seven training jobs of two teams share 2 V100, 2 P100 and 2 K80: $(PROBLEM)"
	@echo
	@echo "1. Fair to every job, blind to how fast each runs on each accelerator type, as most schedulers are:"
	$(BIN)/fairway allocate $(PROBLEM) --policy water-filling:agnostic --table
	@echo
	@echo "2. The same goal, knowing these rates: every job gets more done on the same machines:"
	$(BIN)/fairway allocate $(PROBLEM) --policy water-filling --table
	@echo
	@echo "3. Fair to the two teams, one of which serves its jobs in order of arrival:"
	$(BIN)/fairway allocate $(PROBLEM) --policy hierarchical --table
	@echo
	@echo "4. No job should finish much later than it would on its own equal part of the cluster:"
	$(BIN)/fairway allocate $(PROBLEM) --policy finish-time-fairness --table

test: lint types imports unit docs  ## lint, check types and imports, run every test, build the documentation

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/mypy

imports: $(READY)
	$(BIN)/lint-imports

unit: $(READY)
	$(BIN)/pytest -n auto

docs: $(READY)  ## build the documentation into site/; any warning is an error
	$(BIN)/zensical build --clean --strict

bench: $(READY)  ## run every benchmark against its peer, one JSON document each
	@set -e; for name in $(BENCHMARKS); do $(BIN)/python -m benchmarks.$$name --json -; done

lock: $(READY)  ## resolve the dependencies again and write the lock file (UPGRADE=--upgrade for newer versions)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --fork-strategy fewest --all-extras \
		--generate-hashes --no-emit-index-url --custom-compile-command "make lock" $(UPGRADE) \
		pyproject.toml --output-file $(LOCK)

format: $(READY)  ## let ruff format the code and sort its imports
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

clean:  ## remove everything that make made
	rm -rf $(VENV) site build dist .cache .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

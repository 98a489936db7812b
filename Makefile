# `make help` lists the targets. Each makes the environment .venv by itself when it is missing or stale.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready
PYTEST := $(BIN)/python -m pytest
JOBS ?= 2
export OMP_NUM_THREADS ?= 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := help
.PHONY: help demo test test-all check lint types tests doctest conformance conformance-quick deep bench docs lint-stdlib generate changelog clean

help:  ## Show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

$(STAMP): pyproject.toml emberlint/pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit("EmberHarmony needs Python 3.11 or later, this is " + sys.version.split()[0] if sys.version_info < (3, 11) else 0)'
	@echo "Setting up $(VENV) (some minutes the first time)"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable emberlint --editable '.[torch,mlx,dev,bench]'
	@touch $(STAMP)

demo: $(STAMP)  ## Train on the digits, switching the backend in mid-training
	$(BIN)/emberharmony demo

test: check tests conformance-quick  ## Run everything CI runs

check: $(STAMP)  ## Formatting, types, layers, generated files
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python utils/generate.py --check
	$(BIN)/towncrier build --draft --version next >/dev/null
	$(BIN)/python utils/emberlint.py .

tests: $(STAMP)  ## The tests alone, with coverage
	$(PYTEST) -n $(JOBS) --cov --cov-report=term --cov-fail-under=90

test-all: $(STAMP)  ## The tests on each Python, NumPy alone, the lowest versions, portable dispatch; a wheel; a frozen program
	JOBS=$(JOBS) $(BIN)/nox

conformance: $(STAMP)  ## Every check of every op on every backend
	$(BIN)/emberharmony conformance --backend all

conformance-quick: $(STAMP)  ## The same without the inputs that hypothesis makes
	$(BIN)/emberharmony conformance --backend all --quick

deep: $(STAMP)  ## The tests with many more hypothesis examples, and the slow ones; the fuzzer
	HYPOTHESIS_PROFILE=deep $(PYTEST) -n $(JOBS) --timeout 7200 -m "slow or not slow"
	$(BIN)/emberharmony fuzz --backend all --calls 50000

bench: $(STAMP)  ## What dispatch and gradients cost, beside their peers
	$(BIN)/python benchmarks/dispatch.py
	$(BIN)/python benchmarks/gradients.py
	$(BIN)/python benchmarks/composites.py

docs: $(STAMP)  ## Build the documentation into docs/_build/html
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html
	@echo "docs/_build/html/index.html"

lint-stdlib: $(STAMP)  ## emberlint on the whole standard library, which holds no tensors
	$(PYTEST) -q -m "slow or not slow" tests/emberlint/test_stdlib.py --timeout 7200

generate: $(STAMP)  ## Write the generated files
	$(BIN)/python utils/generate.py

changelog: $(STAMP)  ## Print what the next release says; with VERSION=1.2.3 write it into CHANGELOG.md
	$(BIN)/towncrier build $(if $(VERSION),--yes --version $(VERSION),--draft --version next)

clean:  ## Remove the environment and all caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .emberlint_cache .coverage* docs/_build build dist .nox

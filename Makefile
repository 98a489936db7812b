# `make help` lists the targets. A target that needs the environment .venv creates it if it is missing or out of date.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready
PYTEST := $(BIN)/python -m pytest
JOBS ?= 2
export OMP_NUM_THREADS ?= 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# The tests start many programs; each would compile the package again if none wrote its bytecode.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo test test-all check tests coverage mutants conformance conformance-quick deep jax-and-dask random-order models zoo pairs suite bench bench-check bench-record performance docs site linkcheck dist lint-stdlib generate changelog clean

help:  ## Show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

$(STAMP): pyproject.toml emberlint/pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit("EmberHarmony needs Python 3.11 or later, this is " + sys.version.split()[0] if sys.version_info < (3, 11) else 0)'
	@echo "Setting up $(VENV) (it takes some minutes the first time)"
# Python compiles what it imports; to compile all 16,000 files of the packages takes pip a minute.
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --no-compile --constraint constraints.txt --editable emberlint --editable '.[torch,mlx,jax,dask,numba,dev,bench]'
	@touch $(STAMP)

demo: $(STAMP)  ## Train a network on handwritten digits, switching the backend during training
	$(BIN)/emberharmony demo

# Runs a target and prints its seconds beside its budget on two cores; CI has ten minutes, the environment included.
part = start=$$(date +%s) && $(MAKE) --no-print-directory $(1) && echo "$(1): $$(($$(date +%s) - start)) s of a budget of $(2) s"

test: $(STAMP)  ## Run everything that CI runs, and print what each part took
	@$(call part,check,90)
	@$(call part,tests,420)

# They run beside each other; the slowest come first.
CHECKS := check-purity check-types check-prose check-format check-generated
.PHONY: $(CHECKS)
check: $(STAMP)  ## Check formatting, types, layers, prose and generated files
	@$(MAKE) --no-print-directory --jobs $(JOBS) $(CHECKS)

check-purity: $(STAMP)
	$(BIN)/python utils/emberlint.py .

check-types: $(STAMP)
	$(BIN)/mypy
	$(BIN)/lint-imports

check-prose: $(STAMP)
	$(BIN)/python tools/prose.py

check-format: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

check-generated: $(STAMP)
	$(BIN)/python utils/generate.py --check
	$(BIN)/python tools/mutants --check
	$(BIN)/towncrier build --draft --version next >/dev/null

tests: $(STAMP)  ## Run only the tests, of very many cases a part that rotates with the seed
	$(PYTEST) -n $(JOBS) --durations=10

coverage: export HYPOTHESIS_PROFILE = whole
coverage: $(STAMP)  ## Run the tests, all cases of those that run in part, and list the lines that none of them reaches, which takes longer
	$(PYTEST) -n $(JOBS) --cov --cov-report=term --cov-fail-under=90

mutants: $(STAMP)  ## Plant faults in a copy, one after the other, and show which the tests notice; goes on where it was interrupted
	$(BIN)/python tools/mutants --jobs $(JOBS)

test-all: coverage bench-check jax-and-dask  ## Run the tests with coverage, on JAX and Dask, on each Python, with NumPy alone, lowest versions, portable dispatch; test the wheel and a frozen program; count instructions
	JOBS=$(JOBS) $(BIN)/nox

conformance: $(STAMP)  ## Run every check of every op on every backend
	$(BIN)/emberharmony conformance --backend all

conformance-quick: $(STAMP)  ## Run the same without the inputs that hypothesis generates, as the tests do
	$(BIN)/emberharmony conformance --backend all --quick

# XLA compiles in half the time with these options. Both commands print how many calls and tests they made.
jax-and-dask: export JAX_ENABLE_X64 = 1
jax-and-dask: export XLA_FLAGS = --xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false --xla_llvm_disable_expensive_passes=true --xla_cpu_parallel_codegen_split_count=1
jax-and-dask: export DASK_SCHEDULER = synchronous
jax-and-dask: $(STAMP)  ## Run every check of every op, and the tests of ops, on JAX and Dask, which takes long
	@for name in jax dask; do \
		$(BIN)/python -W ignore -m emberharmony conformance --backend $$name --quick || exit 1; \
		$(PYTEST) -q -n $(JOBS) tests/ops --ember-backend $$name -k $$name -o faulthandler_timeout=7200 || exit 1; \
	done

# The seed of the day draws the inputs of hypothesis and of the fuzzer. The header of pytest prints it.
deep: SEED ?= $(shell date +%Y%m%d)
deep: $(STAMP)  ## Run the tests with many more hypothesis examples, the slow tests, and the fuzzer, with SEED (default: the date)
	HYPOTHESIS_PROFILE=deep EMBERHARMONY_TEST_SEED=$(SEED) $(PYTEST) -n $(JOBS) -o faulthandler_timeout=7200 -m "slow or not slow"
	@echo "fuzz --seed $(SEED)"
	$(BIN)/emberharmony fuzz --backend all --calls 50000 --seed $(SEED)

ORDERS ?= 1 2 3
random-order: $(STAMP)  ## Run the tests in random orders, those of ORDERS="1 2 3"
	@for order in $(ORDERS); do $(PYTEST) -n $(JOBS) --order-seed $$order || exit 1; done

models: $(STAMP)  ## Compare the models of examples/models and examples/pretrained with their originals, which it installs
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[models-test]'
	$(BIN)/python -m pip install --quiet --no-deps --requirement tests/examples/pretrained.txt
	$(PYTEST) -m "slow or not slow" tests/examples/test_models.py tests/examples/test_pretrained.py

zoo: $(STAMP)  ## Capture 69 public models of PyTorch and compare outputs and gradients; installs them, goes on where it was interrupted
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --requirement tools/zoo/requirements.txt
	$(BIN)/python -m pip install --quiet --no-deps torchvision
	$(BIN)/python tools/zoo
	$(BIN)/python tools/zoo/operators.py

pairs: $(STAMP)  ## Compare models written in two libraries, right ones and 210 with planted faults; installs Keras, Flax and Equinox
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --requirement tools/pairs/requirements.txt
	$(BIN)/python -W ignore tools/pairs right
	$(BIN)/python -W ignore tools/pairs all --seed 2 --count 210

BACKEND ?= mlx
suite: $(STAMP)  ## Run another project's tests on emberharmony.xp: SUITE=array-api-tests SUITE_PATH=its checkout, scikit-learn, scipy or transforms, with BACKEND
	$(if $(SUITE_PATH),$(BIN)/python -m pip install --quiet --requirement $(SUITE_PATH)/requirements.txt)
	$(BIN)/python tools/suites $(SUITE) $(BACKEND) $(if $(SUITE_PATH),--path $(SUITE_PATH))

bench: $(STAMP)  ## Measure the cost of dispatch, kernels, models, gradients, composites and files of weights, compared with native calls; then `performance`
	$(BIN)/python -m benchmarks all
	$(MAKE) --no-print-directory performance

performance: $(STAMP)  ## Measure calls, imports, models, gradients and training beside other libraries; draw docs/performance_*.svg, and write README's figures
	$(BIN)/python -m benchmarks peers
	$(BIN)/python docs/performance_plots.py
	$(BIN)/python docs/performance_table.py

bench-check: $(STAMP)  ## Count the instructions of calls and imports, and fail if they take 5 % more than recorded
	$(BIN)/python -m benchmarks check

bench-record: $(STAMP)  ## Count the same and record it in benchmarks/instructions.json
	$(BIN)/python -m benchmarks check --record

# Sphinx 9 forgets the index entries of unchanged pages, which the search shows first; -E reads all pages again.
docs: $(STAMP)  ## Build the documentation into docs/_build/html
	$(BIN)/python -m sphinx -E -W --keep-going -q -b html docs docs/_build/html
	@echo "docs/_build/html/index.html"

site: docs  ## Build the documentation, and open every page in the Chromium of the system, on a desk and on a phone
	$(BIN)/python -m pip install --quiet --constraint constraints.txt playwright
	$(PYTEST) -m slow tests/docs/test_site.py -o faulthandler_timeout=7200

linkcheck: $(STAMP)  ## Open every link of the documentation that leads to other sites; needs the network
	$(BIN)/python -m sphinx --keep-going -q -b linkcheck docs docs/_build/linkcheck

dist: $(STAMP)  ## Build wheels and source archives of both packages into dist, and check them
	$(BIN)/python tools/dist.py

lint-stdlib: $(STAMP)  ## Run emberlint on the standard library, where every finding would be wrong
	$(PYTEST) -q -m "slow or not slow" tests/emberlint/test_stdlib.py -o faulthandler_timeout=7200

generate: $(STAMP)  ## Write the generated files
	$(BIN)/python utils/generate.py

changelog: $(STAMP)  ## Print the changelog of the next release; with VERSION=1.2.3 write it into CHANGELOG.md
	$(BIN)/towncrier build $(if $(VERSION),--yes --version $(VERSION),--draft --version next)

clean:  ## Remove the environment and all caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .emberlint_cache .coverage* .mutants docs/_build build dist .nox

# make help lists the targets.
#
#   PYTHON       the Python that makes the environment (3.11 or newer)
#   PYTEST_ARGS  arguments of pytest, for instance PYTEST_ARGS="-n 4 -x"
#   BENCH_ARGS   arguments of the benchmarks
#   TRUTH_ARGS   arguments of the truth harness, for instance TRUTH_ARGS="--cases 500 --jobs 8"
#   PAPERS       results to recompute, for instance PAPERS="usps novelty"; all by default
#   LOWEST_PYTHON, LOWEST_ARGS  the Python and the arguments of pytest for make lowest

PYTHON ?= python3
PYTEST_ARGS ?= -q -n 2 --dist loadgroup -m "not slow"
BENCH_ARGS ?=
TRUTH_ARGS ?= --cases 20000 --seeds 0 1 2 3 4 --jobs 2
PAPERS ?=
# The lowest versions have no wheels for a newer Python.
LOWEST_PYTHON ?= python3.11
LOWEST_ARGS ?= -q -n 2 --dist loadgroup -m "not slow"
# What depends on other packages; the laws of numerics are left to make test.
LOWEST_TESTS := src tests/cli tests/estimators tests/kernels tests/metrics tests/modelfile \
  tests/plotting tests/report tests/sketches tests/data tests/laws/test_accuracy.py \
  tests/laws/test_folds.py tests/laws/test_solvers.py \
  $(filter-out tests/test_example% tests/test_papers% %benchmarks.py,$(wildcard tests/test_*.py))

VENV := .venv
LOWEST := .venv-lowest
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check

.DEFAULT_GOAL := help
.PHONY: help env demo test slow truth lowest check format bench papers images clean
# Two installs into one environment must not run at once.
.NOTPARALLEL:

help: ## show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

env: $(VENV)/.mercer ## make the environment .venv and install mercer into it

demo: $(VENV)/.demo ## run the demonstration; it ends with a report to look at
	$(BIN)/mercer demo

test: $(VENV)/.test ## run the tests and the examples in the docstrings
	# One BLAS thread a process: two processes share the cores, and small products gain nothing.
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest $(PYTEST_ARGS)

slow: $(VENV)/.test ## run the slow tests, which make test skips
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -q -n 2 --dist loadgroup -m slow

truth: $(VENV)/.test ## check certificates against dense results in random cases
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m tests.truth $(TRUTH_ARGS)

lowest: $(LOWEST)/.test ## run the tests that depend on other packages with their lowest versions
	OPENBLAS_NUM_THREADS=1 $(LOWEST)/bin/python -m pytest $(LOWEST_ARGS) $(LOWEST_TESTS)

check: $(VENV)/.lint $(VENV)/.test ## lint, format, types, layers, and the size of the code base
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tools/house.py

format: $(VENV)/.lint ## format the code and apply ruff's automatic fixes
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

bench: $(VENV)/.test $(VENV)/.bench ## run the benchmarks
	$(BIN)/python -m benchmarks $(BENCH_ARGS)

papers: $(VENV)/.test ## make results of the literature again, beside the printed figures
	$(BIN)/python -m papers $(PAPERS)

images: $(VENV)/.test ## make the pictures of the documentation
	$(BIN)/python docs/images/make.py
	$(BIN)/python docs/images/make_report.py
	$(BIN)/python examples/novelty.py -o docs/images/novelty.png
	$(BIN)/python examples/denoise.py -o docs/images/denoise.png

clean: ## remove the environment, the caches and what was built
	rm -rf $(VENV) $(LOWEST) build dist mercer-demo .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name .git -prune -o -name __pycache__ -type d -exec rm -rf {} +

# Each stamp is one set of packages, installed again when pyproject.toml changes.
$(VENV)/.mercer: pyproject.toml | $(VENV)/pyvenv.cfg
	$(PIP) install -q -e .
	@touch $@

$(VENV)/.demo: pyproject.toml | $(VENV)/pyvenv.cfg
	$(PIP) install -q -e '.[report,files]'
	@touch $@

$(VENV)/.test $(VENV)/.lint $(VENV)/.bench: $(VENV)/.%: pyproject.toml | $(VENV)/pyvenv.cfg
	$(PIP) install -q -e '.[$*]'
	@touch $@

# The lowest versions of what mercer and its extras need, without torch, whose old builds are
# large; then the newest tools of the tests that leave those alone.
$(LOWEST)/.test: pyproject.toml
	$(LOWEST_PYTHON) -m venv --clear $(LOWEST)
	$(LOWEST)/bin/python -m pip --disable-pip-version-check install -q uv
	$(LOWEST)/bin/uv pip install -q --python $(LOWEST) --resolution lowest-direct \
	  -e '.[plot,files,dask,onnx,frames,report]'
	$(LOWEST)/bin/uv pip freeze -q --python $(LOWEST) --exclude-editable > $(LOWEST)/lowest.txt
	$(LOWEST)/bin/uv pip install -q --python $(LOWEST) -c $(LOWEST)/lowest.txt -e '.[test]'
	@touch $@

$(VENV)/pyvenv.cfg:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Mercer needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version 2>&1)." >&2; \
	  echo "Name another one: make PYTHON=python3.12 ..." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

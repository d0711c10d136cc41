# make demo   set up, index a real directory with the built-in model, answer a question
# make test   set up, run the tests            make lint   style and types
# make test-all   the tests on each Python 3.11, 3.12, 3.13 that is present
# make test-servers  the tests with real model servers, which it installs beside (300 MB)
# make test-browser  the tests of the page in a real Chromium, which it finds or installs
# make test-torch    the same with those that need torch (2 GB more)
# make bench  benchmarks                        make clean  remove what these made

PYTHON ?= $(shell .ci/pythons | head -n 1)
VENV ?= .venv
BIN := $(VENV)/bin
SERVERS ?= $(CURDIR)/.servers
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

.PHONY: demo test test-all test-servers test-browser test-torch lint bench clean
.DELETE_ON_ERROR:

$(VENV)/.made: pyproject.toml .ci/constraints.txt
	@test -n "$(PYTHON)" || { echo "no Python 3.11 or newer found: set PYTHON=/path/to/python3" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --upgrade pip
	$(PIP) install --constraint .ci/constraints.txt --editable .
	touch $@

$(VENV)/.made-dev: $(VENV)/.made
	$(PIP) install --constraint .ci/constraints.txt --editable '.[dev]'
	touch $@

# The corpus is the source code of two libraries that were installed anyway, copied so that
# nothing is written beside the originals.
demo: $(VENV)/.made
	rm -rf .demo && mkdir .demo
	cp -r "$$($(BIN)/python -c 'import click, os; print(os.path.dirname(click.__file__))')" .demo/click
	cp -r "$$($(BIN)/python -c 'import httpx, os; print(os.path.dirname(httpx.__file__))')" .demo/httpx
	$(BIN)/ragx init .demo --yes
	$(BIN)/ragx index --root .demo
	$(BIN)/ragx query --root .demo --top 3 "how are redirects followed?"

test: $(VENV)/.made-dev
	@$(BIN)/python --version
	$(BIN)/python -m pytest $(TESTS)

test-all:
	.ci/test-all

# The servers stand in environments of their own: nothing of theirs is installed in ragx's.
test-servers: $(VENV)/.made-dev
	PYTHON="$(abspath $(BIN)/python)" tests/servers/setup $(SERVERS)
	RAGX_TEST_SERVERS=$(SERVERS) $(BIN)/python -m pytest tests/servers

test-browser: $(VENV)/.made-dev
	$(PIP) install --constraint .ci/constraints.txt playwright axe-playwright-python
	tests/browser/setup
	RAGX_TEST_BROWSER="$$(tests/browser/setup | tail -n 1)" $(BIN)/python -m pytest tests/browser

test-torch: $(VENV)/.made-dev
	PYTHON="$(abspath $(BIN)/python)" tests/servers/setup $(SERVERS) torch
	RAGX_TEST_SERVERS=$(SERVERS) $(BIN)/python -m pytest tests/servers
	$(SERVERS)/torch/bin/python -m pip install --quiet --editable '.[dev,rerank]'
	$(SERVERS)/torch/bin/python -m pytest tests/torch

lint: $(VENV)/.made-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/.made-dev
	$(BIN)/python benchmarks/indexing.py

clean:
	rm -rf .venv .venv-* .servers .demo build *.egg-info .mypy_cache .ruff_cache .pytest_cache

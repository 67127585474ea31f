# What this project can do for you; `make` alone lists it. Every target makes `.venv` on first use.
.DEFAULT_GOAL := help
SHELL := bash
PYTHON ?= python3
FILE ?= inputs/spring_catalog.csv
ARGS ?=
KILLS ?= 200
DAYS ?= 400
# Most tests wait for processes and sockets, so that more of them than cores run side by side.
TESTERS ?= 4
VENV ?= .venv
BIN := $(VENV)/bin
PYTEST = $(BIN)/python -m pytest --dist loadfile
# Kept between runs: without, each process compiles the project anew, and each tester all tests.
unexport PYTHONDONTWRITEBYTECODE
INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check
# For all Python versions and systems at once. No address of an index and no path is written into a lock.
LOCK = .venv-lock/bin/uv --quiet pip compile --universal --python-version 3.11 --generate-hashes --no-annotate \
	--no-emit-index-url --no-emit-find-links --custom-compile-command "make lock"

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | awk -F'\t' '{printf "  make %-11s %s\n", $$1, $$2}'

# What users need: the locked versions by their hashes, then the project itself, which downloads nothing.
$(VENV)/.installed: pyproject.toml requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or later is needed; name one with PYTHON=..."; exit 1; }
	@echo "Installing into $(VENV), about a minute …"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(INSTALL) --no-deps --require-hashes -r requirements.lock
	@$(INSTALL) --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/.developing: $(VENV)/.installed requirements-dev.lock
	@echo "Installing the developers' tools, half a minute …"
	@$(INSTALL) --no-deps --require-hashes -r requirements-dev.lock
	@touch $@

setup: $(VENV)/.developing ## make .venv with everything in it, the developers' tools too

import: $(VENV)/.installed ## turn FILE (default inputs/spring_catalog.csv) into products; ARGS= takes more options
	$(BIN)/patternmill import "$(FILE)" $(ARGS)

up: $(VENV)/.installed ## Prefect UI, worker, deployments and the embedded studio in one terminal
	$(BIN)/patternmill up $(ARGS)

test: setup ## run all tests but the soak: some eight minutes on two cores
	$(PYTEST) -n $(TESTERS) tests

test-quick: setup ## the tests without the slow ones: what to run while you work
	$(PYTEST) -n 2 -m "not soak and not slow" tests

soak: setup ## what takes long: DAYS (default 400) days in virtual time, KILLS (default 200) random kills
	$(BIN)/python -m pytest -m soak tests
	$(BIN)/python -m tests.simulation --days $(DAYS) .simulated && rm .simulated
	$(BIN)/python -m tests.kill_loop --kills $(KILLS)

check: setup ## ruff, mypy strict, import-linter, and what each room weighs next to its budget
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/python -m benchmarks.rooms
	$(BIN)/python -m benchmarks.concepts --check

bench: setup ## measure against peers, side by side in one run: some ten minutes
	$(BIN)/python -m benchmarks.run
	$(BIN)/python -m benchmarks.one_row

system: ## install what some tests need from the system (Debian, as root): Chromium
	@command -v chromium >/dev/null || { apt-get update -qq && apt-get install -qq -y --no-install-recommends chromium >/dev/null; }

lock: ## write the locks anew after a change of pyproject.toml; ARGS=--upgrade takes newer versions too
	@test -x .venv-lock/bin/uv || { $(PYTHON) -m venv $(VENV)-lock && .venv-lock/bin/python -m pip install --quiet uv==0.13.9; }
	$(LOCK) $(ARGS) pyproject.toml --group build --output-file requirements.lock
	$(LOCK) $(ARGS) pyproject.toml --group build --extra dev --constraints requirements.lock --output-file requirements-dev.lock

clean: ## remove .venv and caches (never .patternmill or results)
	rm -rf .venv .venv-lock .mypy_cache .ruff_cache .pytest_cache .import_linter_cache *.egg-info
	find . -name __pycache__ -prune -exec rm -rf {} +

.PHONY: help setup import up test test-quick soak check bench system lock clean

# The one command for each thing that people do here. Needs python3 (3.11 or newer) and make.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

.PHONY: install compile run test compat soak bench clean
.DELETE_ON_ERROR:

install: $(INSTALLED)

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo 'Partita needs Python 3.11 or newer; try: make PYTHON=python3.12 install' >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
		{ echo 'This Python cannot make virtual environments. On Debian or Ubuntu: apt install python3-venv' >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(INSTALLED): requirements.txt pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps -e .
	@touch $@

# Compiled again only when a hot room has changed.
compile: install
	@$(BIN)/python scripts/compile

run: compile
	$(BIN)/partita serve --host 127.0.0.1 --port 8000 --data data

test: compile
	@scripts/provision
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest tests -q
	PARTITA_PURE=1 $(BIN)/pytest -q tests/unit/item tests/unit/expressions tests/unit/operations tests/unit/server tests/storage

compat: compile
	@scripts/provision
	$(BIN)/pytest tests -q -m compat

soak: compile
	@scripts/provision
	$(BIN)/pytest tests -q -m soak

# Options of the benchmark go into BENCH: make bench BENCH="--quick"
bench: compile
	@scripts/provision
	$(BIN)/python -m benchmarks $(BENCH)

clean:
	rm -rf $(VENV) src/partita/.compiled .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

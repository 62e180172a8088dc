# Every developer's task. `make demo` and `make test` work on a machine with Python 3.11+ alone.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DEMO := .demo/registry.db
READY := $(VENV)/.ready
TOOLS := $(VENV)/.tools
PROGRAMS := $(VENV)/.programs
CLIENTS := $(VENV)/.clients
COMPILED := $(VENV)/.compiled
# Modules are compiled when they are first imported, as most never are.
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile
# What only some tests need, which are skipped without it.
OPTIONAL := server frameworks browser semantic
# A file's tests share what it keeps; the long files come first (tests/collecting.py).
PYTEST = $(BIN)/python -m pytest --dist loadfile --no-loadscope-reorder $(MORE)
# In memory, where there is room and programs may be run: nothing waits there for a disk.
export PYTEST_DEBUG_TEMPROOT := $(shell test -w /dev/shm && ! grep -q " /dev/shm .*noexec" /proc/mounts \
	&& test "$$(df -Pk /dev/shm | awk 'END {print $$4}')" -gt 4000000 && echo /dev/shm)
# Else each worker compiles all tests, and each process that they start all modules, every time.
unexport PYTHONDONTWRITEBYTECODE
# Where tests may install clients of others, from npm.
export SKILL_REGISTRY_CLIENTS := $(abspath $(VENV))/clients

# Tests that fail beside thousands of others are tried once more, alone. A test that passes then
# depends on the load: its first failure is printed, so that you can repair it.
define tried
{ $(PYTEST) -o cache_dir=$(VENV)/cache-$(1) $(2) || { test $$? = 1 && \
	echo "Trying the failed tests once more, alone." && \
	$(PYTEST) -o cache_dir=$(VENV)/cache-$(1) $(2) -n 0 -x --last-failed --last-failed-no-failures none; }; }
endef

# What runs beside other things says all it has to say when it ends.
define beside
@said=$$($(1) 2>&1); status=$$?; printf '%s\n' "$$said"; exit $$status
endef

.PHONY: demo test test-long test-file test-server test-lint chaos lint bench clients docs schema needles clean

$(READY): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(PIP) --editable .
	@touch $@

# All at once, which takes half as long as one group after the other.
$(TOOLS): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) --upgrade "pip>=25.1"
	$(PIP) --editable ".[mcp,postgres,web]" --group dev $(OPTIONAL:%=--group %) || { \
		$(PIP) --editable ".[mcp,postgres,web]" --group dev && \
		for group in $(OPTIONAL); do $(PIP) --group $$group || true; done; }
	@touch $@ $(READY)

# By one process, and so not by each worker.
$(COMPILED): $(TOOLS)
	@$(BIN)/python -m pytest --collect-only --quiet > /dev/null || true
	@touch $@

# PgBouncer, proxies for the web catalogue, and a browser for the journeys through it: the system's,
# on Debian installed for root. The browser without windows takes half the time for each page.
$(PROGRAMS):
	-@for one in pgbouncer nginx caddy chromium-headless-shell; do \
		command -v $$one > /dev/null || missing="$$missing $$one"; \
	done; \
	test -z "$$missing" || test "$$(id -u)" != 0 || ! apt-get -qq update || \
		for one in $$missing; do apt-get -qq install -y $$one; done; \
	command -v pgbouncer > /dev/null || \
		echo "There is no PgBouncer: what the tests do behind one is skipped." >&2; \
	for one in nginx caddy; do command -v $$one > /dev/null || \
		echo "There is no $$one: the tests behind it are skipped." >&2; done; \
	command -v chromium-headless-shell > /dev/null || command -v chromium > /dev/null || \
		command -v chromium-browser > /dev/null || command -v google-chrome > /dev/null || \
		echo "There is no Chromium: what the tests do in a browser is skipped." >&2
	@mkdir -p $(VENV) && touch $@

# MCP's own tests of servers (an alpha, so that it stays the same one) and an installer of skills
# that shares projects with ours, with a Node that is new enough; where there is npm.
$(CLIENTS): pyproject.toml
	-npm install --prefix $(VENV)/node --silent --no-fund --no-audit \
		@modelcontextprotocol/conformance@0.2.0-alpha.12 skills@1.7.4 node@22
	@mkdir -p $(VENV) && touch $@

demo: $(READY)  ## sync the bundled examples into a database of their own, list and search them
	@rm -f $(DEMO)* && mkdir -p $(dir $(DEMO))
	$(BIN)/skill-registry --db $(DEMO) sync examples/skills --scope bundled
	$(BIN)/skill-registry --db $(DEMO) list
	$(BIN)/skill-registry --db $(DEMO) search "how do I review a pull request?"
	$(BIN)/skill-registry --db $(DEMO) check

lint: $(TOOLS)  ## style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# All at the same time: one of them always waits for something.
test:  ## everything that must hold: style, types, tests with a file and with a server as the database
	@$(MAKE) --no-print-directory -j4 test-file test-server test-lint

test-file: $(COMPILED) $(PROGRAMS) $(CLIENTS)
	$(if $(LONGER),export $(LONGER);) $(call tried,file,-n 3)

test-server: $(COMPILED) $(PROGRAMS) $(CLIENTS)
	$(call beside,$(call tried,server,-n 2 --backend postgresql))

test-lint: $(TOOLS)
	$(call beside,$(MAKE) --no-print-directory lint)

test-long:  ## the same with all real skills, a fault at every step, more examples, all that others' clients do
	@$(MAKE) --no-print-directory test MORE="--all-skills --every-step" \
		LONGER="SKILL_REGISTRY_TEST_WRITES=2000 SKILL_REGISTRY_TEST_CHANGES=50"

chaos: $(TOOLS) $(PROGRAMS)  ## cut the power at every call of every operation, then two minutes of machines and servers that die; `make test` tries a part of both
	$(BIN)/python -m tests.powerloss.chaos
	$(BIN)/python -m tests.server.chaos.run

bench: $(TOOLS) $(PROGRAMS)  ## measure beside the bare parts; writes docs/contributing/benchmarks.md
	$(BIN)/python benchmarks/run.py

clients: $(TOOLS)  ## run real MCP clients and agents' own clients of skills; writes the tables in docs/reference/mcp.md and docs/how-to/install-with-an-agents-own-client.md
	$(BIN)/python benchmarks/clients/run.py
	$(BIN)/python -m tests.agent_clients

docs: $(TOOLS)  ## write the generated pages of docs/reference, and the answers of typed commands
	$(BIN)/python -m tests.reference
	$(BIN)/python -m tests.tour $$(grep -l '^```console' README.md docs/*.md docs/*/*.md)

schema: $(TOOLS)  ## write the schema of a new SQLite file, after a migration was added
	$(BIN)/python -m tests.schema

needles: $(TOOLS)  ## work out what a text must hold before the pattern of a behaviour is tried
	$(BIN)/python -m tests.needles

clean:
	rm -rf $(VENV) .demo .bench build dist

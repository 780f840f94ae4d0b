# `make demo` and `make test` are all one needs; each makes its own virtual environment first, in $(VENV).
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV ?= .venv
DEMO ?= $(wildcard manifests/examples/demo.yaml manifests/examples/demo/*.yaml)

BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: demo demo-files test lint ruff mypy arrows pytest clean
.DEFAULT_GOAL := test

# Ends with 3 where something must wait, which is what the demo shows.
demo: $(READY)
	$(BIN)/pumice run $(DEMO) || test $$? -eq 3

demo-files:
	@echo $(abspath $(DEMO))

test: lint pytest

lint: ruff mypy arrows

ruff: $(READY)
	$(BIN)/ruff check
	$(BIN)/ruff format --check --quiet

mypy: $(READY)
	$(BIN)/mypy

arrows: $(READY)
	$(BIN)/lint-imports --no-cache

pytest: $(READY)
	$(BIN)/pytest

# Made again when the dependencies or the commands change; an unfinished environment has no stamp and is made anew.
$(READY): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test]'
	touch $@

clean:
	rm -rf $(VENV) dist build .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis

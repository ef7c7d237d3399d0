# `make demo` and `make test` do all set-up on a machine that has only Python.

PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test test-all pytest lint clean

demo: .venv/installed
	$(BIN)/python demo.py

# The linters run beside the tests.
test: .venv/installed
	$(MAKE) --jobs 2 lint pytest

pytest: .venv/installed
	$(BIN)/python -m pytest --numprocesses 2 --dist loadfile -m "not nightly"

test-all: .venv/installed lint
	$(BIN)/python -m pytest -m ""

lint: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

clean:
	rm -rf .venv demo

# Python 3.10 to 3.12, as far as TensorFlow 2.20 and 2.21 both go.
.venv/installed: requirements.txt requirements-dev.txt pyproject.toml
	$(PYTHON) -c "import sys; v = sys.version_info[:2]; \
	  (3, 10) <= v <= (3, 12) or sys.exit('Python must be 3.10 to 3.12.' \
	  ' Received: %d.%d. Name another: make PYTHON=python3.12' % v)"
	@echo "Installing into .venv, which takes a few minutes."
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --editable ".[dev]"
	touch $@

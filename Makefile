# `make demo` and `make test` do all set-up on a machine that has only Python.

PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test lint clean

demo: .venv/installed
	$(BIN)/python demo.py

test: .venv/installed lint
	$(BIN)/python -m pytest -m "slow or not slow"

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

# `make demo` and `make test` need only Python: they install everything else.

PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo docs test test-all pytest lint clean

# Only the packages that the commands need.
demo: .venv/installed
	$(BIN)/python demo.py

# The linters run beside the tests.
test: .venv/tests-installed
	$(MAKE) --jobs 2 lint pytest

# TensorFlow does not free the memory of models that a process has run, so each
# process runs only 22 files of tests. Two processes run at a time. They
# start with the largest files, so that both end at about the same time.
pytest: .venv/tests-installed
	@ls -S $$(find tests -name "test_*.py") | xargs -P 2 -n 22 sh -c \
	  'output=$$($(BIN)/python -m pytest -m "not nightly" "$$@" 2>&1); \
	  status=$$?; printf "%s\n" "$$output"; exit $$status' pytest

test-all: .venv/tests-installed lint
	$(BIN)/python -m pytest -m ""

lint: .venv/tests-installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The site in build/site. Broken links are errors.
docs: .venv/docs-installed
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build

clean:
	rm -rf .venv build demo

# Installs the versions that were tested together; pyproject.toml has ranges. pip
# shows its progress, because TensorFlow is large.
.venv/installed: requirements.txt pyproject.toml
	$(PYTHON) -c "import sys; v = sys.version_info[:2]; \
	  (3, 10) <= v <= (3, 13) or sys.exit('Python must be 3.10 to 3.13.' \
	  ' Received: %d.%d. Name another: make PYTHON=python3.12' % v)"
	@echo "Installing into .venv, which takes a few minutes."
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --requirement requirements.txt --editable .
	touch $@

.venv/tests-installed: .venv/installed requirements-dev.txt
	$(BIN)/python -m pip install --requirement requirements.txt \
	  --requirement requirements-dev.txt --editable .
	touch $@

.venv/docs-installed: .venv/tests-installed requirements-docs.txt
	$(BIN)/python -m pip install --requirement requirements-docs.txt
	touch $@

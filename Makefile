# The two commands of the README and the one that checks everything.
# All of them make their own virtual environment; uv is used when it is there.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready

.PHONY: demo test check lint format clean

demo: $(READY)
	$(BIN)/dpsyn demo
	@echo "(dpsyn is $(BIN)/dpsyn; after '. $(BIN)/activate' the shell finds it.)"

test: $(READY)
	$(BIN)/python -m pytest --numprocesses auto --dist worksteal

check: lint test

lint: $(READY)
	$(BIN)/ruff format --check src tests bench
	$(BIN)/ruff check src tests bench
	$(BIN)/mypy

format: $(READY)
	$(BIN)/ruff format src tests bench
	$(BIN)/ruff check --fix src tests bench

$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "dpsyn needs Python 3.11 or newer; say which with: make PYTHON=python3.12 ..."; exit 2; }
	@echo "Setting up $(VENV), once ..."
	@if command -v uv >/dev/null; then \
	  uv venv --quiet --allow-existing --python $(PYTHON) $(VENV) && \
	  VIRTUAL_ENV=$(VENV) uv pip install --quiet --editable . --group dev; \
	else \
	  $(PYTHON) -m venv $(VENV) && \
	  $(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1' && \
	  $(BIN)/python -m pip install --quiet --editable . --group dev; \
	fi
	@touch $@

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis dist build

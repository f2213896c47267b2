# The two commands of the README and the one that checks everything; `make help` lists them all.
# All of them make their own virtual environment; uv is used when it is there.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
BASE   := $(VENV)/.base
READY  := $(VENV)/.ready
# A process on every core; threads of linear algebra beside them would only wait for each other.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses auto --dist worksteal

# $(call timed,NAME,COMMAND): run a command, then say how long it took, also if it failed.
timed = @echo "$(2)"; start=$$(date +%s); $(2); code=$$?; echo "── $(1): $$(($$(date +%s) - start)) s"; exit $$code

unexport PYTHONDONTWRITEBYTECODE  # containers like to set it; then every process of a test run compiles all modules again

.PHONY: help demo test rest check lint format clean

help:  ## list the targets
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1	\2/p' $(MAKEFILE_LIST) | expand -t 16

demo: $(BASE)  ## set up what users need, and run the demo
	$(BIN)/dpsyn demo
	@echo "(dpsyn is $(BIN)/dpsyn; after '. $(BIN)/activate' the shell finds it.)"

test: $(READY)  ## the fast tests: all but those marked check or slow
	$(call timed,test,$(PYTEST))

rest: $(READY)  ## the tests marked check: Spark, PostgreSQL, a browser, kills, the README
	$(call timed,rest,$(PYTEST) --check -m check)

check: lint test rest  ## all that a change must pass; every test runs once

lint: $(READY)  ## format, lint and types
	$(call timed,ruff,$(BIN)/ruff format --check src tests bench && $(BIN)/ruff check src tests bench)
	$(call timed,mypy,$(BIN)/mypy)

format: $(READY)  ## format the code
	$(BIN)/ruff format src tests bench
	$(BIN)/ruff check --fix src tests bench

$(BASE): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "dpsyn needs Python 3.11 or newer; say which with: make PYTHON=python3.12 ..."; exit 2; }
	@echo "Setting up $(VENV), once ..."
	@if command -v uv >/dev/null; then \
	  uv venv --quiet --allow-existing --python $(PYTHON) $(VENV) && \
	  VIRTUAL_ENV=$(VENV) uv pip install --quiet --editable '.[report]'; \
	else \
	  $(PYTHON) -m venv $(VENV) && \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[report]'; \
	fi
	@touch $@

$(READY): $(BASE)
	@echo "Adding what developers need, once ..."
	@if command -v uv >/dev/null; then \
	  VIRTUAL_ENV=$(VENV) uv pip install --quiet --group dev; \
	else \
	  $(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1' && \
	  $(BIN)/python -m pip install --quiet --group dev; \
	fi
	@touch $@

clean:  ## remove the environment and what tools left behind
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis dist build

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

.PHONY: help demo test rest check lint format docs bench coverage lowest archive clean

help:  ## list the targets
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1	\2/p' $(MAKEFILE_LIST) | expand -t 16

demo: $(BASE)  ## set up what users need, and run the demo
	$(BIN)/dpsyn demo
	@echo "(dpsyn is $(BIN)/dpsyn; after '. $(BIN)/activate' the shell finds it.)"

test: $(READY)  ## the fast tests: all but those marked check or slow
	$(call timed,test,$(PYTEST))

rest: $(READY)  ## the tests marked check: Spark, PostgreSQL, a browser, kills, the README
	$(call timed,rest,$(PYTEST) --check -m check)

check: lint test docs rest  ## all that a change must pass; every test runs once

docs: $(READY)  ## the documentation as a site, in build/site; any warning is an error
	$(call timed,docs,$(BIN)/python docs/site.py build/pages && $(BIN)/zensical build --strict --clean -f mkdocs.yml)

bench: $(READY)  ## what the benchmarks are, with the question that each answers
	@for file in bench/*.py; do $(BIN)/python -c 'import ast, sys; text = ast.get_docstring(ast.parse(open(sys.argv[1]).read())); print(f"{sys.argv[1]:26}", text.splitlines()[0])' $$file; done

coverage: $(READY)  ## the fast tests with a report of what they cover; fails below the floor in pyproject.toml
	$(call timed,coverage,$(PYTEST) --cov --cov-report term:skip-covered --cov-report html:build/coverage)

lowest: $(BASE)  ## the fast tests with the lowest versions of libraries that pyproject.toml allows; needs uv
	uv venv --quiet --clear --python $(PYTHON) build/lowest
	VIRTUAL_ENV=build/lowest uv pip install --quiet --resolution lowest-direct --group dev \
	  --editable '.[app,duckdb,ml,office,pandas,plot,polars,postgres,report,sign]'
	OMP_NUM_THREADS=1 build/lowest/bin/python -m pytest --numprocesses auto --dist worksteal

archive: $(READY)  ## wheel and sdist, and the fast tests of the unpacked sdist with the wheel and without src/
	rm -rf dist build/archive
	$(BIN)/python -m build --quiet --outdir dist
	mkdir -p build/archive && tar -xzf dist/*.tar.gz -C build/archive --strip-components 1 && rm -r build/archive/src
	$(PYTHON) -m venv build/archive/.venv
	build/archive/.venv/bin/python -m pip install --quiet --upgrade 'pip>=25.1'
	cd build/archive && .venv/bin/python -m pip install --quiet "$$(ls ../../dist/*.whl)[report]" --group dev
	cd build/archive && OMP_NUM_THREADS=1 .venv/bin/python -m pytest --numprocesses auto --dist worksteal

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
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage dist build

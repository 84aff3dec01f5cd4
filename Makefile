# One virtual environment serves every target. A stamp file records each group of packages that is
# installed, so a second call installs nothing; a change of pyproject.toml or constraints.txt renews it.

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
PY     := $(BIN)/python
PIP    := $(PY) -m pip --disable-pip-version-check install --quiet -c constraints.txt
JOBS   ?= 2
# Empty selects every test; `make test MARK="not slow"` leaves the slow ones out.
MARK   ?=
PINS   := pyproject.toml constraints.txt

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test lint format docs bench check clean

help:
	@echo "make demo    set up and run the demonstration"
	@echo "make test    set up and run the whole test suite"
	@echo "make lint    style and types          make format  put the sources into the standard layout"
	@echo "make docs    build the manual         make bench   compare speed with other packages"
	@echo "make check   lint, docs, test         make clean   remove everything that was made"

# The demonstration draws a figure as well, for which the package itself needs no plotting library.
demo: $(VENV)/.stamp-plot
	$(BIN)/sarrus demo

# One BLAS thread per test process: the processes already fill the cores.
test: $(VENV)/.stamp-test
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(PY) -m pytest -n $(JOBS) -m "$(MARK)" $(TESTFLAGS)

lint: $(VENV)/.stamp-lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright --pythonpath $(PY)

format: $(VENV)/.stamp-lint
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(VENV)/.stamp-docs
	$(PY) -m sphinx -W --keep-going -q -b html docs docs/_build/html

# Takes about half an hour; `make bench BENCHFLAGS=--quick` shows in five minutes that all of it works.
bench: $(VENV)/.stamp-bench
	mkdir -p bench/results
	$(PY) -m bench.acceleration --json bench/results/acceleration.json $(BENCHFLAGS)
	$(PY) -m bench.workprec --json bench/results/workprec.json --plot bench/results/workprec.png $(BENCHFLAGS)
	$(PY) -m bench.closed_loop --json bench/results/closed_loop.json $(BENCHFLAGS)

check:
	$(MAKE) lint
	$(MAKE) docs
	$(MAKE) test

clean:
	rm -rf $(VENV) docs/_build docs/_made build dist .pytest_cache .ruff_cache sarrus-demo.html sarrus-demo.png
	find src tests docs bench -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

# An environment is usable once it has pip. Some systems ship Python without the module that puts pip
# into a new environment, hence the second and third way before giving up.
$(VENV)/.stamp-venv:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "error: Python 3.11 or newer is needed; name it with: make $(MAKECMDGOALS) PYTHON=python3.11" >&2; exit 1; }
	@$(PY) -m pip --version >/dev/null 2>&1 || { rm -rf $(VENV); $(PYTHON) -m venv $(VENV) >/dev/null 2>&1; } || \
	  { rm -rf $(VENV); $(PYTHON) -m virtualenv -q $(VENV) >/dev/null 2>&1; } || \
	  { rm -rf $(VENV); $(PYTHON) -m venv --without-pip $(VENV) >/dev/null 2>&1 && \
	    $(PYTHON) -m pip --python $(PY) install --quiet pip >/dev/null 2>&1; } || \
	  { rm -rf $(VENV); echo "error: cannot make a virtual environment; cure: apt-get install python3-venv" >&2; exit 1; }
	@touch $@

# The build back end comes from the same pinned list, so the build needs no environment of its own.
$(VENV)/.stamp-core: $(VENV)/.stamp-venv $(PINS)
	@echo "installing sarrus into $(VENV) ..."
	$(PIP) hatchling editables
	$(PIP) --no-build-isolation -e .
	@touch $@

$(VENV)/.stamp-%: $(VENV)/.stamp-core
	@echo "installing the packages for '$*' into $(VENV) ..."
	$(PIP) --no-build-isolation -e '.[$*]'
	@touch $@

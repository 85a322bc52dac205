# Two commands matter: `make demo` trains and tries a translator, `make test` runs every check.
# Both make their own virtual environment in .venv with the versions pinned in constraints.txt.

PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
# pip's own build environments cannot be pinned by a constraints file, so the build tool is installed from it too.
INSTALL = $(BIN)/python -m pip install --quiet --constraint constraints.txt

.PHONY: demo demo-zh test check lint types fast slow gpu-check browser-check wheel clean

demo: $(VENV)/.runtime
	$(BIN)/tfm train --config base.yaml
	$(BIN)/tfm eval --baseline
	$(BIN)/tfm eval --split handwritten
	$(BIN)/tfm translate "My little brother often reads a book in the garden." "When does the train leave?"

demo-zh: $(VENV)/.runtime
	$(BIN)/tfm train --config base-zh.yaml
	$(BIN)/tfm eval --baseline
	$(BIN)/tfm eval --split handwritten
	$(BIN)/tfm translate "My little brother often reads a book in the garden." "When does the train leave?"

test: $(VENV)/.dev
	$(MAKE) check

check: lint types fast

lint:
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types:
	$(BIN)/mypy

# The tensors of the tests are so small that a second thread only waits for the first: a process for each core instead.
fast:
	OMP_NUM_THREADS=1 $(BIN)/pytest -n auto -m "not slow and not gpu and not browser" --cov --cov-report=term --cov-fail-under=85

slow:
	$(BIN)/pytest -m "slow and not gpu and not browser" --timeout=1800

# Needs torch, numpy and pytest only, on a machine where nothing may be installed: make gpu-check BIN=/usr/bin
gpu-check:
	$(BIN)/python -m transformer_cli.benchmark.gpu_check

browser-check:
	$(BIN)/pytest -m browser --timeout=900

$(VENV)/.runtime: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) hatchling editables
	$(INSTALL) --no-build-isolation --editable .
	touch $@

$(VENV)/.dev: $(VENV)/.runtime
	$(INSTALL) --no-build-isolation --editable '.[dev,plot,sentences,ctranslate2]'
	touch $@

wheel: $(VENV)/.dev
	$(BIN)/python -m build --wheel --no-isolation

clean:
	rm -rf $(VENV) dist .coverage .mypy_cache .pytest_cache .ruff_cache

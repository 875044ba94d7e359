# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PYTEST := $(BIN)/python -m pytest -n auto --dist worksteal
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Tests start hundreds of processes: where nothing keeps the bytecode, each compiles all it imports.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help demo docs pictures notebooks check test test-full lint format dist clean
.DEFAULT_GOAL := help

help:
	@echo "make demo       install, make the sample dataset, evaluate two baselines, print the table"
	@echo "make check      lint, import rules, types, fast tests: while one works"
	@echo "make test       install what tests need; lint, import rules, types, every claim once"
	@echo "make test-full  the same with long fuzzing, training, many kills, all that is slow"
	@echo "make docs       build the site of the documentation"
	@echo "make pictures   make the pictures of README and docs from the demo"
	@echo "make notebooks  run the notebooks and store their outputs"
	@echo "make format     format the code"
	@echo "make dist       build sdist and wheel, and try them in empty environments"
	@echo "make clean      remove .venv and what the tools left"

$(VENV)/base.stamp: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable .
	touch $@

# The usual builds of torchaudio and torchvision are linked against CUDA. Where that is absent they
# cannot be imported, nor can transformers, which imports them; all that we use is in Python, and
# works without torchaudio's libraries and the one file that registers torchvision's operators.
$(VENV)/dev.stamp: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[dev,docs,local,plots,ray,s3,train,voice]"
	@$(BIN)/python -c "import torchaudio" 2>/dev/null || rm -f $(VENV)/lib/python*/site-packages/torchaudio/lib/*.so
	@$(BIN)/python -c "import torchvision" 2>/dev/null || truncate -s 0 $(VENV)/lib/python*/site-packages/torchvision/_meta_registrations.py
	touch $@ $(VENV)/base.stamp

# Pages are tested in a real browser. Where there is none and none can be installed, those tests are
# skipped and say why.
$(VENV)/browser.stamp: $(VENV)/dev.stamp
	@command -v chromium >/dev/null || [ "$$(id -u)" != 0 ] || ! command -v apt-get >/dev/null || { \
	  export DEBIAN_FRONTEND=noninteractive; get="timeout 300 apt-get install -y --no-install-recommends chromium fonts-dejavu-core"; \
	  $$get || { timeout 120 apt-get update && $$get; }; } >/dev/null 2>&1 || true
	@touch $@

demo: $(VENV)/base.stamp
	$(BIN)/omnidata demo --out omnidata-demo

docs: $(VENV)/dev.stamp
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

pictures: $(VENV)/browser.stamp
	$(BIN)/python docs/_site/pictures.py

lint: $(VENV)/dev.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/mypy

# Rooms whose tests are many and quick, and start few processes.
FAST := omnidata/metrics $(addprefix tests/,compare metrics pyautogui run)
check: lint
	$(PYTEST) -m "not slow" $(FAST)

test: lint $(VENV)/browser.stamp
	$(PYTEST)

test-full: lint $(VENV)/browser.stamp
	OMNIDATA_TEST_FULL=1 $(PYTEST)

notebooks: $(VENV)/dev.stamp
	$(BIN)/python notebooks/run.py

format: $(VENV)/dev.stamp
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

dist:
	sh tests/release.sh dist

clean:
	rm -rf $(VENV) dist site .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis

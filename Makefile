# make demo    set up and compile BERT-base and ResNet-50, print one table
# make test    set up, lint, type-check and run the test suite; its two processes share the cores, so that threads of
#              one do not wait by spinning
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test lint setup clean

$(VENV)/ready: requirements.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt
	touch $@

setup: $(VENV)/ready

demo: setup
	$(BIN)/python -m benchmarks.demo

lint: setup
	$(BIN)/ruff check monograph tests benchmarks
	$(BIN)/mypy

test: lint
	OMP_WAIT_POLICY=passive $(BIN)/python -m pytest -n 2 --dist worksteal

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache

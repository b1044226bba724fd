# `make help` lists the targets.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
WORKERS ?= $(shell getconf _NPROCESSORS_ONLN)

.PHONY: help demo test quick full lowest hydra-next torture fuzz bench pictures docs pages method-pictures clean

help:  ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 18

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt torch
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev,cluster]'
	@touch $@

demo: $(READY)  ## set up, train nonlinear PCA on natural image patches, draw the filters
	$(BIN)/sigmapca train model=nlpca a=4
	$(BIN)/sigmapca plot last

# Threads that wait leave the core to others; what has been compiled once is kept for every process.
TESTS := PYTHONDONTWRITEBYTECODE= OMP_WAIT_POLICY=passive $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

test: $(READY)  ## set up, then the checks: ruff, mypy, import contracts, one test of every mechanism on all cores
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(TESTS)

quick: $(READY)  ## the checks that take a minute: ruff, import contracts, the tests without runs and processes
	$(BIN)/ruff check .
	$(BIN)/lint-imports --no-logo
	$(BIN)/python -m pytest -m quick

full: $(READY)  ## what `make test` leaves out: every method, reader and launcher, random damage and kills, pages, experiments
	$(TESTS) -m full

lowest:  ## the tests of runs and commands with the lowest versions that are allowed
	$(PYTHON) -m venv .venv-lowest
	.venv-lowest/bin/python -m pip install --quiet --constraint constraints.txt torch
	.venv-lowest/bin/python -m pip install --quiet --constraint constraints-lowest.txt --editable '.[cluster]' \
		pytest hypothesis pyarrow xarray h5netcdf safetensors
	.venv-lowest/bin/python -m pytest tests/storage tests/launchers tests/estimator/test_sklearn.py tests/cli/test_one_line.py \
		tests/cli/test_errors.py tests/fuzz/test_overrides.py

hydra-next:  ## sweeps and launchers with Hydra 1.4
	$(PYTHON) -m venv .venv-hydra
	.venv-hydra/bin/python -m pip install --quiet --constraint constraints.txt torch
	.venv-hydra/bin/python -m pip install --quiet --pre --editable '.[ray]' 'hydra-core>=1.4.0rc3' \
		'hydra-submitit-launcher>=1.4.0rc3' 'hydra-joblib-launcher>=1.4.0rc3' 'hydra-ray-launcher>=1.4.0rc3' \
		'hydra-optuna-sweeper>=1.4.0rc3' \
		pytest hypothesis
	.venv-hydra/bin/python -m pytest -m 'full or not full' tests/launchers tests/cluster tests/cli/test_sweeps.py tests/cli/test_searches.py tests/cli/test_errors.py \
		tests/cli/test_one_line.py tests/fuzz/test_overrides.py

torture: $(READY)  ## 300 kills of each kind at random moments: commands, runs, checkpoints, locks
	SIGMAPCA_TORTURE=300 $(BIN)/python -m pytest -s -m 'full or not full' tests/durability tests/training/test_resume.py

fuzz: $(READY)  ## 10,000 damaged files and odd command lines: every file reader must answer damaged input with a one-line error
	SIGMAPCA_FUZZ=10000 $(BIN)/python -m pytest -m 'full or not full' tests/fuzz

bench: $(READY)  ## timings against peers, into benchmarks/results.json
	$(BIN)/python benchmarks/run.py

pictures: $(READY)  ## the pictures in README.md and docs/
	rm -rf build/pictures
	$(BIN)/sigmapca train model=nlpca a=4 --run-dir build/pictures/nlpca
	$(BIN)/sigmapca train model=pca_svd --run-dir build/pictures/pca
	$(BIN)/python docs/pictures/side_by_side.py build/pictures/pca 'linear PCA' \
		build/pictures/nlpca 'nonlinear PCA (a = 4)' docs/pictures/side-by-side.png
	$(BIN)/python docs/pictures/identifiability.py
	$(BIN)/python docs/pictures/fields.py

docs: $(READY)  ## the documentation as a site that is searchable, build/site/index.html; without network
	$(BIN)/python docs/make/pages.py --check
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet
	@echo build/site/index.html

pages: $(READY)  ## the pages that are made from the catalogue and from the commands
	$(BIN)/python docs/make/pages.py

method-pictures: $(READY)  ## the filters of every method, from runs that are trained where they are missing: half an hour
	$(BIN)/sigmapca train -m "model=$$(ls conf/model | sed 's/.yaml//' | paste -sd,)" k=16 steps=4000 threads=1 \
		hydra.sweep.dir=build/method-runs
	$(BIN)/python docs/make/method_pictures.py build/method-runs
	$(BIN)/python docs/make/pages.py

clean:  ## remove the environment and caches; runs and data stay
	rm -rf $(VENV) .venv-lowest .venv-hydra build dist .mypy_cache .pytest_cache .ruff_cache

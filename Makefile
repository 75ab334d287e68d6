# One door. `make run` and `make test` set everything up by themselves.
PY := .venv/bin/python
BIN := .venv/bin
STAMP := .venv/.setup-stamp
SEEDS ?= 200
MINUTES ?= 5
SEED ?= 1
FRAMES ?= 1000000
TESTS ?= tests/compat tests/spark

.PHONY: help setup compile run tour check lint test sim bench storm siege clients lock clean

help:  ## this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

setup: $(STAMP)  ## .venv with penstock in it; needs Python >= 3.11 and a package registry

$(STAMP): requirements.lock pyproject.toml tools/setup
	@tools/setup
	@touch $(STAMP)

compile: setup  ## the broker's hot modules as machine code: needs a C compiler; once for each state of their sources
	@$(BIN)/penstock compile

run: setup  ## the fraud desk: purchases in by HTTP, decided by Spark, pushed to a page (ARGS="--port 8090 --listen 127.0.0.1:9192 --rate 50")
	@$(BIN)/penstock demo $(ARGS)

tour: setup  ## a minute with the queue alone: produce, consume, kill -9, recover
	@$(PY) tools/tour.py

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

check: lint  ## about a minute: lint, types, import contracts, unit, property, a short simulation
	$(BIN)/pytest -q -n 2 tests/unit tests/property tests/sim

test: lint  ## everything, as CI runs it
	tools/ci-tools
	$(BIN)/penstock compile
	PENSTOCK_TEST=full $(BIN)/pytest -n 2 --dist loadfile tests

sim: setup  ## the simulator over many seeds: make sim SEEDS=1000
	$(PY) -m proof.sim --seeds $(SEEDS)

storm: setup  ## real clients while everything goes wrong, judged: make storm MINUTES=5 SEED=1 (ARGS=--kafka)
	$(PY) -m proof.storm --minutes $(MINUTES) --seed $(SEED) $(ARGS)

siege: setup  ## mutated frames, count bombs, 5,000 slow callers beside a normal client: make siege FRAMES=1000000 SEED=1
	$(PY) -m proof.abuse.abuse_test --frames $(FRAMES) --seed $(SEED)

bench: compile  ## beside a warm Apache Kafka in the same run
	$(PY) -m bench

clients: setup  ## the table of docs/clients.md anew, from a run of the clients' tests (TESTS=... for a part)
	-$(BIN)/pytest -q -n 2 --dist loadfile $(TESTS)
	$(PY) tools/client_table.py

lock: setup
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	  --no-header --no-annotate --all-extras --group dev --upgrade pyproject.toml -o requirements.lock

clean:
	rm -rf .venv .penstock .bench .storm

# One door. `make run` and `make test` set everything up by themselves.
PY := .venv/bin/python
BIN := .venv/bin
STAMP := .venv/.setup-stamp
SEEDS ?= 200

.PHONY: setup run check test sim bench storm lock clean

setup: $(STAMP)

$(STAMP): requirements.lock pyproject.toml
	@tools/setup
	@touch $(STAMP)

clean:
	rm -rf .venv .penstock .bench

lock: setup
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	  --no-header --all-extras --group dev pyproject.toml -o requirements.lock

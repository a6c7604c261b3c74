# Two commands do everything: `make run` and `make test`. Both set up what they need.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN = .venv/bin
# Tests that need no framework run in one process per core, in the order of tests/conftest.py. Those of real frameworks use two
# processes by themselves; beside others, their threads wait for each other at the cost of computing time.
PARALLEL = $(BIN)/pytest --numprocesses logical --maxprocesses 8 --dist loadfile --no-loadscope-reorder

# Tests start more than a thousand processes of steelyard. Without compiled code, which this variable forbids to write, every one of
# them would compile all its modules again: half a second of computing.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: run test test-all record golden fast times check docs tables picture reading-pictures mutants bench clean

run: .venv/.ready
	@$(BIN)/steelyard run

# Tests of real frameworks rest on the record of what passed (tests/conformance/certified.toml), except those whose sources have changed
# and a sample that changes with the commit.
test: check
	@$(PARALLEL) -m "not conformance"
	@$(BIN)/pytest -m "conformance and not slow" --proved use

# Everything anew, also the tests marked `slow` (tests/README.md lists them); the record is written anew.
test-all: check
	@$(PARALLEL) -m "not conformance"
	@$(BIN)/pytest -m conformance --proved anew

# Run the tests of real frameworks that are not in the record, and add what passed to it.
record: .venv/.ready
	@$(BIN)/pytest -m "conformance and not slow" --proved add

# Write anew what is shown of the recorded runs, after a change of it that is meant; see tests/README.md.
golden: .venv/.ready
	@$(BIN)/python tests/golden write

# The tests that need no framework and do not start the whole program: about five minutes on two cores.
fast: .venv/.ready
	@$(PARALLEL) -m "not conformance and not end_to_end"

# Which tests compute longest, with all processes that they start? One test at a time, so that times are not mixed; ROOMS="tests/report"
# runs a part.
times: .venv/.ready
	@PYTHONPATH=tests $(BIN)/pytest -p cpu_times -m "not conformance" $(ROOMS)

check: .venv/.ready
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

# The documentation as a website in site/. Warnings are errors; nothing is fetched from the network.
docs: .venv/.docs
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

# The tables of the documentation that follow from the code. Tests compare them.
tables: .venv/.ready
	@$(BIN)/python -m steelyard.cli.command_page docs/reference/commands.md
	@$(BIN)/python -m steelyard.certificates.coverage docs/workloads.md
	@$(BIN)/python -m steelyard.redone.tables docs/published.md
	@$(BIN)/python -m steelyard.exports.tidy_columns docs/reference/tidy-table.md

# The example in the README, of a finished run: `make picture RUN=NAME`, or of the latest one. Needs Chromium or Chrome. Nothing is measured.
RUN ?= latest
picture: .venv/.ready
	@$(BIN)/python tools/picture.py $(RUN)

# The pictures of docs/reading-a-page.md, of two runs of the golden set. Needs Chromium or Chrome. Nothing is measured.
reading-pictures: .venv/.ready
	@$(BIN)/python tools/reading_pictures.py

# Which small changes of the code does no test notice? More than an hour for all rooms; see tests/mutation/README.md.
mutants: .venv/.mutants
	@$(BIN)/python tests/mutation/run.py $(ROOMS)

bench: .venv/.ready
	@$(BIN)/python -m benchmarks

.venv/.ready: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "steelyard needs Python 3.11 or newer; name one with: make PYTHON=/path/to/python3.11")'
	@$(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --editable ".[test]"
	@touch $@

.venv/.docs: .venv/.ready
	@$(BIN)/python -m pip install --quiet --editable ".[docs]"
	@touch $@

.venv/.mutants: .venv/.ready
	@$(BIN)/python -m pip install --quiet --editable ".[mutants]"
	@touch $@

clean:
	rm -rf .venv site mutants .pytest_cache .mypy_cache .ruff_cache .hypothesis

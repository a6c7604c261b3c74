"""The columns of the tidy table: their types and meanings, and the page docs/reference/tidy-table.md.

`python -m steelyard.exports.tidy_columns FILE` writes the page anew.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from steelyard.analysis import tidy
from steelyard.results.quantities import QUANTITIES

if TYPE_CHECKING:
    from steelyard.analysis.model import View
    from steelyard.analysis.tidy import Value

TEXT, WHOLE, NUMBER, YES_NO, JSON = "text", "whole number", "number", "true or false", "JSON"


class Column(NamedTuple):
    """A column: the type of its values, and what they mean."""

    kind: str
    meaning: str


COLUMNS = {
    "run": Column(TEXT, "name of the run"),
    "created": Column(TEXT, "when the run was started, ISO 8601"),
    "study": Column(TEXT, "name of the study"),
    "steelyard": Column(TEXT, "version of steelyard that measured"),
    "method": Column(WHOLE, "version of the method of measuring; times of different methods are not compared"),
    "machine": Column(TEXT, "fingerprint of the machine: equal where speed and noise can be compared"),
    "cpu": Column(TEXT, "model of the processor"),
    "group": Column(TEXT, "the cases that are compared with each other"),
    "contender": Column(TEXT, "name of the contender in its group"),
    "title": Column(TEXT, "name of the contender in tables"),
    "version": Column(TEXT, "version of the framework that was measured"),
    "maintained": Column(YES_NO, "whether the framework is still maintained"),
    "certificate": Column(TEXT, "certified, rejected or none"),
    "counts": Column(YES_NO, "whether the contender is in verdicts; leave out rows where it is false"),
    "round": Column(WHOLE, "number of the round, from 1; contenders of a round ran in turns, so ratios are by round"),
    "process": Column(TEXT, "name of the folder of the process; a process is the replicate of every statistic"),
    "case.workload": Column(TEXT, "name of the network"),
    "case.preset": Column(TEXT, "name of its sizes"),
    "case.sizes": Column(JSON, "all sizes, with the batch"),
    "case.specification": Column(TEXT, "hash of the description of the network and its sizes"),
    "case.data": Column(JSON, "the data set and how it is prepared; empty: synthetic batches"),
    "case.optimizer.name": Column(TEXT, "update rule; none for an inference"),
    "case.optimizer.learning_rate": Column(NUMBER, "learning rate of every step, or what the schedule multiplies"),
    "case.optimizer.momentum": Column(NUMBER, "momentum"),
    "case.optimizer.nesterov": Column(YES_NO, "whether the momentum is Nesterov's"),
    "case.optimizer.beta1": Column(NUMBER, "decay of the mean of gradients"),
    "case.optimizer.beta2": Column(NUMBER, "decay of the mean of squared gradients"),
    "case.optimizer.epsilon": Column(NUMBER, "constant in the denominator"),
    "case.optimizer.weight_decay": Column(NUMBER, "weight decay"),
    "case.optimizer.decay": Column(JSON, "names of the tensors under weight decay"),
    "case.optimizer.clip": Column(NUMBER, "largest L2 norm of all gradients together; 0: no clipping"),
    "case.optimizer.schedule": Column(JSON, "how the learning rate changes"),
    "case.optimizer.implementation": Column(TEXT, "native (of the framework) or reference (written out)"),
    "case.optimizer.form": Column(TEXT, "where epsilon and the rate stand in the formula"),
    "case.optimizer.correction": Column(TEXT, "precision of the bias correction"),
    "case.optimizer.groups": Column(JSON, "tensors whose learning rate or weight decay is multiplied"),
    "case.framework": Column(TEXT, "name of the framework"),
    "case.settings.mode": Column(TEXT, "execution mode"),
    "case.settings.device": Column(TEXT, "cpu, cuda or ascend"),
    "case.settings.threads": Column(WHOLE, "threads of each part; 0: the framework's own default"),
    "case.settings.precision": Column(TEXT, "float32 or float64"),
    "case.settings.deterministic": Column(YES_NO, "whether only deterministic algorithms were allowed"),
    "case.settings.knobs": Column(JSON, "further settings by name"),
    "case.version": Column(TEXT, "version that was asked for; empty: the locked one"),
    "case.task": Column(TEXT, "training or inference"),
    "case.strategy": Column(TEXT, "how the training was spread: single, or a name and a number of parts"),
    "case.seed": Column(WHOLE, "seed of weights, data order and round order"),
    "case.loader_workers": Column(WHOLE, "processes of the framework's own data loader"),
    "case.memory_limit": Column(WHOLE, "bytes of memory that each process may use; 0: no limit"),
    "case.weights": Column(TEXT, "digest of the file of initial weights; empty: drawn by the seed"),
    "case.inputs": Column(TEXT, "hash of initial weights, data, order of batches and synthetic batch"),
    "case.id": Column(TEXT, "hash of all fields of the case"),
    "input": Column(
        TEXT, "pipeline (the framework's own), cached (one synthetic batch), or process (one value of the process)"
    ),
    "quantity": Column(TEXT, "name of the quantity, such as step time or peak memory"),
    "unit": Column(TEXT, "unit of the value"),
    "value": Column(NUMBER, "a mean over the counted steps of the process, or one value of the process"),
}


def rows(view: View) -> list[dict[str, Value]]:
    """Return the rows of the tidy table."""
    return list(tidy.rows(view))


def names(found: list[dict[str, Value]]) -> list[str]:
    """Return the names of the columns, also of a table without rows."""
    return list(dict.fromkeys([*COLUMNS, *(name for row in found[:1] for name in row)]))


def markdown() -> str:
    """Return the page of all columns and quantities."""
    columns = [f"| `{name}` | {kind} | {meaning} |" for name, (kind, meaning) in COLUMNS.items()]
    quantities = [
        f"| {each.name} | {each.unit} | {'more' if each.more_is_better else 'less'} | {' and '.join(each.tasks)} |"
        for each in QUANTITIES.values()
    ]
    heads = ["| column | type | meaning |\n|---|---|---|", "| quantity | unit | better | task |\n|---|---|---|---|"]
    return "\n".join([INTRODUCTION, heads[0], *columns, MIDDLE, heads[1], *quantities, ""])


INTRODUCTION = """\
# The tidy table

`steelyard export RUN --format csv` and `--format parquet`, and `Run.tidy()` in [Python](../api.md): one row for each process,
input and quantity that has a value. Every row has all columns. [Five queries](../pandas-and-duckdb.md) show how to use it.

Parquet keeps the types. A CSV file has empty fields where there is no value, `true` and `false`, and JSON as text. A text
that a spreadsheet would run as a formula has an apostrophe in front of it. Hashes may look like numbers, so read the
columns of type *text* as texts.
"""
MIDDLE = """
## Quantities

Times are in nanoseconds, memory in bytes. Of the memory of a phase there are rows only where the system can begin a peak again.
"""


def main(arguments: list[str]) -> int:
    """Write the page to a file."""
    Path(arguments[0]).write_text(markdown(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Read the folder of a process that counted its step's graph: the stages of the graph, by the cost of their operations."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from steelyard.errors import UserError
from steelyard.profiles import classes
from steelyard.profiles.recorded import RULES
from steelyard.results import trials
from steelyard.results.events import GraphStage
from steelyard_worker import records
from steelyard_worker.job_kinds import GRAPH, KINDS

FOLDER = KINDS[GRAPH].folder
EXPENSIVE, CHEAP, NONE, UNKNOWN = COSTS = ("expensive", "cheap", "none", "not known")
HELP = {
    EXPENSIVE: "convolutions, matrix products, recurrent layers and attention",
    CHEAP: "other arithmetic: elementwise operations, sums, normalisation, pooling, gathering, updates",
    NONE: "no arithmetic: constants, variables, copies, shapes, control",
    UNKNOWN: "operations that a compiler has joined, or of no class",
}
_EXPENSIVE = {
    classes.FORWARD,
    classes.TO_DATA,
    classes.TO_WEIGHTS,
    classes.BACKWARD,
    "convolution",
    "matrix product",
    "recurrent",
    "attention",
}
_NONE = {"copies and layout", classes.DISPATCH, classes.INPUT}
_UNKNOWN = {"", "fused", classes.GAP, classes.UNATTRIBUTED}


@dataclass(frozen=True)
class Counted:
    """A graph at one stage. `costs`: how many of its operations are expensive, cheap, no work, or not known."""

    stage: GraphStage
    costs: Mapping[str, int]

    @property
    def total(self) -> int:
        """The number of operations."""
        return self.stage.total


def folder_of(run: Path, file_name: str) -> Path:
    """Return the folder of the process that counted a variant's graph."""
    return run / FOLDER / file_name


def read(run: Path, file_name: str) -> tuple[Counted, ...]:
    """Return the stages of a variant's graph; none where it was not counted. UserError: it failed, or files are damaged."""
    folder = folder_of(run, file_name)
    if not (folder / trials.JOB).exists():
        return ()
    trial = trials.read(folder)
    if trial.error:
        raise UserError(trial.error[1])
    try:
        table = classes.table(records.parse(records.read_text(folder / RULES))["operations"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{folder / RULES} is damaged ({error}). Delete {folder} and resume the run.") from None
    return tuple(Counted(stage, costs(stage.kinds, table)) for stage in trial.graphs) if trial.done else ()


def costs(kinds: Mapping[str, int], table: classes.Table) -> dict[str, int]:
    """Return how many operations of these kinds are expensive, cheap, no work, or not known."""
    found = Counter(dict.fromkeys(COSTS, 0))
    for kind, count in kinds.items():
        found[_cost(table.class_of(kind))] += count
    return dict(found)


def _cost(name: str) -> str:
    if name in _UNKNOWN:
        return UNKNOWN
    return EXPENSIVE if name in _EXPENSIVE else NONE if name in _NONE else CHEAP

"""The events of a process that a trial needs, with their types. Events are checked, because anyone may have written them."""

from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from functools import cache
from typing import Annotated, Any, NamedTuple, TypedDict, get_args, get_origin, get_type_hints

from steelyard_worker import protocol, records
from steelyard_worker.records import Count, Positive


@dataclass(frozen=True)
class Block:
    """Consecutive steps between two synchronisations.

    `first_step` is the index of its first value in samples.i64 and losses.f32; times are in nanoseconds. `cpu_ns` is the CPU time
    of all threads of the process, 0 where it was not recorded. `epoch` counts from 1; it is 0 where the process does not train
    whole epochs. `energy_uj`: microjoules that each meter of the machine counted, empty without any, None where meters were not
    looked for. `gpu_percent`: use of the GPU; None where it is not known. `sent_bytes` and `received_bytes`: by the connections
    of a rank; None of a single process, and where that was not seen. `t_ns`: when the block was written down.
    """

    input: str
    phase: str
    steps: Positive
    start_ns: Count
    elapsed_ns: Positive
    first_step: Count
    cpu_ns: Count = 0
    epoch: Count = 0
    energy_uj: dict[str, Count] | None = None
    gpu_percent: Count | None = None
    sent_bytes: Count | None = None
    received_bytes: Count | None = None
    t_ns: Count = 0


@dataclass(frozen=True)
class Hello:
    """A process has started; `method` is the version of the method of measuring, `pid` its id on its machine, 0 if unknown."""

    method: int
    pid: Count = 0


@dataclass(frozen=True)
class Applied:
    """The settings as read back from the framework, and the libraries that it uses."""

    applied: dict[str, Any]
    libraries: dict[str, Any]


@dataclass(frozen=True)
class Phase:
    """A phase such as `import` has ended; `since_spawn_ns`: since the start of the process."""

    name: str
    elapsed_ns: Count
    since_spawn_ns: Count | None = None


@dataclass(frozen=True)
class Evaluated:
    """Predictions on the test split were saved after `steps` training steps; `epoch` 0: not after an epoch."""

    steps: Count
    samples: Count
    elapsed_ns: Count
    epoch: Count = 0


@dataclass(frozen=True)
class Shapes:
    """The number of shapes of an epoch's batches, of those that are new in this epoch, and of the compilations in it.

    Frameworks count compilations in units of their own.
    """

    epoch: Positive
    shapes: Positive
    new_shapes: Count
    compilations: Count


@dataclass(frozen=True)
class Outputs:
    """Fingerprints of the outputs of one batch of an inference, by output."""

    batch: Positive
    fingerprints: dict[str, float]


@dataclass(frozen=True)
class Imported:
    """Path -> SHA-256 of what was imported from outside of the environment, the worker and the workload's folder."""

    files: dict[str, str]


@dataclass(frozen=True)
class EndCheck:
    """The results of the timed trainer or predictor at the end, when it repeats the certified steps or the first outputs.

    `losses`: of the certified steps, from the first. `changes`: of some elements of each tensor in two steps. `unequal`: the
    first tensor with different values on the ranks; empty: none. `outputs`: fingerprints by batch and output. `not_checked`:
    why nothing was computed; empty if it was.
    """

    losses: tuple[float, ...] = ()
    changes: dict[str, tuple[float, ...]] = field(default_factory=dict)
    unequal: str = ""
    outputs: dict[str, float] = field(default_factory=dict)
    not_checked: str = ""
    elapsed_ns: Count = 0


@dataclass(frozen=True)
class BatchCheck:
    """The next batches of an input pipeline, after the first `fetched`, compared with the order of the run.

    `differs`: the first that differs, counted from 1; 0: none. `not_checked`: why none was compared; empty if some were.
    """

    input: str
    fetched: Count
    compared: Count = 0
    differs: Count = 0
    not_checked: str = ""


@dataclass(frozen=True)
class PhaseMemory:
    """The peak memory of one phase of a process, bytes; None where it is not known."""

    name: str
    resident_bytes: Count | None
    device_bytes: Count | None


@dataclass(frozen=True)
class Memory:
    """The peak memory of the process and of its phases, bytes."""

    peak_resident_bytes: Count | None
    peak_device_bytes: Count | None
    phases: tuple[PhaseMemory, ...] = ()


@dataclass(frozen=True)
class Exchanged:
    """A network that another framework exported.

    `bytes`: of the file; `producer`: what wrote it; `operators`: how often it has each. `difference`: the largest between an
    output and that of the exporting framework for `samples` fixed inputs; `largest`: the largest output. Both are absolute.
    """

    bytes: Count
    producer: str
    opset: Count
    nodes: Count
    operators: dict[str, int]
    samples: Positive
    difference: float
    largest: float


class Warned(TypedDict):
    """A warning: its name, and values about it in the other fields."""

    name: str


@dataclass(frozen=True)
class Error:
    """The process did not finish."""

    kind: str
    message: str


@dataclass(frozen=True)
class Profiled:
    """The profiled block of a process; `files`: the traces, relative to its folder."""

    steps: Positive
    events: Count
    files: tuple[str, ...]


@dataclass(frozen=True)
class GraphStage:
    """The graph of a step at one stage (`steelyard_worker.graphs.Stage`). `kinds`: kind of operation -> how often it occurs."""

    stage: str
    unit: str
    kinds: dict[str, Count]
    passes: str = ""

    @property
    def total(self) -> int:
        """The number of operations of all kinds."""
        return sum(self.kinds.values())


@dataclass(frozen=True)
class Reduced:
    """Consecutive all-reduces of a buffer of `bytes` over all ranks, by the interface `collective` of the framework.

    `sent_bytes`: by this rank in all of them; None where that was not seen.
    """

    collective: str
    phase: str
    bytes: Positive
    processes: Positive
    calls: Positive
    elapsed_ns: Positive
    sent_bytes: Count | None = None


@dataclass(frozen=True)
class Staleness:
    """How often a gradient of this rank had missed 0, 1, 2, ... updates of others; empty where it sent no gradients itself."""

    steps: Positive
    missed: tuple[Count, ...]


@dataclass(frozen=True)
class Done:
    """The process has finished."""


@dataclass(frozen=True)
class Watched:
    """The launcher's observations of a process that has ended, on the clock of the process's own times, nanoseconds.

    `behind_ns`: how far the times of its last events lie before a moment when the launcher looked and these events were not there
    yet; 0 where they do not. `cpu_ns`: CPU time of the process as the kernel counts it; None where it is not known. `cores`: how
    many the process may use.
    """

    spawned_ns: Count
    ended_ns: Count
    behind_ns: Count
    cores: Positive
    cpu_ns: Count | None = None


@dataclass(frozen=True)
class Withheld:
    """For how long, at most, others kept a process from computing in each of its counted blocks, in their order, nanoseconds."""

    blocks_ns: tuple[Count, ...]


# Event -> its type. A trial needs no other events.
EVENTS: dict[str, Any] = {
    "hello": Hello,
    "applied": Applied,
    "phase": Phase,
    "samples": Block,
    "epoch": Shapes,
    "evaluated": Evaluated,
    "outputs": Outputs,
    "end-check": EndCheck,
    "batches": BatchCheck,
    "imported": Imported,
    "exchanged": Exchanged,
    "memory": Memory,
    "profiled": Profiled,
    "graph": GraphStage,
    "all-reduce": Reduced,
    "staleness": Staleness,
    "warning": Warned,
    "error": Error,
    "done": Done,
    protocol.WATCHED: Watched,
    protocol.WITHHELD: Withheld,
}


def checked(event: dict[str, Any], line: int) -> Any:
    """Return an event with its type in `EVENTS`; None for an event that no trial needs."""
    name = event["event"]
    kind: Any = EVENTS.get(name)
    if kind is None:
        return None
    if _is_flat(kind) and _fits(kind, event):
        return kind(**{one: event[one] for one in _limits(kind) if one in event})
    try:
        return records.convert(kind, event, name)
    except ValueError as error:
        message = f"{protocol.EVENTS}, line {line}: {error}"
        raise ValueError(message) from None


def _is_flat(kind: Any) -> bool:
    return is_dataclass(kind)


class Limits(NamedTuple):
    """The values of a field: their type, the least whole number, whether there may be none, and whether there must be one."""

    kind: Any
    least: int
    optional: bool
    required: bool


def _fits(kind: Any, event: dict[str, Any]) -> bool:
    """Return whether every value of an event is plain and as it must be.

    What fits is what `records.convert` returns unchanged, in a tenth of the time; a process has a hundred events. The rest is
    left to that function, which names what is wrong.
    """
    for name, limits in _limits(kind).items():
        if name not in event:
            if limits.required:
                return False
        elif not _is_plain(event[name], limits):
            return False
    return True


def _is_plain(value: Any, limits: Limits) -> bool:
    if value is None:
        return limits.optional
    if type(value) is not limits.kind:
        return False
    return limits.least <= value <= records.LARGEST if limits.kind is int else limits.kind is str or not value


@cache
def _limits(kind: Any) -> dict[str, Limits]:
    """Return the limits of each field of an event. Of lists and tables only the empty table is plain."""
    found = {}
    hints = get_type_hints(kind, include_extras=True)
    for one in fields(kind):
        parts = get_args(hints[one.name])
        optional = type(None) in parts
        hint = next(each for each in parts if each is not type(None)) if optional else hints[one.name]
        bounded = get_origin(hint) is Annotated
        least = hint.__metadata__[0] if bounded else -records.LARGEST
        required = one.default is MISSING and one.default_factory is MISSING
        found[one.name] = Limits(int if bounded else get_origin(hint) or hint, least, optional, required)
    return found

"""The cells of a study: axes whose combinations are measured. The options of the command line replace axes."""

from __future__ import annotations

import itertools
import math
import re
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

from steelyard.errors import UserError, nearest
from steelyard.files import ranges

if TYPE_CHECKING:
    from collections.abc import Iterator

    from steelyard.plan.options import Options

UNITS = {"MB": 10**6, "GB": 10**9, "MiB": 2**20, "GiB": 2**30}
THREADS = ranges.THREADS._replace(least=0, why="0: each framework's own default")


@dataclass(frozen=True)
class Cells:
    """One table [[cells]] of a study. An axis that is empty has one value: that of the preset or of the framework.

    Workloads, `set`, batches, optimizers, tasks, precisions, threads, seeds, memory limits and train limits (training samples
    that are used) tell groups apart; what runs in a group are its frameworks in their modes, with their knobs, loader workers and
    strategies. `sizes`: the sizes of the study that have this table; empty: all. `stands_for`: the published workload:preset that
    these cells stand for at another size.
    `graphs`: count the operations of their training steps' graphs, in processes of their own. `thresholds`: scores of the test
    metric of which the page says when trainings of these cells reached them; empty: those of the study.
    """

    workloads: tuple[str, ...]
    frameworks: tuple[str, ...] = ("*",)
    modes: tuple[str, ...] = ()
    knobs: tuple[str, ...] = ()
    loader_workers: tuple[int, ...] = field(default=(), metadata={"range": ranges.WORKERS})
    strategies: tuple[str, ...] = ()
    set: tuple[str, ...] = ()
    batches: tuple[int, ...] = field(default=(), metadata={"range": ranges.BATCHES})
    optimizers: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    precisions: tuple[str, ...] = ()
    threads: tuple[int, ...] = field(default=(), metadata={"range": THREADS})
    seeds: tuple[int, ...] = field(default=(), metadata={"range": ranges.SEEDS})
    memory_limits: tuple[str, ...] = ()
    train_limits: tuple[int, ...] = field(default=(), metadata={"range": ranges.SAMPLES})
    synthetic: bool = False
    device: str = ""
    deterministic: bool = False
    optimizer_implementation: str = ""
    protocol: str = "sequential"
    rounds: str = ""
    train_steps: int = field(default=0, metadata={"range": ranges.STEPS._replace(least=0)})
    evaluation_limit: int = field(default=0, metadata={"range": ranges.Range(0)})
    sizes: tuple[str, ...] = ()
    stands_for: str = ""
    graphs: bool = False
    thresholds: tuple[float, ...] = ()

    def with_options(self, options: Options) -> Cells:
        """Return the cells with every axis that the command line names replaced."""
        given = {each.name: getattr(options, each.name, None) for each in fields(self)}
        return replace(self, **{name: value for name, value in given.items() if value})


def memory_bytes(text: str) -> int:
    """Return the bytes of a memory limit such as `4 GB` or `512 MiB`; 0 for an empty text. UserError: it is no size."""
    if not text:
        return 0
    match = re.fullmatch(r"(\d{1,6}(?:\.\d{1,6})?) ?([MG]i?B)", text)
    found = round(float(match[1]) * UNITS[match[2]]) if match else 0
    if not found:
        raise UserError(f"A memory limit must be a size such as 4 GB or 512 MiB, not '{text}'.")
    return found


def overrides(texts: tuple[str, ...], known: dict[str, Any], preset: str) -> Iterator[dict[str, Any]]:
    """Yield every combination of the sizes in texts such as `width=64,128` and `frames=64,hidden=128`.

    UserError: the preset has no such size, or a value is not of its type.
    """
    values: dict[str, list[Any]] = {}
    for text in texts:
        name = ""
        for part in text.split(","):
            before, equals, after = part.rpartition("=")
            name = before.strip() if equals else name
            if not name or not after.strip():
                raise UserError(f"--set {text}: write SIZE=VALUE, such as --set {next(iter(known))}=8.")
            if name not in known:
                raise UserError(f"{preset} has no size '{name}'.{nearest(name, list(known))}")
            values.setdefault(name, []).append(_like(known[name], name, after.strip(), preset))
    for combination in itertools.product(*values.values()):
        yield dict(zip(values, combination, strict=True))


def _like(present: Any, name: str, text: str, preset: str) -> Any:
    """Return a value with the type of the preset's own."""
    if isinstance(present, bool):
        if text in ("true", "false"):
            return text == "true"
        wanted = "true or false"
    elif isinstance(present, str):
        return text
    elif isinstance(present, (int, float)):
        wanted = "a whole number from 1" if isinstance(present, int) else "a finite number above 0"
        try:
            value = type(present)(text)
        except ValueError:
            value = 0
        if 0 < value < math.inf:
            return value
    else:
        raise UserError(f"The size '{name}' of {preset} is {present!r} and cannot be set on the command line.")
    raise UserError(f"The size '{name}' of {preset} must be {wanted}, not '{text}'.")

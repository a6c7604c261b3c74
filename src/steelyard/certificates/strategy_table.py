"""The table of strategies: what each one does, where it is certified on this machine, and which kinds a framework lacks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from steelyard.catalog import frameworks
from steelyard.catalog.strategies import PROOFS
from steelyard.certificates import record
from steelyard.certificates.sources import implementation_of
from steelyard_worker.strategy import name_of, parts_of

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from steelyard.catalog.frameworks import Framework
    from steelyard.catalog.workloads import Workload


@dataclass(frozen=True)
class Row:
    """One strategy that a framework has.

    `modes` and `workloads`: those in which it cannot run, and why. `other`: what it computes instead of the training of one
    process, whatever the network; empty: the same. `certified`: workload:preset -> the numbers of parts with which it is
    certified on this machine with the current files.
    """

    framework: str
    title: str
    strategy: str
    kind: str
    help: str
    modes: dict[str, str]
    workloads: dict[str, str]
    other: str
    certified: dict[str, tuple[int, ...]]


@dataclass(frozen=True)
class Missing:
    """A kind of strategy that a framework lacks: why, the script that shows it, and the framework's page that says so."""

    framework: str
    title: str
    kind: str
    reason: str
    script: Path
    source: str


def rows(workloads: Iterable[Workload]) -> list[Row]:
    """Return a row for every strategy of every framework, by framework; `workloads`: those whose certificates count."""
    certified = _certified({each.name: each for each in workloads})
    return [
        Row(
            known.name,
            known.title,
            name,
            spread.kind,
            spread.help,
            spread.unsupported,
            spread.workloads,
            spread.does.otherwise,
            certified.get((known.name, name), {}),
        )
        for known in frameworks.contenders().values()
        for name, spread in known.strategies.items()
    ]


def missing() -> list[Missing]:
    """Return the kinds of strategies that each framework lacks, by framework."""
    return [
        Missing(known.name, known.title, kind, each.reason, _script(known, each.script), each.source)
        for known in frameworks.contenders().values()
        for kind, each in known.without.items()
    ]


def _script(known: Framework, name: str) -> Path:
    return known.folder / PROOFS / name


def _certified(workloads: dict[str, Workload]) -> dict[tuple[str, str], dict[str, tuple[int, ...]]]:
    """Return (framework, strategy) -> workload:preset -> parts, of the certificates that were made with the current files."""
    found: dict[tuple[str, str], dict[str, set[int]]] = {}
    hashes: dict[tuple[str, str], str] = {}
    for each in record.load_all():
        workload = workloads.get(each.workload)
        if not each.passed or not workload or ":" not in each.strategy:
            continue
        pair = each.framework, each.workload
        if pair not in hashes:
            hashes[pair] = implementation_of(each.framework, workload.folder, workload.name)
        if hashes[pair] == each.implementation:
            cells = found.setdefault((each.framework, name_of(each.strategy)), {})
            cells.setdefault(f"{each.workload}:{each.preset}", set()).add(parts_of(each.strategy))
    return {key: {cell: tuple(sorted(parts)) for cell, parts in sorted(cells.items())} for key, cells in found.items()}

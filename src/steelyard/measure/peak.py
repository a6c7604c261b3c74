"""The physical guard: nothing computes faster than this machine's measured matrix product, so a speed above it is an error."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.host import gemm
from steelyard.results import record

if TYPE_CHECKING:
    from steelyard.measure.rounds import Book
    from steelyard.measure.session import Session
    from steelyard.plan.cells import Cell


def check(session: Session, book: Book) -> dict[str, str]:
    """Hold every cell's achieved FLOP/s against the peak, which is measured again before anything is accused.

    Returns {cell key: sentence} of what is impossible; it is written into run.json together with the peak.
    """
    known = record.read(session.folder)
    found: dict[str, str] = {}
    for cell in session.plan.cells:
        if cell.settings.device != "cpu":
            continue
        gflops = _fastest_gflops(session, cell, book)
        sentence = (
            gemm.peak_check(known.machine, threads_of(session, cell), cell.settings.precision, gflops) if gflops else ""
        )
        if sentence:
            found[cell.key] = sentence[:1].upper() + sentence[1:] + "."
    peak = {
        cell.settings.precision: gemm.peaks(known.machine, threads_of(session, cell), cell.settings.precision)
        for cell in session.plan.cells
        if cell.settings.device == "cpu"
    }
    record.update(session.folder, peak=peak, impossible=found)
    return found


def threads_of(session: Session, cell: Cell) -> int:
    """Return the threads a cell may use: as set, or every core that processes of this machine may use."""
    return cell.settings.threads or int(record.read(session.folder).host["cores_usable"])


def _fastest_gflops(session: Session, cell: Cell, book: Book) -> float:
    workload, preset = session.plan.preset(cell.group)
    flops = workload.network(preset).training_flops * int(preset.sizes["batch"])
    trials = book.kept.get(cell.key, {}).values()
    located = [ns for trial in trials for source in ("pipeline", "cached") if (ns := trial.location_ns(source))]
    return flops / min(located) if located else 0.0

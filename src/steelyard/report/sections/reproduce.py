"""The command that started a run, and what identifies it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.report.blocks import Code, Command, Facts
from steelyard.results import addresses

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.report.blocks import Block, Part
    from steelyard.report.sections.run_subject import RunSubject


def blocks(subject: RunSubject) -> Sequence[Block]:
    """Return the section. The passwords of addresses are not shown."""
    view, known = subject.view, subject.view.record
    names = {
        "measuring code": known.worker_hash,
        "machine": known.machine,
        "run": view.name,
        "folder": str(view.folder),
    }
    pairs: list[tuple[str, str | tuple[Part, ...]]] = [
        ("steelyard", known.steelyard),
        ("method", str(known.method)),
        *((name, (Code(value),)) for name, value in names.items()),
    ]
    return [Command(addresses.command(known.command)), Facts(pairs)]

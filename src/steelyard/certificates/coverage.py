"""Workloads x frameworks: which cell is implemented, which cannot be, and which is certified on this machine."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from steelyard.catalog import frameworks, workloads
from steelyard.certificates import record
from steelyard.certificates.sources import implementation_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from steelyard.catalog.frameworks import Framework
    from steelyard.catalog.workloads import Workload

BEGIN, END = "<!-- cells: begin -->", "<!-- cells: end -->"


@dataclass(frozen=True)
class Standing:
    """One workload in one framework. `certified`: presets proved on this machine with the files as they are now.

    `reason`: why there is no implementation; empty where there is one.
    """

    presets: tuple[str, ...]
    certified: tuple[str, ...]
    reason: str = ""

    @property
    def said(self) -> str:
        """Say it in the width of a table's cell: how many presets are certified."""
        if self.reason:
            return "cannot"
        return f"{'✓' if self.certified else '-'} {len(self.certified)} of {len(self.presets)}"


def take(found: Iterable[Workload]) -> dict[str, dict[str, Standing]]:
    """Return {workload: {framework: standing}}."""
    proved = {
        (each.workload, each.framework, each.preset, each.implementation) for each in record.kept() if each.passed
    }
    return {
        workload.name: {name: _standing(workload, known, proved) for name, known in frameworks.contenders().items()}
        for workload in found
    }


def _standing(workload: Workload, known: Framework, proved: set[tuple[str, str, str, str]]) -> Standing:
    presets = tuple(workload.presets)
    reason = workload.unsupported.get(known.name, "")
    if not reason and not workload.implemented_by(known.name):
        reason = f"There is no {known.name}.py in its folder."
    if reason:
        return Standing(presets, (), reason)
    files = implementation_of(known.name, workload.folder, workload.name)
    done = [preset for preset in presets if (workload.name, known.name, preset, files) in proved]
    return Standing(presets, tuple(done))


def markdown() -> str:
    """Return the table of the workloads that come with steelyard: a tick where a certificate is made by the tests."""
    titles = [known.title for known in frameworks.contenders().values()]
    lines = ["| workload | presets | " + " | ".join(titles) + " |", "|---" * (len(titles) + 2) + "|"]
    notes = []
    for workload in workloads.find().values():
        cells = []
        for name, known in frameworks.contenders().items():
            able = workload.implemented_by(name) and name not in workload.unsupported
            cells.append("certified" if able else "no")
            if not able:
                why = workload.unsupported.get(name, "not implemented")
                notes.append(f"{known.title} and `{workload.name}`: {why}")
        presets = ", ".join(f"`{preset}`" for preset in workload.presets if not preset.startswith("tiny-"))
        lines.append(f"| `{workload.name}` | {presets} | " + " | ".join(cells) + " |")
    return "\n".join([*lines, *(f"\n{note}" for note in notes)])


def renew(path: Path) -> bool:
    """Put the table between its marks in a document; returns whether anything changed."""
    text = path.read_text(encoding="utf-8")
    marked = re.compile(f"{re.escape(BEGIN)}.*?{re.escape(END)}", re.DOTALL)
    renewed = marked.sub(lambda _: f"{BEGIN}\n{markdown()}\n{END}", text)
    path.write_text(renewed, encoding="utf-8")
    return renewed != text


if __name__ == "__main__":
    for name in sys.argv[1:]:
        renew(Path(name))

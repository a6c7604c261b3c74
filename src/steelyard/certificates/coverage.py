"""The table of workloads and frameworks: which are implemented, which are certified on this machine, and why others are not."""

import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from steelyard.catalog import frameworks, workloads
from steelyard.catalog.frameworks import Framework
from steelyard.catalog.workloads import Workload
from steelyard.certificates import record
from steelyard.certificates.sources import implementation_of
from steelyard_worker.strategy import SINGLE

BEGIN, END = "<!-- cells: begin -->", "<!-- cells: end -->"


@dataclass(frozen=True)
class Coverage:
    """One workload in one framework. `certified`: presets certified on this machine with the current files.

    `reason`: why there is no implementation; empty where there is one.
    """

    presets: tuple[str, ...]
    certified: tuple[str, ...]
    reason: str = ""

    @property
    def label(self) -> str:
        """The number of certified presets, short enough for a table."""
        if self.reason:
            return "no"
        return f"{'✓' if self.certified else '-'} {len(self.certified)} of {len(self.presets)}"


def coverage_of(found: Iterable[Workload]) -> dict[str, dict[str, Coverage]]:
    """Return {workload: {framework: coverage}}."""
    passed = {
        (each.workload, each.framework, each.preset, each.implementation)
        for each in record.load_all()
        if each.passed and each.strategy == SINGLE
    }
    return {
        workload.name: {name: _coverage(workload, known, passed) for name, known in frameworks.contenders().items()}
        for workload in found
    }


def _coverage(workload: Workload, known: Framework, passed: set[tuple[str, str, str, str]]) -> Coverage:
    presets = tuple(workload.presets)
    reason = workload.unsupported.get(known.name, "")
    if not reason and not workload.implemented_by(known.name):
        reason = f"The workload's folder has no {known.name}.py."
    if reason:
        return Coverage(presets, (), reason)
    files = implementation_of(known.name, workload.folder, workload.name)
    certified = [preset for preset in presets if (workload.name, known.name, preset, files) in passed]
    return Coverage(presets, tuple(certified))


def markdown() -> str:
    """Return the table of the built-in workloads: "certified" where the tests make a certificate."""
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


def update(path: Path) -> bool:
    """Replace the table between its marks in a document; returns whether anything changed."""
    text = path.read_text(encoding="utf-8")
    marked = re.compile(f"{re.escape(BEGIN)}.*?{re.escape(END)}", re.DOTALL)
    updated = marked.sub(lambda _: f"{BEGIN}\n{markdown()}\n{END}", text)
    path.write_text(updated, encoding="utf-8")
    return updated != text


if __name__ == "__main__":
    for name in sys.argv[1:]:
        update(Path(name))

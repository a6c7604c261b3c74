"""Our implementations against each framework's own reference implementations, side by side in one process each.

`python -m benchmarks.references` writes what it measured into benchmarks/README.md.
"""

from __future__ import annotations

import hashlib
import math
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.implementations import HERE, BenchmarkError, planned_for, row, run_inside
from benchmarks.rows import Row
from steelyard import environments
from steelyard.catalog import frameworks
from steelyard.environments.uv import Uv, open_log
from steelyard.files import paths

if TYPE_CHECKING:
    from steelyard.plan.resolve import RunPlan

# The published sizes; where a step of the published batch takes minutes on a small machine, a smaller batch or shorter samples.
CASES: dict[str, dict[str, int]] = {
    "resnet18:cifar10": {},
    "lstm-imdb:keras": {},
    "resnet50:imagenet": {"batch": 4},
    "vgg16:imagenet": {"batch": 2},
    "googlenet:cifar10": {"batch": 8},
    "inceptionv3:imagenet": {"batch": 4},
    "bert:wikitext": {"batch": 4},
    "gnmt:wmt16": {"batch": 8, "source": 25, "target": 26},
    "deepspeech2:librispeech": {"batch": 2, "frames": 400, "transcript": 40},
    "tacotron2:ljspeech": {"batch": 4, "frames": 60, "characters": 40},
}
PAIRS, BLOCK_S = 8, 1.0
EACH, MEAN = 0.98, 1.0  # limits of our speed over the reference's
BEGIN, END = "<!-- references: begin -->", "<!-- references: end -->"


@dataclass(frozen=True)
class Comparison:
    """One cell of the table."""

    group: str
    framework: str
    found: dict[str, Any]
    row: Row


def measure(names: list[str] | None = None) -> list[Row]:
    """Return the rows of every framework whose environment can be made, and their geometric mean."""
    compared = compare(names or list(frameworks.contenders()), list(CASES))
    return [each.row for each in compared] + [_mean(compared)]


def compare(names: list[str], groups: list[str]) -> list[Comparison]:
    """Measure each workload in each framework; what fails is said and left out."""
    made = environments.ensure_all(environments.plan_environments(names, "cpu"))
    found = []
    for name, environment in made.items():
        if isinstance(environment, environments.Failure):
            print(environment.sentence, file=sys.stderr)
            continue
        packages = install(name, environment.python)
        for group in groups:
            try:
                found.append(_compare(name, environment.python, group, packages))
                print(
                    f"{found[-1].row.value:.3f}  {name}, {group}: {found[-1].row.detail}", file=sys.stderr, flush=True
                )
            except BenchmarkError as error:
                print(error, file=sys.stderr, flush=True)
    return found


def install(name: str, python: Path) -> Path:
    """Return a folder that holds the packages of a framework's references, without what those depend on; made once."""
    wanted = HERE / "frameworks" / name / "requirements.txt"
    said = wanted.read_bytes() if wanted.is_file() else b""
    folder = paths.cache_folder() / "references" / f"{name}-{hashlib.sha256(said).hexdigest()[:12]}"
    if said and not folder.is_dir():
        uv = Uv(open_log(f"references-{name}"))
        partial = folder.with_name(f".{folder.name}.partial")
        command = [
            uv.program,
            "pip",
            "install",
            "--quiet",
            "--no-deps",
            "--python",
            python,
            "--target",
            partial,
            "-r",
            wanted,
        ]
        subprocess.run(command, env=uv.environ(), check=True)
        partial.rename(folder)
    return folder


def _compare(name: str, python: Path, group: str, packages: Path) -> Comparison:
    found = run_inside(_resized(name, group), python, "reference", PAIRS, BLOCK_S, packages)
    if found["count"] != found["our_count"] + found["more"]:
        counts = f"trains {found['count']:,} scalars, ours {found['our_count']:,}"
        raise BenchmarkError(f"{name}'s reference of {group} {counts}: not the {found['more']:,} more that it says.")
    inverted = {**found, "ratios": [1 / ratio for ratio in found["ratios"]]}
    made = row(f"our speed / {found['source']}, {name}, {group}", inverted, EACH, "at least")
    return Comparison(group, name, found, made)


def _resized(name: str, group: str) -> RunPlan:
    planned = planned_for(name, group)
    workload, preset = planned.preset(group)
    resized = replace(preset, sizes=preset.sizes | CASES[group])
    changed = replace(workload, presets={**workload.presets, preset.name: resized})
    return replace(planned, workloads={**planned.workloads, workload.name: changed})


def _mean(compared: list[Comparison]) -> Row:
    logs = [math.log(each.row.value) for each in compared]
    value = math.exp(sum(logs) / len(logs)) if logs else math.nan
    return Row("our speed / references, geometric mean", value, MEAN, "at least", f"of {len(logs)} comparisons")


def table(compared: list[Comparison]) -> str:
    """Return the comparisons as Markdown, by workload."""
    heads = (
        "workload, changed sizes",
        "framework",
        "our speed / its",
        "our step",
        "reference",
        "what it computes otherwise",
    )
    lines = [_line(heads), "|---|---|---:|---:|---|---|"]
    for group, sizes in CASES.items():
        said = f"`{group}`" + "".join(f", {name} {value}" for name, value in sizes.items())
        for each in (each for each in compared if each.group == group):
            found = each.found
            ratio, step = f"{each.row.value:.3f}", f"{found['step_ms']:,.0f} ms"
            lines.append(_line((said, each.framework, ratio, step, found["source"], found["differs"])))
    mean = _mean(compared)
    return "\n".join([*lines, "", f"Geometric mean: {mean.value:.3f}, {mean.detail}."])


def _line(cells: tuple[str, ...]) -> str:
    return f"| {' | '.join(cells)} |"


def main(words: list[str]) -> int:
    """Measure what is named (frameworks, or all) and write the table into the README beside this file."""
    compared = compare(words or list(frameworks.contenders()), list(CASES))
    path = HERE / "README.md"
    before, rest = path.read_text(encoding="utf-8").split(BEGIN)
    path.write_text(before + BEGIN + "\n" + table(compared) + "\n" + END + rest.split(END)[1], encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

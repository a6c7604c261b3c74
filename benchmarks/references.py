"""The speed of our implementations relative to reference implementations of each framework, each pair in one process.

`python -m benchmarks.references` also writes the results into benchmarks/README.md.
"""

from __future__ import annotations

import hashlib
import math
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.implementations import HERE, BenchmarkError, plan_for, row, run_inside
from benchmarks.rows import Row
from steelyard import environments
from steelyard.catalog import frameworks, workloads
from steelyard.environments.uv import Uv, find_uv, open_log
from steelyard.files import paths

if TYPE_CHECKING:
    from steelyard.plan.run_plan import RunPlan

# Published sizes, with a smaller batch or shorter samples if a step would take minutes on a small machine.
SIZES: dict[str, dict[str, int]] = {
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
EACH, MEAN = 0.98, 1.0  # lowest ratios of our speed to the reference's
BEGIN, END = "<!-- references: begin -->", "<!-- references: end -->"


@dataclass(frozen=True)
class Comparison:
    """One row of the table."""

    group: str
    framework: str
    found: dict[str, Any]
    row: Row


def measure(names: list[str] | None = None) -> list[Row]:
    """Return the rows of every framework whose environment can be created, and their geometric mean."""
    compared = compare(names or list(frameworks.contenders()), list(SIZES))
    return [each.row for each in compared] + [_mean(compared)]


def compare(names: list[str], groups: list[str]) -> list[Comparison]:
    """Measure each workload in each framework; failures are printed and left out."""
    wanted = map(environments.EnvironmentName.parse, names)
    created = environments.ensure_all(environments.plan_environments(wanted, "cpu"))
    found = []
    for name, environment in created.items():
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
    """Return a folder with the packages of a framework's references, without dependencies; it is created once."""
    requirements = HERE / "frameworks" / name / "requirements.txt"
    content = requirements.read_bytes() if requirements.is_file() else b""
    folder = paths.cache_folder() / "references" / f"{name}-{hashlib.sha256(content).hexdigest()[:12]}"
    if content and not folder.is_dir():
        uv = Uv(open_log(f"references-{name}"))
        partial = folder.with_name(f".{folder.name}.partial")
        command = [
            str(find_uv()),
            "pip",
            "install",
            "--quiet",
            "--no-deps",
            "--python",
            str(python),
            "--target",
            str(partial),
            "-r",
            str(requirements),
        ]
        subprocess.run(command, env=uv.environ(), check=True)
        partial.rename(folder)
    return folder


def _compare(name: str, python: Path, group: str, packages: Path) -> Comparison:
    found = run_inside(_resized(name, group), python, "reference", PAIRS, BLOCK_S, packages)
    if found["count"] != found["our_count"] + found["more"]:
        counts = f"trains {found['count']:,} scalars, ours {found['our_count']:,}"
        raise BenchmarkError(f"The reference of {group} in {name} {counts}; it declares {found['more']:,} more.")
    inverted = {**found, "ratios": [1 / ratio for ratio in found["ratios"]]}
    speed = row(f"our speed / {found['source']}, {name}, {group}", inverted, EACH, "at least")
    return Comparison(group, name, found, speed)


def _resized(name: str, group: str) -> RunPlan:
    """Return the plan of one workload and preset in one framework at the sizes of SIZES."""
    plan = plan_for(name, group)
    (planned,), (variant,) = plan.groups, plan.variants
    sizes = {**variant.case.sizes, **SIZES[group]}
    folder = Path(plan.workload_folders[variant.case.workload])
    case = replace(variant.case, sizes=sizes, specification=workloads.specification(folder, sizes))
    return replace(plan, groups=(replace(planned, variants=(replace(variant, case=case),)),))


def _mean(compared: list[Comparison]) -> Row:
    logs = [math.log(each.row.value) for each in compared]
    value = math.exp(sum(logs) / len(logs)) if logs else math.nan
    return Row("our speed / references, geometric mean", value, MEAN, "at least", f"of {len(logs)} comparisons")


def table(compared: list[Comparison]) -> str:
    """Return the comparisons as Markdown, by workload."""
    heads = (
        "workload, changed sizes",
        "framework",
        "our speed / reference speed",
        "our step",
        "reference",
        "what it computes differently",
    )
    lines = [_line(heads), "|---|---|---:|---:|---|---|"]
    for group, sizes in SIZES.items():
        label = f"`{group}`" + "".join(f", {name} {value}" for name, value in sizes.items())
        for each in (each for each in compared if each.group == group):
            found = each.found
            ratio, step = f"{each.row.value:.3f}", f"{found['step_ms']:,.0f} ms"
            lines.append(_line((label, each.framework, ratio, step, found["source"], found["differs"])))
    mean = _mean(compared)
    return "\n".join([*lines, "", f"Geometric mean: {mean.value:.3f}, {mean.detail}."])


def _line(cells: tuple[str, ...]) -> str:
    return f"| {' | '.join(cells)} |"


def main(names: list[str]) -> int:
    """Measure the named frameworks, or all, and write the table into the README next to this file."""
    compared = compare(names or list(frameworks.contenders()), list(SIZES))
    path = HERE / "README.md"
    before, rest = path.read_text(encoding="utf-8").split(BEGIN)
    path.write_text(before + BEGIN + "\n" + table(compared) + "\n" + END + rest.split(END)[1], encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Create the folder of a new workload from templates: a small working network for the user to replace step by step."""

import shutil
from collections.abc import Sequence
from pathlib import Path

from steelyard.catalog import frameworks, workloads
from steelyard.catalog.frameworks import WORKER
from steelyard.errors import UserError
from steelyard.files import names

TEMPLATE = WORKER / "template"


def default_frameworks() -> tuple[str, ...]:
    """Return the frameworks to write files for if none is named: the two that are preferred as float64 references."""
    able = [(known.reference, name) for name, known in frameworks.contenders().items() if known.reference]
    return tuple(name for _, name in sorted(able)[:2])


def write(name: str, parent: Path, implementations: Sequence[str]) -> Path:
    """Create `parent/name` with spec.toml, network.py and one file per framework; returns the folder.

    UserError: an invalid name or one of steelyard's own workloads, a framework without a template, or a folder that is not empty.
    """
    if wrong := names.flaw(name, "workload", taken=name in workloads.find()):
        raise UserError(wrong)
    for each in implementations:
        if not _template(each).is_file():
            raise UserError(f"There is no template for '{each}'; write {name}/{each}.py after those that are there.")
    folder = parent / name
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UserError(f"{folder} already exists; nothing was written. Choose another name or another --into.")
    folder.mkdir(parents=True, exist_ok=True)
    spec = (TEMPLATE / "spec.toml").read_text(encoding="utf-8")
    (folder / "spec.toml").write_text(spec.replace('"NAME"', f'"{name}"'), encoding="utf-8")
    shutil.copyfile(TEMPLATE / "network.py", folder / "network.py")
    for each in implementations:
        shutil.copyfile(_template(each), folder / f"{each}.py")
    return folder


def _template(framework: str) -> Path:
    """Return the file that a framework's implementation begins as: `template.py` in the folder of a user's own framework."""
    own = frameworks.framework(framework).user_folder
    return Path(own) / "template.py" if own else TEMPLATE / f"{framework}.py"

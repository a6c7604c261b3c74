"""Write the folder of a new port: port.toml and one small file for each side, with what to fill in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.catalog.frameworks import WORKER
from steelyard.errors import UserError, nearest
from steelyard.port.definition import FILE, SIDES

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

TEMPLATES = WORKER / "port" / "template"


def write(folder: Path, frameworks: Sequence[str]) -> Path:
    """Create the folder and return it. UserError: not two frameworks, no template for one, or a folder that is not empty."""
    known = sorted(path.stem for path in TEMPLATES.glob("*.py"))
    if len(frameworks) != SIDES:
        raise UserError(f"A port has two sides, and {len(frameworks)} were named. Name two: -f FRAMEWORK -f FRAMEWORK.")
    for each in frameworks:
        if each not in known:
            raise UserError(
                f"There is no template of a side for '{each}'; there is one for {', '.join(known)}.{nearest(each, known)}"
            )
    if folder.exists() and any(folder.iterdir()):
        raise UserError(f"{folder} is not empty. Name a new folder.")
    folder.mkdir(parents=True, exist_ok=True)
    names = [f"{name}_side" for name in frameworks]
    if names[0] == names[1]:
        names = [f"{frameworks[0]}_first", f"{frameworks[1]}_second"]
    tables = [f'[sides.{name}]\nframework = "{each}"\n' for name, each in zip(names, frameworks, strict=True)]
    inputs = (TEMPLATES / "inputs.toml").read_text(encoding="utf-8")
    (folder / FILE).write_text("\n".join(["contract = 1\n", *tables, inputs]), encoding="utf-8")
    for name, each in zip(names, frameworks, strict=True):
        (folder / f"{name}.py").write_text((TEMPLATES / f"{each}.py").read_text(encoding="utf-8"), encoding="utf-8")
    return folder

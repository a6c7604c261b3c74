"""Create the folder of a new workload from templates: a small working network for the user to replace step by step."""

import re
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

from steelyard.catalog import frameworks, workload_contract, workloads
from steelyard.catalog.frameworks import WORKER
from steelyard.errors import UserError, named
from steelyard.files import names

TEMPLATE = WORKER / "template"
CONTRACT = re.compile(r"^contract\s*=.*\n", re.MULTILINE)
NAME = re.compile(r"^name\s*=.*$", re.MULTILINE)  # the first in a spec.toml is that of the workload


def default_frameworks() -> tuple[str, ...]:
    """Return the frameworks to write files for if none is named: the two that are preferred as float64 references."""
    able = [(known.reference, name) for name, known in frameworks.contenders().items() if known.reference]
    return tuple(name for _, name in sorted(able)[:2])


def write(name: str, parent: Path, implementations: Sequence[str]) -> Path:
    """Create `parent/name` with spec.toml, network.py and one file per framework; returns the folder.

    UserError: an invalid name or one of steelyard's own workloads, a framework without a template, or a folder that is not empty.
    """
    _check_name(name)
    for each in implementations:
        if not _template(each).is_file():
            raise UserError(f"There is no template for '{each}'; write {name}/{each}.py after those that are there.")
    folder = _new_folder(name, parent)
    spec = (TEMPLATE / "spec.toml").read_text(encoding="utf-8")
    (folder / "spec.toml").write_text(spec.replace('"NAME"', f'"{name}"'), encoding="utf-8")
    shutil.copyfile(TEMPLATE / "network.py", folder / "network.py")
    for each in implementations:
        shutil.copyfile(_template(each), folder / f"{each}.py")
    return folder


def copy(name: str, parent: Path, like: str, folders: Iterable[str], implementations: Sequence[str]) -> Path:
    """Create `parent/name` as a copy of another workload, with the files of these frameworks, or of all; returns the folder.

    UserError: as in `write`, or there is no such workload, or it has no file for a framework.
    """
    _check_name(name)
    known = workloads.find(folders, [like])
    if like not in known:  # a workload of the user may have the name of an example
        known |= {each.name: each for place in examples() for each in workloads.find([place]).values()}
    model = named(known, like, f"There is no workload '{like}' to copy.")
    all_files = {each: model.folder / f"{each}.py" for each in frameworks.all_frameworks()}
    for each in implementations:
        if not all_files[frameworks.framework(each).name].is_file():
            raise UserError(
                f"The workload '{like}' has no {each}.py to copy; write {name}/{each}.py after those that are there."
            )
    unwanted = [path.name for each, path in all_files.items() if implementations and each not in implementations]
    folder = _new_folder(name, parent)
    shutil.copytree(model.folder, folder, ignore=shutil.ignore_patterns("__pycache__", *unwanted), dirs_exist_ok=True)
    spec = folder / "spec.toml"
    text = CONTRACT.sub("", spec.read_text(encoding="utf-8"))
    renamed = NAME.sub(f'name = "{name}"\ncontract = {workload_contract.VERSION}', text, count=1)
    spec.write_text(renamed, encoding="utf-8")
    return folder


def examples() -> list[Path]:
    """Return the folders of the example workloads: beside the installed worker, or at the top of the repository."""
    places = (WORKER / "examples", WORKER.parents[1] / "examples")
    return [place for place in places if any(place.glob("*/spec.toml"))][:1]


def _check_name(name: str) -> None:
    if wrong := names.flaw(name, "workload", taken=name in workloads.find()):
        raise UserError(wrong)


def _new_folder(name: str, parent: Path) -> Path:
    folder = parent / name
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UserError(f"{folder} already exists; nothing was written. Choose another name or another --into.")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _template(framework: str) -> Path:
    """Return the file that a framework's implementation begins as: `template.py` in the folder of a user's own framework."""
    own = frameworks.framework(framework).user_folder
    return Path(own) / "template.py" if own else TEMPLATE / f"{framework}.py"

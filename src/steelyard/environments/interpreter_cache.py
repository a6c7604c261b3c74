"""The results of the last examination of an interpreter: what it can import, and that its framework could be imported."""

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from steelyard.environments import contents
from steelyard.environments.contents import NOTHING, Contents
from steelyard.environments.folders import state_folder
from steelyard.environments.interpreter import InterpreterInfo, bytecode_folder, inspect_interpreter, starts
from steelyard.files import atomic
from steelyard_worker import variables

FILE = "interpreter.json"


@dataclass(frozen=True)
class Known:
    """An interpreter, and the `module` whose import it was examined with."""

    module: str
    info: InterpreterInfo
    contents: Contents


@dataclass(frozen=True)
class Installed:
    """What an installer has just written: the SHA-256 of each path, and when it began (ns since 1970)."""

    digests: Mapping[str, str]
    since_ns: int


# Receives the contents found, and those known before; raises where they must not be used.
Judge = Callable[[Contents, Contents], None]


def unchanged(python: Path, module: str = "") -> Known | None:
    """Return what is known of an interpreter; None if it does not start or a file that it can import was touched.

    With `module`, it must have been examined with that one.
    """
    known = _read(python)
    if known is None or module not in ("", known.module) or not starts(python):
        return None
    return known if _contents(python, known.info, known.contents) is known.contents else None


def examine(
    python: Path,
    bare: InterpreterInfo,
    module: str,
    limit_s: float,
    judge: Judge = lambda *_: None,
    installed: Installed | None = None,
) -> Known:
    """Read what an interpreter can import, and import `module` if any content differs from what was known.

    `bare`: what was found without importing anything. Files that were touched but not changed are no difference. The result is
    kept unless the import failed (`info.import_error`). Raises what `judge` raises, and `StartError` when the interpreter
    crashes or takes more than `limit_s` seconds.
    """
    before = _read(python)
    earlier = before.contents if before else NOTHING
    info = replace(bare, module_folders=before.info.module_folders) if before else bare
    found = _contents(python, info, earlier, installed)
    judge(found, earlier)
    if before and (before.module, earlier.digest) == (module, found.digest):
        info = before.info
    else:
        shutil.rmtree(bytecode_folder(python), ignore_errors=True)
        info = inspect_interpreter(python, module, limit_s)
        found = _contents(python, info, found, installed)
    known = Known(module, info, found)
    if not info.import_error:
        _write(python, known)
    return known


def identity(known: Known) -> str:
    """Return a hash of an interpreter's contents, and of the user's variables that say where libraries are."""
    values = json.dumps([known.contents.digest, variables.libraries(os.environ)])
    return hashlib.sha256(values.encode()).hexdigest()


def _contents(python: Path, info: InterpreterInfo, known: Contents, installed: Installed | None = None) -> Contents:
    settings = [folder / "pyvenv.cfg" for folder in python.parents[:2]]
    roots = [*info.folders, *info.module_folders, str(python), *map(str, settings)]
    return contents.read(roots, known, installed.digests if installed else {}, installed.since_ns if installed else 0)


def _write(python: Path, known: Known) -> None:
    found = known.contents
    # The digests without their paths, which follow from the folders: this file is read before every use.
    parts = [found.folders, list(found.digests.values()), found.digest]
    text = json.dumps({"module": known.module, "info": asdict(known.info), "contents": parts})
    folder = state_folder(python)
    folder.mkdir(parents=True, exist_ok=True)
    atomic.write_text(folder / FILE, f"{hashlib.sha256(text.encode()).hexdigest()}\n{text}")


def _read(python: Path) -> Known | None:
    """Return what was kept; None if there is nothing, or it was damaged."""
    try:
        digest, text = (state_folder(python) / FILE).read_text("utf-8").split("\n", 1)
        if hashlib.sha256(text.encode()).hexdigest() != digest:
            return None
        values = json.loads(text)
        folders, digests, total = values["contents"]
        found = Contents(folders, dict(zip(contents.paths(folders), digests, strict=True)), total)
        return Known(values["module"], InterpreterInfo(**values["info"]), found)
    except (OSError, ValueError, KeyError, TypeError):
        return None

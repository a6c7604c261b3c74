"""A run as a folder to publish: its record without what is private, a README, and hashes of all files."""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from steelyard import analysis
from steelyard.errors import UserError
from steelyard.exports import bundle_readme, private_words, writing
from steelyard.exports.private_words import Hiding, without_places
from steelyard.profiles import graphs, recorded
from steelyard.results import communication, identity, record, searched, trials
from steelyard_worker import protocol, records, tensors
from steelyard_worker.case import Case

if TYPE_CHECKING:
    from collections.abc import Iterable

SUMS = "SHA256SUMS"
README = "README.md"
# Numbers alone: they are copied as they are.
NUMBERS = (".i64", ".f32")
NAMES = (
    trials.JOB,
    protocol.EVENTS,
    recorded.RULES,
    searched.FILE,
    tensors.INDEX,
    tensors.BYTES,
    record.FILE,
    record.CERTIFICATES,
    record.ROUNDS,
)
FOLDERS = (trials.FOLDER, recorded.FOLDER, graphs.FOLDER, communication.FOLDER, searched.FOLDER)
KERNELS = ("onednn_verbose", "dnnl_verbose", "mkldnn_verbose", protocol.PROFILE_BEGINS, protocol.PROFILE_ENDS)
"""How the lines of a log begin that a profile is read from; all other lines stay out."""
# Fields of run.json and job.json that the report does not read, and that describe the machine of the user.
EMPTY = {"variables": {}, "allowed": "", "adapter_folder": ""}


@dataclass(frozen=True)
class Bundle:
    """A folder that was written. `files`: relative paths; `not_hidden`: private words that are also names in the record."""

    folder: Path
    files: list[str]
    not_hidden: list[str]


@dataclass(frozen=True)
class Copy:
    """A copy of a record without what is private. `name`: that of the run, without private words; `words`: what was hidden."""

    name: str
    words: dict[str, str]
    not_hidden: list[str]


def write(run: Path, target: Path, hide: Iterable[str] = ()) -> Bundle:
    """Write the bundle of a run into a new folder. `hide`: further private words.

    UserError: the record is damaged, the folder exists or cannot be written, or something private could not be hidden; then
    there is no folder.
    """
    target = target.expanduser().absolute()
    writing.check_outside(target, run)
    if target.exists():
        raise UserError(f"{target} exists already. Name another folder with -o, or remove it.")
    try:
        done = copy(run, target, hide)
        _describe(target, done.name)
        _check(target, done.words, [target / README])
    except OSError as error:
        shutil.rmtree(target, ignore_errors=True)
        raise UserError(f"{target} cannot be written ({error.strerror}). Name another folder with -o.") from None
    except UserError:
        shutil.rmtree(target, ignore_errors=True)
        raise
    files = sorted(path.relative_to(target).as_posix() for path in target.rglob("*") if path.is_file())
    return Bundle(target, files, done.not_hidden)


def copy(run: Path, target: Path, hide: Iterable[str] = ()) -> Copy:
    """Copy what a report reads of a record into a new folder, without what is private. Links are not followed.

    UserError: the record is damaged, or something private could not be hidden; OSError: the folder cannot be written.
    """
    known = record.read(run)
    sources = {path: run / path for path in identity.files_of(run) if _is_kept(path)}
    texts = [_read(path) for path in sources.values() if path.suffix not in (*NUMBERS, ".bin")]
    words, not_hidden = private_words.words(known, texts, hide)
    hiding = Hiding(words, private_words.spaced_paths(texts))
    target.mkdir(parents=True)
    _fill(run, target, sources, hiding, private_words.command(known))
    _check(target, words, sorted(target.rglob("*")))
    return Copy(hiding.name(run.name), words, not_hidden)


def _is_kept(path: str) -> bool:
    """Report whether a file of a record is published: what a report reads, without logs of processes and traces."""
    pure = PurePosixPath(path)
    inside = len(pure.parts) == 1 or pure.parts[0] in FOLDERS
    of_profile = pure.parts[0] == recorded.FOLDER and pure.name in (protocol.LOG, recorded.PROGRAM)
    return inside and (of_profile or pure.name in NAMES or pure.suffix in NUMBERS)


def _read(path: Path) -> str:
    try:
        return records.read_text(path, "replace")
    except (OSError, ValueError) as error:
        raise UserError(f"{path} cannot be read ({error}). A bundle is made of a whole record.") from None


def _fill(run: Path, target: Path, sources: dict[str, Path], hiding: Hiding, command: str) -> None:
    ids = _ids(run, hiding)
    for path, source in sources.items():
        if source.name == tensors.BYTES:  # written with its index
            continue
        place = target / hiding.name(path)
        place.parent.mkdir(parents=True, exist_ok=True)
        if source.name == tensors.INDEX:
            _copy_tensors(source.parent, place.parent, hiding)
        elif source.suffix in NUMBERS:
            shutil.copyfile(source, place)
        else:
            place.write_text(_renamed(_hidden(source, hiding, command), ids), encoding="utf-8")


def _describe(target: Path, name: str) -> None:
    """Write the README and the hashes of a copied record."""
    (target / README).write_text(bundle_readme.text(analysis.view(target), name), encoding="utf-8")
    sums = [f"{_sha256(path)}  {path.relative_to(target)}" for path in sorted(target.rglob("*")) if path.is_file()]
    (target / SUMS).write_text("\n".join(sums) + "\n", encoding="utf-8")


def _hidden(source: Path, hiding: Hiding, command: str) -> str:
    """Return the text of a file without what is private."""
    text = _read(source)
    if source.suffix == ".jsonl":
        # A damaged line stays one; the last one may have been cut off when its process was killed, and readers leave it out.
        lines = [line for line in text.splitlines(keepends=True) if line.endswith("\n")]
        return "".join(f"{_json(line, hiding, command) or '{}'}\n" for line in lines)
    if source.suffix == ".json":
        return _json(text, hiding, command)
    lines = text.splitlines()
    if source.name == protocol.LOG:
        lines = [line for line in lines if line.startswith(KERNELS)]
    return "".join(f"{hiding.text(line)}\n" for line in lines)


def _json(text: str, hiding: Hiding, command: str) -> str:
    """Return JSON without what is private; a text that is no JSON is left out, as readers do."""
    try:
        value = records.parse(text)
    except ValueError:
        return ""
    if isinstance(value, dict):
        value |= {name: empty for name, empty in EMPTY.items() if name in value}
        if "plan" in value:
            value |= {"command": command}
            value["plan"]["options"] = {name: without_places(each) for name, each in value["plan"]["options"].items()}
    return json.dumps(hiding.value(value), indent=1 if "\n" in text.strip() else None)


def _copy_tensors(source: Path, target: Path, hiding: Hiding) -> None:
    """Copy arrays with their names hidden. A damaged folder is left out, as a report leaves it out."""
    try:
        if tensors.is_unchanged(source):
            arrays = {hiding.text(name): array for name, array in tensors.read(source).items()}
            tensors.write(target, arrays, hiding.value(tensors.read_meta(source)))
        else:
            shutil.rmtree(target, ignore_errors=True)
    except (OSError, ValueError):
        shutil.rmtree(target, ignore_errors=True)


def _ids(run: Path, hiding: Hiding) -> dict[str, str]:
    """Return id -> new id of the cases in which something was hidden: an id is a hash of all fields."""
    found = {}
    for variant in record.read(run).plan.variants:
        raw = json.loads(records.to_line(variant.case))
        changed: Case = records.build(Case, hiding.value(raw))
        if changed.id != variant.case.id:
            found[variant.case.id] = changed.id
    return found


def _renamed(text: str, ids: dict[str, str]) -> str:
    for old, new in ids.items():
        text = text.replace(old, new)
    return text


def _check(target: Path, words: dict[str, str], paths: Iterable[Path]) -> None:
    """Raise UserError where a private word is left in the name or the text of a file in the folder `target`."""
    check = Hiding(words)
    for path in paths:
        name = path.relative_to(target).as_posix()
        text = path.read_text(encoding="utf-8") if path.is_file() and path.suffix not in (*NUMBERS, ".bin") else ""
        if check.is_in(name) or check.is_in(text):
            raise UserError(
                f"A private word is left in {name}, so it cannot be published. Name it with --hide and try again."
            )


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()

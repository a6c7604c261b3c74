"""Data that code of the user's own makes: `prepare(folder, sizes)` in data.py of the workload's folder.

It runs in a process of its own, as network.py does, and its arrays are checked and written as arrays in files are.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from steelyard.catalog import user_networks
from steelyard.catalog.describing_process import DATA_MODULE, PREPARE
from steelyard.catalog.frameworks import files_hash
from steelyard.errors import UserError
from steelyard.files import atomic
from steelyard.inputs.data.catalogue import DataSet, find
from steelyard.inputs.data.layouts import UNKNOWN
from steelyard.inputs.data.options import SeededOptions
from steelyard.inputs.data.own import arrays
from steelyard.inputs.data.own.split_folders import SPLITS
from steelyard.inputs.data.request import DataRequest, OwnCode
from steelyard.inputs.data.source import Source, digest_content
from steelyard.inputs.data.work import Known, Work

MADE = "made"


def check_code(code: OwnCode | None, data: str) -> OwnCode:
    """Return the code that makes a data set. UserError: the workload's folder has none."""
    if code is None or not (code.folder / DATA_MODULE).is_file():
        folder = f"{code.folder} has" if code else "There is"
        raise UserError(
            f"{folder} no {DATA_MODULE}, which makes the data '{data}'; write it, with a function {PREPARE}(folder, sizes) that "
            "returns the arrays by name."
        )
    return code


def source_of(data_set: DataSet, request: DataRequest) -> Source:
    """Return the source: the user's folder if one is named, otherwise that of the code. Both decide its identity.

    UserError: the folder does not exist, or there is no code.
    """
    code, folder = check_code(request.code, data_set.name), request.folder
    if folder and not folder.exists():
        raise UserError(f"The data folder {folder} does not exist; name the folder that {DATA_MODULE} reads.")
    read = digest_content(data_set, folder) if folder else ""
    identity = atomic.key("code", files_hash(code.folder), sorted(code.sizes.items()), read)
    return Source(data_set, data_set.layouts[0], folder or code.folder, "code", identity, UNKNOWN)


def write_made(work: Work[SeededOptions]) -> None:
    """Run the code, and write its arrays as `arrays.write_arrays` does. UserError: it fails, or its arrays do not fit."""
    code, made = work.code, work.scratch / MADE
    assert code is not None
    made.mkdir()
    work.say(f"Running {code.folder / DATA_MODULE}")
    user_networks.make_arrays(code.folder, code.sizes, code.data, made)
    by_split, flat, _ = find("arrays").layouts
    layout = flat if any(made.glob("*.npy")) else by_split
    lacking = [split for split in SPLITS if layout is by_split and not any((made / split).glob("*.npy"))]
    if lacking:
        raise UserError(
            f"{code.folder / DATA_MODULE}: the {lacking[0]} split has no arrays; let {PREPARE} return 'train/NAME' and "
            "'test/NAME', or 'NAME' alone, of which one sample in five is for testing."
        )
    layout = replace(layout, name=work.source.layout.name)
    with _naming(made, code.folder / DATA_MODULE):
        arrays.write_arrays(replace(work, source=replace(work.source, path=made, layout=layout)))


@contextmanager
def _naming(made: Path, code: Path) -> Iterator[None]:
    """Name the code in messages, and not the temporary folder with what it made."""
    try:
        yield
    except UserError as error:
        raise UserError(str(error).replace(f"{made}/", f"{code}: ").replace(str(made), str(code))) from None


def open_nothing(_: Work[SeededOptions]) -> Known:
    """Do nothing: what the code makes is known when it has run."""
    return Known()

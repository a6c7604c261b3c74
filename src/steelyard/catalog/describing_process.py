"""The process in which a user's network.py or data.py runs: it answers one request, a folder, with files of data, and ends.

Everything that the code prints goes to the output of this process. Whatever the code does to its process, the process that asked
continues.
"""

import json
import os
import re
import sys
import traceback
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from steelyard.catalog import network_data
from steelyard_worker import network as networks
from steelyard_worker.network import Network
from steelyard_worker.sizes import SizesError

REQUEST = "request.json"
DRAWN = "drawn"
MODULE = "network.py"
DATA_MODULE = "data.py"
PREPARE = "prepare"  # the function of data.py that makes a data set
ARRAY_NAME = re.compile(r"(?:(?:train|test)/)?[A-Za-z_][A-Za-z0-9_.-]*")


@dataclass(frozen=True)
class Request:
    """A request about `folder`: the networks of all `sizes`, or, with a `function`, a batch of the first of them, or its data.

    `state`: of the bit generator with which `function` draws `count` samples. `data`: the folder that `prepare` reads, if any;
    `output`: where it leaves its arrays.
    """

    folder: str
    sizes: tuple[dict[str, Any], ...]
    function: str = ""
    state: dict[str, Any] | None = None
    count: int = 0
    data: str = ""
    output: str = ""

    @property
    def module(self) -> str:
        """The file in the folder that answers."""
        return DATA_MODULE if self.function == PREPARE else MODULE


@dataclass(frozen=True)
class Failure:
    """Why there is no network. `reason`: a clause without a full stop. `key`: that was looked for and is missing.

    `refused`: whether the network refuses these sizes, in words of its own. `shape`: which tensor's shape they make impossible.
    """

    reason: str
    key: str = ""
    refused: bool = False
    shape: str = ""


def network_file(number: int) -> str:
    """Return the name of the file with the network of one of the requested sizes."""
    return f"network{number}.json"


def failure_file(number: int) -> str:
    """Return the name of the file with the reason why there is no such network."""
    return f"failure{number}.json"


def described(folder: Path, sizes: dict[str, Any]) -> Network | Failure:
    """Return the network of a workload folder at these sizes, unless a shape is impossible; the code can raise anything."""
    found = networks.describe(folder, sizes)
    wrong = network_data.wrong_shape(found)
    return Failure(f"it gives {wrong}", shape=wrong) if wrong else found


def failure(error: BaseException, path: Path) -> Failure:
    """Return what went wrong in a file of a workload folder: the error in one line, and where in the file it was raised."""
    message = " ".join(str(error).split())
    if isinstance(error, SizesError):
        return Failure(message, refused=True)
    if isinstance(error, SystemExit):
        return Failure(f"it called sys.exit({error.code!r}){_line(error, path)}, where it had to return")
    text = f"{type(error).__name__}: {message}" if message else type(error).__name__
    key = str(error.args[0]) if isinstance(error, KeyError) and error.args else ""
    return Failure(text + _line(error, path), key)


def _line(error: BaseException, path: Path) -> str:
    """Return where in a file an error was raised; a syntax error says so itself."""
    lines = [
        number for frame, number in traceback.walk_tb(error.__traceback__) if frame.f_code.co_filename == str(path)
    ]
    return f" (line {lines[-1]})" if lines else ""


def main(place: Path) -> None:
    """Answer the request in a folder, and end this process at once, whatever threads the code has started."""
    request = Request(**json.loads((place / REQUEST).read_text(encoding="utf-8")))
    _die_with_parent()
    for number in range(1 if request.function else len(request.sizes)):
        try:
            _answer(place, request, number)
        except BaseException as error:  # the user's code can raise anything, also what ends a process
            why = failure(error, Path(request.folder, request.module))
            _write(place / failure_file(number), json.dumps(asdict(why)))
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(0)


def _answer(place: Path, request: Request, number: int) -> None:
    if request.function == PREPARE:
        _prepare(request)
        _write(place / PREPARE, "")
    elif request.function:
        _draw(place, request)
    else:
        _describe(place, request, number)


def _describe(place: Path, request: Request, number: int) -> None:
    found = described(Path(request.folder), request.sizes[number])
    if isinstance(found, Failure):
        _write(place / failure_file(number), json.dumps(asdict(found)))
    else:
        _write(place / network_file(number), network_data.to_text(found))


def _draw(place: Path, request: Request) -> None:
    import numpy as np

    from steelyard_worker import tensors

    network = networks.describe(request.folder, request.sizes[0])
    draw = network_data.function(network, request.function)
    assert draw is not None and request.state is not None
    bits = getattr(np.random, request.state["bit_generator"])()
    bits.state = request.state
    arrays = {str(name): np.asarray(each) for name, each in draw(np.random.Generator(bits), request.count).items()}
    for name, each in arrays.items():
        if each.dtype.hasobject:
            message = f"'{name}' is an array of objects, and a batch has arrays of numbers"
            raise TypeError(message)
    tensors.write(place / DRAWN, arrays)


def _prepare(request: Request) -> None:
    """Write each array that `prepare` gives as an .npy file; it may yield them one by one, so that not all are in memory."""
    import numpy as np

    made = networks.load(request.folder, "data").prepare(Path(request.data) if request.data else None, request.sizes[0])
    for name, array in made.items() if isinstance(made, Mapping) else made:
        if not isinstance(name, str) or not ARRAY_NAME.fullmatch(name):
            message = f"{name!r} is no name of an array; use the name of an input, or 'train/' or 'test/' before it"
            raise ValueError(message)
        path = Path(request.output, f"{name}.npy")
        path.parent.mkdir(parents=True, exist_ok=True)
        np.save(path, np.asarray(array), allow_pickle=False)


def _write(path: Path, text: str) -> None:
    """Write a file that is complete or absent."""
    partial = path.with_suffix(".partial")
    partial.write_text(text, encoding="utf-8")
    partial.replace(path)


def _die_with_parent() -> None:
    """Make the kernel end this process if the one that asked is killed (prctl(2))."""
    if sys.platform == "linux":
        import ctypes
        import signal

        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG

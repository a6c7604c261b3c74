"""The input and the result of data preparation, and its progress messages."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from steelyard_worker.network import Input

Report = Callable[["Progress"], None]


@dataclass(frozen=True)
class Progress:
    """One sentence about the current step; `done` of `total` bytes or samples. A total of 0 means unknown."""

    sentence: str
    done: int = 0
    total: int = 0


def silent(progress: Progress) -> None:
    """Discard progress messages."""


@dataclass(frozen=True)
class OwnCode:
    """The folder of a workload whose data.py makes its data, the sizes of the preset, and the user's folder that it reads."""

    folder: Path
    sizes: dict[str, Any]
    data: Path | None = None


@dataclass(frozen=True)
class DataRequest:
    """A data set by name, the user's folder or file that holds it, and a preset's options.

    Without a folder the data set is downloaded. `steelyard.inputs.data.options` lists the options of each form of data.
    `inputs`: of the network that reads the data; arrays of the user's own are found and checked by them. `code`: what makes the
    data set `own`.
    """

    name: str
    folder: Path | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    inputs: tuple[Input, ...] = ()
    code: OwnCode | None = None


@dataclass(frozen=True)
class Prepared:
    """A folder of prepared arrays and their metadata.

    Every data set has `position/train` and `position/test` int32 (N): the index of each sample in the official order.
    Images: `train/image` uint8 (N, C, H, W), `train/label` int32 (N) and `lookup` float32 (C, 256). Text:
    `train/tokens` int32 (N, T), `train/label` int32 (N) and, on request, `embedding` float32 (V, width). The same
    under `test/`. For other forms see `write_speech`, `write_clips`, `write_pairs` and `write_language`.
    """

    folder: Path
    meta: dict[str, Any]

"""Weights that the user gives: checked against the network before anything is created, then placed where drawn ones would be."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from steelyard.catalog import frameworks, given_weights
from steelyard.catalog.given_weights import AS_ARRAYS, GivenWeights
from steelyard.errors import UserError
from steelyard.files import atomic
from steelyard.files.paths import cache_folder
from steelyard.inputs import file_formats, weight_arrays
from steelyard.inputs.file_formats import Format
from steelyard_worker import weight_names
from steelyard_worker.case import Case
from steelyard_worker.network import Network, Parameter, implementation_file

ARRAY_FORMATS = {".npz": file_formats.NUMPY, ".safetensors": file_formats.SAFETENSORS}
METHOD = 1  # part of the cache key; increase it when a change alters what is read
# Lets a framework read its own file: (its name, file, case) -> {canonical name: array}.
Read = Callable[[GivenWeights, Case], Mapping[str, np.ndarray[Any, Any]]]
# How some frameworks keep a kind of tensor: the axes of the canonical one in their order, what these are, and what undoes it.
LAYOUTS: dict[str, tuple[tuple[tuple[int, ...], str, str], ...]] = {
    "conv": (
        ((2, 3, 1, 0), "height, width, in, out", "array.transpose(3, 2, 0, 1)"),
        ((0, 2, 3, 1), "out, height, width, in", "array.transpose(0, 3, 1, 2)"),
    ),
    "conv1d": (((2, 1, 0), "width, in, out", "array.transpose(2, 1, 0)"),),
    "dense": (((1, 0), "in, out", "array.T"),),
    "embedding": (((1, 0), "width, words", "array.T"),),
    "lstm_w_ih": (((1, 0), "in, gates", "array.T"),),
    "lstm_w_hh": (((1, 0), "in, gates", "array.T"),),
}


def check(given: GivenWeights, case: Case, network: Network, workload: Path) -> None:
    """Check a file before anything is created: that it is what its ending says and, where arrays are named, that they fit.

    UserError names the first tensors that are missing, are too many, or have another shape, type or values. `workload`: folder of
    the case's workload.
    """
    if not given.path.is_file():
        if atomic.is_whole(_folder(given, case, network, workload)):  # a run that goes on has read it before
            return
        raise UserError(f"The weights of this run are in {given.path}, which is gone. Put it back, or start a new run.")
    _check_unchanged(given, case)
    _check_format(given)
    preset = f"{case.workload}:{case.preset}"
    if given.framework:
        _check_implemented(given, case.workload, workload)
        return
    opened = _fitting(given, network, preset)
    for name in opened.tensors:
        weight_arrays.as_float32(name, opened.values(name), given.name)


def placed(given: GivenWeights, case: Case, network: Network, workload: Path, read: Read | None) -> Path:
    """Return the tensors folder with the given weights; the first call writes it. `read`: as above; None: there is none.

    UserError: the file is not the one with which the run began, cannot be read, or does not fit the network.
    """
    preset = f"{case.workload}:{case.preset}"

    def made() -> dict[str, np.ndarray[Any, Any]]:
        _check_unchanged(given, case)
        if given.framework:
            assert read
            held = read(given, case)
            return {each.name: _values(held[each.name], each, given) for each in network.parameters}
        opened = _fitting(given, network, preset)
        return {each.name: _values(opened.values(each.name), each, given) for each in network.parameters}

    meta = {"file": given.name, "digest": case.weights, "method": METHOD}
    return atomic.place_tensors(_folder(given, case, network, workload), made, meta)


def _check_unchanged(given: GivenWeights, case: Case) -> None:
    if given_weights.digest(given) != case.weights:
        raise UserError(f"{given.path} has changed since this run began, so it cannot be continued. Start a new run.")


def _values(array: np.ndarray[Any, Any], parameter: Parameter, given: GivenWeights) -> np.ndarray[Any, Any]:
    return weight_arrays.as_float32(parameter.name, array, given.name)


def _folder(given: GivenWeights, case: Case, network: Network, workload: Path) -> Path:
    """Return the place in the cache; its name covers the file, the network, and the code that reads a framework's own file."""
    declared = [(each.name, tuple(each.shape)) for each in network.parameters]
    read_by = []
    if given.framework:
        folder = frameworks.framework(given.framework).folder
        read_by = [given.framework, case.sizes, frameworks.files_hash(folder), frameworks.files_hash(workload)]
    return cache_folder() / "weights" / atomic.key("given", METHOD, case.weights, declared, read_by)


def _check_format(given: GivenWeights) -> None:
    """Check by its first and last bytes that a file can be what it is named as."""
    found = file_formats.recognised(given.path)
    if found.is_weightless:
        raise UserError(f"{given.name} is {found.title} and holds no weights.")
    if not given.framework:
        _check_arrays(given, found)
        return
    asked = frameworks.framework(given.framework)
    if asked.user_folder or asked.scripted:  # its format is its own
        return
    if ending := next((each for each, title in ARRAY_FORMATS.items() if title == found.title), ""):
        raise UserError(
            f"{given.name} is {found.title}; give it the ending {ending}, so that it is read without a framework."
        )
    if found.framework not in ("", asked.name):
        raise UserError(f"{given.name} is {found.title}, not of {asked.title}; {_named(given, found)}.")


def _check_arrays(given: GivenWeights, found: Format) -> None:
    expected = ARRAY_FORMATS[given.path.suffix.lower()]
    if found.title == expected:
        return
    what = f"is {found.title}, not" if found.title else "is damaged or truncated, or not"
    advice = _named(given, found) if found.framework else "write it again, or copy it again"
    raise UserError(f"{given.name} {what} {expected}; {advice}.")


def _named(given: GivenWeights, found: Format) -> str:
    """Return the advice to give a file an ending by which its framework reads it, or to save arrays, where none is read."""
    ending = next(iter(frameworks.framework(found.framework).checkpoints), "")
    return (
        f"rename it to {given.path.stem}{ending}"
        if found.is_read and ending
        else f"{AS_ARRAYS[0].lower()}{AS_ARRAYS[1:]}"
    )


def _check_implemented(given: GivenWeights, workload: str, folder: Path) -> None:
    known = frameworks.framework(given.framework)
    if not implementation_file(folder, workload, known.name, known.user_folder).is_file():
        raise UserError(
            f"{given.name} is read by {known.title}, which has no implementation of {workload} that could load it. {AS_ARRAYS}."
        )


def _fitting(given: GivenWeights, network: Network, preset: str) -> weight_arrays.Npz | weight_arrays.SafeTensors:
    """Return what a file of arrays holds, if names, shapes and types are those of the network. UserError: they are not."""
    opened = weight_arrays.opened(given.path)
    needed = {each.name: tuple(each.shape) for each in network.parameters}
    kinds = {each.name: each.kind for each in network.parameters}
    held = {name: each.shape for name, each in opened.tensors.items()}
    found = weight_names.differences(
        needed, held, "the network", lambda name: _layout(kinds[name], needed[name], held[name])
    )
    if odd := weight_arrays.wrong_types({name: each for name, each in opened.tensors.items() if name in needed}):
        few = ", ".join(odd[: weight_names.MOST])
        found.append(f"{few} {'is' if len(odd) == 1 else 'are'} of no floating type; save float32.")
    if found:
        raise UserError(" ".join([f"{given.name} does not fit {preset}.", *found]))
    return opened


def _layout(kind: str, needed: tuple[int, ...], held: tuple[int, ...]) -> str:
    """Return the likely reason for another shape: the layout of another framework; empty if it is none."""
    for axes, words, undone in LAYOUTS.get(kind, ()):
        if len(needed) == len(axes) and held == tuple(needed[axis] for axis in axes):
            return f"it lies as ({words}), as in some frameworks; save {undone}"
    return ""

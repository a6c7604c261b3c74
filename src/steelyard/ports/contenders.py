"""Both sides of a port as two contenders: a workload and two frameworks of one's own, written as files that a run reads.

The files hold the paths and the digests of the sides' Python files and of the arrays of port.toml, so that other models or other
inputs are other cases.
"""

from __future__ import annotations

import hashlib
import io
import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard.catalog import frameworks
from steelyard.errors import UserError
from steelyard.files import atomic, paths
from steelyard.ports import given_inputs
from steelyard_worker.case import INFERENCE, TRAINING
from steelyard_worker.port.side_functions import OWN

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from steelyard.catalog.frameworks import Framework
    from steelyard.plan.options import Options
    from steelyard.ports.definition import InputSpec, Port, SideSpec

CACHE = "ports"
LONGEST = 30

ADAPTER = '''"""{title}: a side of a port, which the worker times."""

from steelyard_worker.port.contender import SideAdapter


class Adapter(SideAdapter):
    framework = {framework!r}
    mode = {mode!r}
    knobs = {knobs!r}
'''
IMPLEMENTATION = '''"""Where a side and its arrays are."""

FILE = {file!r}
INPUTS = {inputs!r}
TARGETS = {targets!r}
'''
NETWORK = '''"""The models of a port. Their tensors are the user's, so nothing is drawn; the batch is that of port.toml.

A case has the hash of this file, and with it the digests of both sides' files and of all arrays.
"""

from steelyard_worker.network import Input, Network

DIGESTS = {digests!r}


def describe(sizes):
    return Network((), (Input("unused", (), "int32", high=1),), 0)
'''
SPEC = """\
contract = 1
name = {name}
title = {title}
family = "port"
summary = "Two models of a user's own"
source = "port.toml"
unit = "samples"
metric = "none"

[optimizers.own]
name = "sgd"
learning_rate = 1

[presets.port]
summary = {summary}
optimizer = "own"
[presets.port.sizes]
batch = {batch}
"""


def options_of(port: Port, asked: Options, pythons: Mapping[str, Path], trains: bool) -> Options:
    """Write both sides as contenders into the cache, and return the options of a run that times them.

    pythons: side -> interpreter. trains: both sides define step(); otherwise forward passes are timed. UserError: an option
    chooses what the sides decide, or the inputs have no batch.
    """
    name = _name_of(port.folder.name)
    contenders = [_contender_name(side) for side in port.sides]
    folder = _written(port, name, contenders)
    return replace(
        asked,
        workloads=(name,),
        workload_folders=(str(folder / "workloads"),),
        frameworks=tuple(contenders),
        framework_folders=(str(folder / "frameworks"),),
        external={own: str(pythons[side.name]) for own, side in zip(contenders, port.sides, strict=True)},
        tasks=asked.tasks or (TRAINING if trains else INFERENCE,),
        certify=False,
    )


def check_nothing_else(asked: Options) -> None:
    """Reject options that choose what a port already says."""
    chosen = {
        "a study": asked.study,
        "--workload": asked.workloads,
        "--framework": asked.frameworks,
        "--mode": asked.modes,
        "--knob": asked.knobs,
        "--env": asked.external,
        "--batch": asked.batches,
        "--set": asked.set,
        "--optimizer": asked.optimizers,
        "--strategy": asked.strategies,
        "--precision": asked.precisions,
        "--data": asked.data,
        "--weights": asked.weights,
    }
    if given := [name for name, value in chosen.items() if value]:
        raise UserError(
            f"--port times the models, inputs and steps of a port as they are, so {given[0]} cannot be given with it."
        )


def _name_of(folder: str) -> str:
    """Return the name of the workload: that of the port's folder, with a prefix that no built-in workload has."""
    return f"port-{''.join(letter if letter.isalnum() and letter.isascii() else '-' for letter in folder)[:LONGEST]}"


def _contender_name(side: SideSpec) -> str:
    """Return the name of a side as a framework: the side's own in lower case, unless a framework has it."""
    letters = "".join(letter if letter.isalnum() and letter.isascii() else "_" for letter in side.name.lower())
    if letters[:1].isalpha() and letters not in frameworks.all_frameworks():
        return letters
    return f"side_{letters}"


def _written(port: Port, name: str, contenders: list[str]) -> Path:
    """Write all files into a folder of the cache whose name is their digest, and return it."""
    inputs, targets = _saved(port, port.inputs), _saved(port, port.targets)
    files = _workload(port, name, _batch(port, inputs), _digests(port, inputs | targets))
    for side, own in zip(port.sides, contenders, strict=True):
        files |= _framework(port, side, name, own, inputs, targets)
    folder = paths.cache_folder() / CACHE / f"{name}-{atomic.key(files)}"
    for path, text in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        atomic.write_text(target, text)
    return folder


@dataclass(frozen=True)
class _Saved:
    """An array as a file. `count`: the length of its first axis."""

    path: Path
    digest: str
    count: int


def _saved(port: Port, specs: Iterable[InputSpec]) -> dict[str, _Saved]:
    """Save every array in the cache under its digest; returns them by name."""
    found = {}
    for name, array in given_inputs.arrays(port, specs).items():
        whole = np.ascontiguousarray(array)
        about = f"{whole.dtype.str} {whole.shape}".encode()
        digest = hashlib.sha256(about + whole.tobytes()).hexdigest()
        path = paths.cache_folder() / CACHE / "arrays" / f"{digest[:32]}.npy"
        path.parent.mkdir(parents=True, exist_ok=True)
        content = io.BytesIO()
        np.save(content, whole)
        atomic.write_bytes(path, content.getvalue())  # also over a file of this name, which may have been changed
        found[name] = _Saved(path, digest, array.shape[0] if array.ndim else 1)
    return found


def _batch(port: Port, inputs: Mapping[str, _Saved]) -> int:
    """Return how many samples a step has: the length of the first axis of the first input."""
    first = port.inputs[0].name
    return max(1, inputs[first].count)


def _digests(port: Port, arrays: Mapping[str, _Saved]) -> dict[str, str]:
    """Return the digests of both sides' files and of all arrays, by name."""
    files = {f"side {side.name}": side.path(port.folder).read_bytes() for side in port.sides}
    return {
        **{name: hashlib.sha256(content).hexdigest() for name, content in files.items()},
        **{name: saved.digest for name, saved in arrays.items()},
    }


def _workload(port: Port, name: str, batch: int, digests: dict[str, str]) -> dict[str, str]:
    shapes = ", ".join(f"{each.name} {_shape(each)}" for each in port.inputs)
    texts = {"name": name, "title": port.folder.name, "summary": f"inputs {shapes}"}
    spec = SPEC.format(batch=batch, **{key: json.dumps(text) for key, text in texts.items()})
    return {f"workloads/{name}/spec.toml": spec, f"workloads/{name}/network.py": NETWORK.format(digests=digests)}


def _shape(spec: InputSpec) -> str:
    return spec.file or "x".join(map(str, spec.shape))


def _framework(
    port: Port, side: SideSpec, name: str, own: str, inputs: Mapping[str, _Saved], targets: Mapping[str, _Saved]
) -> dict[str, str]:
    """Return the files of one side as a framework of one's own."""
    known = frameworks.framework(side.framework)
    path = side.path(port.folder)
    implementation = IMPLEMENTATION.format(
        file=str(path),
        inputs={key: str(each.path) for key, each in inputs.items()},
        targets={key: str(each.path) for key, each in targets.items()},
    )
    knobs = {key: knob.default for key, knob in known.knobs.items()}
    title = f"{side.name} ({known.title})"
    files = {
        "framework.toml": _facts(known, title),
        "adapter.py": ADAPTER.format(title=title, framework=known.name, mode=known.default_mode, knobs=knobs),
        f"workloads/{name}.py": implementation,
    }
    for table in (frameworks.OPERATIONS, frameworks.GRAPHS):
        if (known.folder / table).is_file():
            files[table] = (known.folder / table).read_text(encoding="utf-8")
    return {f"frameworks/{own}/{key}": text for key, text in files.items()}


def _facts(known: Framework, title: str) -> str:
    """Return the framework.toml of a side: the facts of its framework, and one mode, which is its own code."""
    values: dict[str, Any] = {
        "title": title,
        "import": known.module,
        "distribution": known.distribution,
        "default_mode": OWN,
        "maintained": known.maintained,
        "maintained_source": known.maintained_source,
        "variables": list(known.variables),
    }
    tables: dict[str, dict[str, Any]] = {
        "modes": {OWN: "As the side's own code runs it"},
        "start_seconds": {OWN: known.start_s(known.default_mode)},
        "devices": known.devices,
        "precisions": {"float32": ""},
        "profile_variables": known.profile_variables,
        "optimizers.sgd": {"form": "canonical", "correction": "float64"},
    }
    lines = [f"{key} = {json.dumps(value)}" for key, value in values.items()]
    for name, table in tables.items():
        lines += ["", f"[{name}]", *(f"{key} = {json.dumps(value)}" for key, value in table.items())]
    return "\n".join(lines) + "\n"

"""Read workload folders: presets, optimizers, data sets, and which frameworks implement them."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steelyard.catalog import frameworks
from steelyard.catalog.frameworks import WORKER
from steelyard.errors import UserError, nearest
from steelyard.files import settings_files
from steelyard.statistics import metrics
from steelyard_worker import network as networks
from steelyard_worker.case import Optimizer
from steelyard_worker.network import KINDS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from steelyard_worker.network import Network

REQUIRED = {"name", "title", "family", "summary", "source", "unit", "metric", "optimizers", "presets"}
PRESET_REQUIRED = {"summary", "optimizer", "sizes"}
PRESET_ALLOWED = PRESET_REQUIRED | {"learning_rate", "data"}
PRESET_TYPES: dict[str, tuple[tuple[type, ...], str]] = {
    "summary": ((str,), "a string"), "optimizer": ((str,), "a string"), "sizes": ((dict,), "a table"),
    "learning_rate": ((int, float), "a number"), "data": ((dict,), "a table"),
}  # fmt: skip


@dataclass(frozen=True)
class Preset:
    """One set of sizes. `data`: the data set and how it is prepared; empty if there are only synthetic batches."""

    name: str
    summary: str
    sizes: dict[str, Any]
    optimizer: str
    learning_rate: float | None
    data: dict[str, Any]


@dataclass(frozen=True)
class Workload:
    """One folder: spec.toml, network.py, and one file per framework.

    `unsupported` gives reasons by framework, or by framework and precision as in `mxnet/float64`.
    """

    name: str
    title: str
    family: str
    summary: str
    source: str
    unit: str
    metric: str
    folder: Path
    presets: dict[str, Preset]
    optimizers: dict[str, Optimizer]
    unsupported: dict[str, str]

    def preset(self, name: str) -> Preset:
        """Return a preset by name; UserError suggests the nearest."""
        if name not in self.presets:
            raise UserError(f"Workload {self.name} has no preset '{name}'.{nearest(name, list(self.presets))}")
        return self.presets[name]

    def optimizer(self, preset: Preset, name: str | None = None) -> Optimizer:
        """Return the update rule of a preset, or another by name; in `decay`, kinds are replaced by names of tensors."""
        chosen = name or preset.optimizer
        if chosen not in self.optimizers:
            raise UserError(
                f"Workload {self.name} has no optimizer '{chosen}'.{nearest(chosen, list(self.optimizers))}"
            )
        rule = self.optimizers[chosen]
        if rule.decay:
            tensors = [each for each in self.network(preset).parameters if each.trainable and each.kind in rule.decay]
            rule = replace(rule, decay=tuple(each.name for each in tensors))
        own = preset.learning_rate is not None and chosen == preset.optimizer
        return replace(rule, learning_rate=preset.learning_rate) if own and preset.learning_rate else rule

    def network(self, preset: Preset) -> Network:
        """Return the network at the sizes of a preset; UserError: the sizes or network.py are wrong."""
        spec, where = self.folder / "spec.toml", f"presets.{preset.name}.sizes"
        try:
            network = described(self.folder, preset.sizes)
            shapes = {parameter.name: parameter.shape for parameter in network.parameters}
            shapes |= {each.name: each.shape for each in network.inputs}
        except KeyError as error:
            line = settings_files.line_of(spec, "", where)
            raise UserError(f"{spec}, line {line}: [{where}] lacks the key '{error.args[0]}'. Add it.") from None
        except Exception as error:  # network.py may be the user's code and can raise anything
            message = " ".join(str(error).split())
            raise UserError(
                f"{self.folder / 'network.py'} failed for [{where}]: {type(error).__name__}: {message}."
            ) from None
        for name, shape in shapes.items():
            if not all(isinstance(extent, int) and extent > 0 for extent in shape):
                line = settings_files.line_of(spec, "", where)
                raise UserError(
                    f"{spec}, line {line}: [{where}] gives '{name}' the shape {shape}; sizes must be whole numbers from 1."
                )
        return network

    def implementation(self, framework: str) -> Path:
        """Return the file with a framework's implementation, in this folder or in the framework's own; it may be absent."""
        known = frameworks.all_frameworks().get(framework)
        return networks.implementation_file(self.folder, self.name, framework, known.user_folder if known else "")

    def implemented_by(self, framework: str) -> bool:
        """Return whether a framework implements this workload."""
        return self.implementation(framework).is_file()

    def obstacle(self, framework: str, precision: str) -> str:
        """Return why a framework cannot compute this workload in a precision; empty if it can."""
        return self.unsupported.get(framework, "") or self.unsupported.get(f"{framework}/{precision}", "")

    def specification(self, preset: Preset) -> str:
        """Return the hash of network.py and the sizes, which together define the computation."""
        return specification(self.folder, preset.sizes)


def described(folder: Path, sizes: dict[str, Any]) -> Network:
    """Return the network of a workload folder at the given sizes; results are cached in this process."""
    return _described(folder, specification(folder, sizes), json.dumps(sizes))


@cache
def _described(folder: Path, specification: str, sizes: str) -> Network:  # noqa: ARG001 - part of the cache's key
    return networks.describe(folder, json.loads(sizes))


def specification(folder: Path, sizes: dict[str, Any]) -> str:
    """Return a hash of network.py and the sizes (16 hexadecimal digits)."""
    text = (folder / "network.py").read_bytes() + repr(sorted(sizes.items())).encode()
    return hashlib.sha256(text).hexdigest()[:16]


def files_hash(folder: Path) -> str:
    """Return a hash of a workload's source files (16 hexadecimal digits); that of no files if the folder is missing."""
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.glob("*") if path.suffix in (".py", ".toml")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def find(folders: Iterable[str | Path] = ()) -> dict[str, Workload]:
    """Return all workloads by name: those of steelyard, and those in the given folders, which take precedence."""
    found: dict[str, Workload] = {}
    for root in (WORKER / "workloads", *map(Path, folders)):
        if not root.is_dir():
            raise UserError(f"--workloads {root}: this is not a folder. Name a folder that contains NAME/spec.toml.")
        specs = sorted(root.glob("*/spec.toml")) + ([root / "spec.toml"] if (root / "spec.toml").is_file() else [])
        if not specs:
            raise UserError(f"--workloads {root}: no spec.toml was found in this folder or one level below.")
        found |= {workload.name: workload for workload in map(parse, specs)}
    return found


def parse(path: Path) -> Workload:
    """Read one spec.toml."""
    raw = settings_files.read(path)
    settings_files.check_keys(path, raw, "", REQUIRED, REQUIRED | {"unsupported"})
    for key in sorted(REQUIRED - {"optimizers", "presets"}):
        settings_files.check_type(path, key, raw[key], (str,), "a string")
    if raw["metric"] not in metrics.METRICS:
        known = nearest(raw["metric"], list(metrics.METRICS))
        line = settings_files.line_of(path, "metric")
        raise UserError(f"{path}, line {line}: there is no metric '{raw['metric']}'.{known}")
    for key in ("optimizers", "presets"):
        settings_files.check_type(path, key, raw[key], (dict,), "a table of tables")
        if not raw[key]:
            raise UserError(f"{path}, line {settings_files.line_of(path, key)}: [{key}] is empty. Add at least one.")
    settings_files.check_type(
        path, "unsupported", raw.get("unsupported", {}), (dict,), "a table of reasons by framework"
    )
    for name, reason in raw.get("unsupported", {}).items():
        settings_files.check_type(path, name, reason, (str,), "a reason", "unsupported")
    optimizers = {name: _optimizer(path, name, table) for name, table in raw["optimizers"].items()}
    presets = {name: _preset(path, name, table, optimizers) for name, table in raw["presets"].items()}
    plain = {field.name: raw[field.name] for field in fields(Workload) if field.name in raw}
    plain |= {"folder": path.parent, "presets": presets, "optimizers": optimizers}
    return Workload(**{"unsupported": {}, **plain})


def _optimizer(path: Path, name: str, table: Any) -> Optimizer:
    settings_files.check_type(path, name, table, (dict,), "a table", "optimizers")
    rule: Optimizer = settings_files.build(path, table, f"optimizers.{name}", Optimizer)
    for kind in rule.decay:
        if kind not in KINDS:
            line = settings_files.line_of(path, "decay", f"optimizers.{name}")
            raise UserError(
                f"{path}, line {line}: 'decay' lists kinds of tensors, not '{kind}'.{nearest(kind, list(KINDS))}"
            )
    return rule


def _preset(path: Path, name: str, table: Any, optimizers: dict[str, Optimizer]) -> Preset:
    where = f"presets.{name}"
    settings_files.check_type(path, name, table, (dict,), "a table", "presets")
    settings_files.check_keys(path, table, where, PRESET_REQUIRED, PRESET_ALLOWED)
    for key, (kinds, meaning) in PRESET_TYPES.items():
        if key in table:
            settings_files.check_type(path, key, table[key], kinds, meaning, where)
    if table["optimizer"] not in optimizers:
        line = settings_files.line_of(path, "optimizer", where)
        known = nearest(table["optimizer"], list(optimizers))
        raise UserError(f"{path}, line {line}: [{where}] names an unknown optimizer '{table['optimizer']}'.{known}")
    batch = table["sizes"].get("batch")
    if not isinstance(batch, int) or isinstance(batch, bool) or batch < 1:
        line = settings_files.line_of(path, "batch", f"{where}.sizes")
        raise UserError(f"{path}, line {line}: [{where}.sizes] needs 'batch', a whole number of at least 1.")
    data = table.get("data", {})
    if data and not isinstance(data.get("name"), str):
        line = settings_files.line_of(path, "name", f"{where}.data")
        raise UserError(f"{path}, line {line}: [{where}.data] needs 'name', the name of a data set.")
    return Preset(name, table["summary"], table["sizes"], table["optimizer"], table.get("learning_rate"), data)

"""Read workload folders: presets, optimizers, data sets, and which frameworks implement them."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from steelyard.catalog import describing_process, frameworks, schedules, update_rules, user_networks, workload_contract
from steelyard.catalog.describing_process import Failure
from steelyard.catalog.frameworks import WORKER
from steelyard.errors import UserError, named, nearest, notice
from steelyard.files import names, settings_files
from steelyard.statistics import metrics
from steelyard_worker import network as networks

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from steelyard_worker.case import Optimizer, RateSchedule
    from steelyard_worker.network import Network

BUILT_IN = WORKER / "workloads"
# Name of a preset's data that is drawn at random: as many training samples as `samples` says, and no test samples.
SYNTHETIC = "synthetic"
# The size with this name is the side of a network's square images, in pixels. The options of data follow it: see `ImageOptions`.
IMAGE = "image"
SIDES = ("resize", "crop", "pad_to")


@dataclass(frozen=True)
class Preset:
    """One set of sizes. `data`: the data set and how it is prepared; empty if there is only one synthetic batch.

    `learning_rate` and `schedule` replace those of the optimizer, where it is the preset's own.
    """

    name: str
    summary: str
    sizes: dict[str, Any]
    optimizer: str
    learning_rate: float | None = field(default=None, metadata={"range": update_rules.RATE})
    schedule: RateSchedule | None = None
    data: dict[str, Any] = field(default_factory=dict)

    @property
    def reads_data(self) -> bool:
        """Whether it has a data set that is read from files."""
        return bool(self.data.get("name", SYNTHETIC) != SYNTHETIC)

    def with_sizes(self, sizes: Mapping[str, Any]) -> Preset:
        """Return the preset with other sizes. Its data follows: options with the name of a size, and the sides of images."""
        data = {name: sizes.get(name, value) for name, value in self.data.items()}
        usual = self.sizes.get(IMAGE)
        wanted = sizes.get(IMAGE, usual)
        if self.reads_data and wanted != usual:
            sides = {name: side for name in SIDES if (side := data.get(name))} or {SIDES[0]: usual}
            data |= {name: round(side * wanted / usual) for name, side in sides.items()}
        return replace(self, sizes={**self.sizes, **sizes}, data=data)


@dataclass(frozen=True)
class Workload:
    """One folder: spec.toml, network.py, and one file per framework.

    `unsupported` gives reasons by framework, or by framework and precision or mode as in `mxnet/float64` and `tensorflow/fit`, or
    for batches in parts as in `mxnet/accumulate`.
    `contract`: the version of the contract of workloads that it was written for; 0: not stated.
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
    unsupported: dict[str, str] = field(default_factory=dict)
    contract: int = 0

    def preset(self, name: str) -> Preset:
        """Return a preset by name; UserError suggests the nearest."""
        return named(self.presets, name, f"Workload {self.name} has no preset '{name}'.")

    def optimizer(self, preset: Preset, name: str | None = None) -> Optimizer:
        """Return the update rule of a preset, or another by name; kinds and patterns are replaced by names of tensors."""
        chosen = name or preset.optimizer
        rule = named(self.optimizers, chosen, f"Workload {self.name} has no optimizer '{chosen}'.")
        if rule.decay or rule.groups:
            rule = update_rules.of_tensors(rule, self.network(preset), f"{self.name}:{preset.name}")
        if chosen != preset.optimizer:
            return rule
        rate, schedule = preset.learning_rate or rule.learning_rate, preset.schedule or rule.schedule
        return replace(rule, learning_rate=rate, schedule=schedule)

    def network(self, preset: Preset) -> Network:
        """Return the network at the sizes of a preset; UserError: the sizes or network.py are wrong."""
        spec, where = self.folder / "spec.toml", f"presets.{preset.name}.sizes"
        found = _described_once(self.folder, preset.sizes)
        if isinstance(found, Failure):
            if found.key:
                sentence = f"[{where}] lacks the key '{found.key}'. Add it."
                raise settings_files.wrong(spec, "", where, sentence)
            if found.shape:
                raise settings_files.wrong(spec, "", where, f"[{where}] gives {found.shape}")
            if found.refused:
                raise UserError(f"{self.name}:{preset.name} cannot have these sizes: {found.reason}.")
            raise _failed(self.folder, f"[{where}]", found, self.contract)
        return found

    def networks(self) -> dict[str, Network]:
        """Return the networks of all presets by their names; code of the user's own describes them in one process."""
        _describe_all(self.folder, [each.sizes for each in self.presets.values()])
        return {name: self.network(preset) for name, preset in self.presets.items()}

    def implemented_by(self, framework: str) -> bool:
        """Return whether a framework implements this workload, in this folder or in the framework's own."""
        known = frameworks.all_frameworks().get(framework)
        own = known.user_folder if known else ""
        return networks.implementation_file(self.folder, self.name, framework, own).is_file()

    def obstacle(self, framework: str, where: str) -> str:
        """Return why a framework cannot compute this workload in a precision, in a mode or in parts; empty if it can."""
        return self.unsupported.get(framework, "") or self.unsupported.get(f"{framework}/{where}", "")

    def specification(self, preset: Preset) -> str:
        """Return the hash of network.py and the sizes, which together define the computation."""
        return specification(self.folder, preset.sizes)


def described(folder: Path, sizes: dict[str, Any]) -> Network:
    """Return the network of a workload folder at the given sizes; results are cached in this process.

    UserError: network.py fails for these sizes, or makes empty tensors; a damaged record can cause that.
    """
    given = f"the sizes {json.dumps(sizes)}"
    found = _described_once(folder, sizes)
    if isinstance(found, Failure):
        if found.shape:
            raise UserError(f"{folder / 'network.py'}, with {given}, gives {found.shape}")
        if found.refused:
            raise UserError(f"{folder.name} cannot have {given}: {found.reason}.")
        raise _failed(folder, given, found)
    return found


def _failed(folder: Path, sizes: str, failure: Failure, contract: int = 0) -> UserError:
    hint = workload_contract.renamed(failure.reason, contract)
    return UserError(f"{folder / 'network.py'} failed for {sizes}: {failure.reason}.{hint}")


# What was described in this process, by folder, the hash of its files, and sizes.
_known: dict[tuple[Path, str, str], Network | Failure] = {}
# Threads that need the same network wait for one process that describes it.
_describing = Lock()


def _described_once(folder: Path, sizes: dict[str, Any]) -> Network | Failure:
    return _describe_all(folder, [sizes])[0]


def _describe_all(folder: Path, all_sizes: Sequence[dict[str, Any]]) -> list[Network | Failure]:
    """Return the networks at all these sizes, up to those at which a process of the user's code ended."""
    code = frameworks.files_hash(folder)
    keys = [(folder, code, json.dumps(sizes)) for sizes in all_sizes]
    with _describing:
        new = [(key, sizes) for key, sizes in zip(keys, all_sizes, strict=True) if key not in _known]
        if new:
            describe = _describe_here if _is_own_code(folder) else user_networks.describe
            found = describe(folder, [sizes for _, sizes in new])
            _known.update(zip((key for key, _ in new), found, strict=False))
        return [_known[key] for key in keys if key in _known]


def _is_own_code(folder: Path) -> bool:
    """Return whether the code of a workload is steelyard's own, in this installation: only that runs in this process."""
    return folder.resolve().parent == BUILT_IN


def _describe_here(folder: Path, all_sizes: Sequence[dict[str, Any]]) -> list[Network | Failure]:
    return [_describe(folder, sizes) for sizes in all_sizes]


def _describe(folder: Path, sizes: dict[str, Any]) -> Network | Failure:
    try:
        return describing_process.described(folder, json.loads(json.dumps(sizes)))
    except Exception as error:  # the sizes are the user's, and can make it raise anything
        return describing_process.failure(error, folder / describing_process.MODULE)


def specification(folder: Path, sizes: dict[str, Any]) -> str:
    """Return a hash of network.py and the sizes (16 hexadecimal digits)."""
    text = (folder / "network.py").read_bytes() + repr(sorted(sizes.items())).encode()
    return hashlib.sha256(text).hexdigest()[:16]


def find(folders: Iterable[str | Path] = (), asked: Iterable[str] = ()) -> dict[str, Workload]:
    """Return all workloads by name: those of steelyard, and those in the given folders.

    A workload whose spec.toml has a mistake is left out with a notice, if the folder has others. UserError: it is among those
    `asked` for (NAME or NAME:PRESET), or the folder has no other; two have one name.
    """
    wanted = {each.partition(":")[0] for each in asked}
    found: dict[str, Workload] = {}
    for root in (BUILT_IN, *map(Path, folders)):
        if not root.is_dir():
            raise UserError(f"--workloads {root}: this is not a folder. Name a folder that contains NAME/spec.toml.")
        specs = sorted(root.glob("*/spec.toml")) + ([root / "spec.toml"] if (root / "spec.toml").is_file() else [])
        if not specs:
            raise UserError(f"--workloads {root}: no spec.toml was found in this folder or one level below.")
        for workload in _readable(specs, wanted):
            other = found.setdefault(workload.name, workload)
            if other.folder.resolve() != workload.folder.resolve():
                sentence = names.flaw(workload.name, "workload", taken=True)
                raise settings_files.wrong(workload.folder / "spec.toml", "name", "", sentence)
    return found


def _readable(specs: list[Path], wanted: set[str]) -> list[Workload]:
    found: list[Workload] = []
    wrong: dict[Path, UserError] = {}
    for path in specs:
        try:
            found.append(parse(path))
        except UserError as error:
            wrong[path] = error
    for path, mistake in wrong.items():
        if not found or path.parent.name in wanted:
            raise mistake
        _leave_out(path, str(mistake))
    return found


@cache
def _leave_out(path: Path, reason: str) -> None:
    """Say once that a workload is left out."""
    notice(f"{reason} The workload in {path.parent} is left out until then.")


def is_built_in(folder: str | Path) -> bool:
    """Return whether a workload comes with steelyard: with this installation, or with one elsewhere or on another machine."""
    return Path(folder).parts[-3:-1] == BUILT_IN.parts[-2:]


def here(folder: str) -> str:
    """Return where a recorded workload is now: one that comes with steelyard is in this installation."""
    return str(BUILT_IN / Path(folder).name) if is_built_in(folder) else folder


def parse(path: Path) -> Workload:
    """Read one spec.toml."""
    found: Workload = settings_files.build(path, settings_files.read(path), "", Workload, folder=path.parent)
    if wrong := names.flaw(found.name, "workload"):
        raise settings_files.wrong(path, "name", "", wrong)
    workload_contract.check(path, found.contract)
    if found.metric not in metrics.METRICS:
        known = nearest(found.metric, list(metrics.METRICS))
        raise settings_files.wrong(path, "metric", "", f"there is no metric '{found.metric}'.{known}")
    for key in ("optimizers", "presets"):
        if not getattr(found, key):
            raise settings_files.wrong(path, key, "", f"[{key}] is empty. Add at least one.")
    optimizers = {
        name: update_rules.read(path, f"optimizers.{name}", table) for name, table in found.optimizers.items()
    }
    presets = {name: _preset(path, name, table, list(optimizers)) for name, table in found.presets.items()}
    return replace(found, optimizers=optimizers, presets=presets)


def _preset(path: Path, name: str, table: Any, optimizers: list[str]) -> Preset:
    where = f"presets.{name}"
    if wrong := names.flaw(name, "preset"):
        raise settings_files.wrong(path, "", where, wrong)
    preset: Preset = settings_files.build(path, table, where, Preset, name=name)
    if preset.optimizer not in optimizers:
        sentence = f"[{where}] names an unknown optimizer '{preset.optimizer}'.{nearest(preset.optimizer, optimizers)}"
        raise settings_files.wrong(path, "optimizer", where, sentence)
    if not _is_count(preset.sizes.get("batch")):
        sentence = f"[{where}.sizes] needs 'batch', a whole number of at least 1."
        raise settings_files.wrong(path, "batch", f"{where}.sizes", sentence)
    if preset.data and not isinstance(preset.data.get("name"), str):
        sentence = f"[{where}.data] needs 'name', the name of a data set."
        raise settings_files.wrong(path, "name", f"{where}.data", sentence)
    if preset.data.get("name") == SYNTHETIC and not _is_count(preset.data.get("samples")):
        sentence = f"[{where}.data] is synthetic and needs 'samples', the number of training samples, at least 1."
        raise settings_files.wrong(path, "samples", f"{where}.data", sentence)
    if "schedule" in table:
        preset = replace(preset, schedule=schedules.read(path, f"{where}.schedule", table["schedule"]))
    return preset


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1

"""Facts about each framework, read from its `framework.toml` without importing the framework.

Frameworks come from the worker's own folder, and from the folders that the user names with `--frameworks DIR`.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import steelyard_worker
from steelyard.catalog import strategies
from steelyard.catalog.knobs import Knob, as_type_of, text_of, words
from steelyard.catalog.knobs import read as read_knob
from steelyard.errors import UserError, named, nearest
from steelyard.files import settings_files
from steelyard.files.ranges import Range
from steelyard_worker.strategy import SINGLE, SPREAD_ALONE, name_of
from steelyard_worker.strategy_kinds import ALONE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.catalog.strategies import Without
    from steelyard_worker.case import Case, Optimizer, Settings
    from steelyard_worker.strategy import Spread

WORKER = Path(steelyard_worker.__file__).resolve().parent
BUILT_IN = WORKER / "frameworks"
FILE = "framework.toml"
# Which operations belong to which class; a framework without this file cannot be explained.
OPERATIONS = "operations.toml"
# The same for names of operations in a graph that no profile has; these rules come first.
GRAPHS = "graphs.toml"

# Of a mode that `start_seconds` does not have.
START_S = 4.0
# Measured with VGG16 and GNMT: 12 to 18, the most by VGG16 in PyTorch and by GNMT in TensorFlow.
CERTIFICATE_COPIES = 18

DECLARED: dict[str, tuple[str, ...]] = {"form": ("canonical", "epsilon-hat"), "correction": ("float64", "float32")}
# With a learning rate that changes, the form of a rule with momentum may be another one.
SCHEDULED: dict[str, tuple[str, ...]] = {"scheduled_form": ("rate-in-momentum",)}
_user_folders: list[Path] = []


@dataclass(frozen=True)
class Exporter:
    """What exports networks for a runtime: an environment, `framework[@version]`, and knobs that are not at their defaults."""

    environment: str
    knobs: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Framework:
    """One framework as its `framework.toml` describes it; `folder` holds that file and the adapter.

    The texts in `devices` and `precisions` say what is untested; `unsupported` says why something cannot be done: a device, a
    precision, or "MODE with WORD" (see `words`).
    `start_seconds`: about how long a process of a mode takes to its second step on two cores, for estimates.
    `exporters`: for a runtime of networks that other frameworks export, what exports them, by mode; otherwise empty.
    `reference_knobs`: those of a reference that are not at their defaults.
    `reference_variables`: environment variables of a process that computes a reference; "{folder}" stands for a folder that all
    references of a run share. `large_reference_variables` replace those of the same name where one step is large.
    `compiled_code`: of a mode whose compiler keeps code on the disk, the environment variable that names its folder.
    `strategies`: how it spreads a training over devices or processes; `without`: why it cannot in a way of some kind.
    `certificate_copies`: how many copies of all tensors a process of a training's certificate holds at once, beside activations:
    those that it trains with, those of every step until they are saved, and those that it compares with another run's.
    `checkpoints`: ending of a file of weights that its adapter reads -> how it is written; `unread_checkpoints`: ending of one
    that is not read -> why. `file_signs`: what a file of the framework is called -> a regular expression for its first 512 bytes
    and its last 8, as Latin-1; `unread_signs`: the same of files that are not read.
    `profile_variables`: those of a process that is profiled. `untimed_variables`: those of one in which nothing is timed, beside
    which others run. `maintained_source`: the page that says whether it is maintained.
    """

    name: str
    folder: Path
    title: str
    module: str = field(metadata={"key": "import"})
    distribution: str
    default_mode: str
    modes: dict[str, str]
    devices: dict[str, str]
    precisions: dict[str, str]
    knobs: dict[str, Knob] = field(default_factory=dict)
    optimizers: dict[str, dict[str, str]] = field(default_factory=dict)
    unsupported: dict[str, str] = field(default_factory=dict)
    start_seconds: dict[str, float] = field(default_factory=dict, metadata={"range": Range(above=0)})
    exporters: dict[str, Exporter] = field(default_factory=dict)
    # Rank as a float64 reference, 1 is preferred; 0: never a reference.
    reference: int = field(default=0, metadata={"range": Range(0)})
    reference_mode: str = ""  # mode of a reference; empty: the default mode
    reference_knobs: dict[str, Any] = field(default_factory=dict)
    reference_variables: dict[str, str] = field(default_factory=dict)
    large_reference_variables: dict[str, str] = field(default_factory=dict)
    profile_variables: dict[str, str] = field(default_factory=dict)
    untimed_variables: dict[str, str] = field(default_factory=dict)
    compiled_code: dict[str, str] = field(default_factory=dict)
    checkpoints: dict[str, str] = field(default_factory=dict)
    unread_checkpoints: dict[str, str] = field(default_factory=dict)
    file_signs: dict[str, str] = field(default_factory=dict)
    unread_signs: dict[str, str] = field(default_factory=dict)
    certificate_copies: int = field(default=CERTIFICATE_COPIES, metadata={"range": Range(1)})
    strategies: dict[str, Spread] = field(default_factory=dict)
    without: dict[str, Without] = field(default_factory=dict)
    variables: tuple[str, ...] = ()
    maintained: bool = True
    maintained_source: str = ""
    scripted: bool = False
    note: str = ""

    @property
    def user_folder(self) -> str:
        """The folder of a framework of the user's own; empty for a built-in framework."""
        return "" if self.folder.parent == BUILT_IN else str(self.folder)

    @property
    def exports_of(self) -> set[str]:
        """The frameworks whose networks this runtime runs; empty for a framework with networks of its own."""
        return {each.environment.partition("@")[0] for each in self.exporters.values()}

    def start_s(self, mode: str) -> float:
        """Return about how many seconds a process of a mode takes to its second step."""
        return self.start_seconds.get(mode, START_S)

    def mode(self, name: str) -> str:
        """Return the mode; UserError: the framework does not have it."""
        named(self.modes, name, f"{self.title} has no mode '{name}'.")
        return name

    def knob(self, name: str, text: str) -> Any:
        """Return a knob's value from its text, with the type of its default. UserError: unknown knob or value."""
        knob = named(self.knobs, name, f"{self.title} has no knob '{name}'.")
        value = as_type_of(knob.default, name, text)
        if knob.values and value not in knob.values and text not in knob.unsupported:
            known = ", ".join(map(str, knob.values))
            raise UserError(f"{self.title}: knob {name} must be one of {known}, not '{text}'.")
        return value

    def obstacle(self, settings: Settings, rule: Optimizer) -> str:
        """Return why a mode or the value of a knob is impossible with these settings and this optimizer; empty if none is."""
        for word in words(rule, settings):
            if reason := self.unsupported.get(f"{settings.mode} with {word}", ""):
                return f"{self.title} cannot run in mode {settings.mode} here: {reason}."
        for name, knob in self.knobs.items():
            value = settings.knobs.get(name, knob.default)
            if reason := knob.reason(knob.unsupported, value, settings, rule):
                return f"{self.title} cannot run with {name} = {text_of(value)}: {reason}."
        return ""

    def otherwise(self, settings: Settings, rule: Optimizer) -> tuple[str, str]:
        """Return what is computed on purpose instead of the training as described: (label, reason); both empty if nothing is."""
        for name, knob in self.knobs.items():
            value = settings.knobs.get(name, knob.default)
            for label in ("another_algorithm", "wrong_on_purpose"):
                if reason := knob.reason(getattr(knob, label), value, settings, rule):
                    return label.replace("_", " "), reason
        return "", ""

    def has_float64(self, settings: Settings, rule: Optimizer, kinds: set[str]) -> bool:
        """Say whether the framework computes a network with tensors of these kinds in the same way in float64."""
        return "float64" in self.precisions and not any(
            knob.matters(kinds)
            and knob.reason(knob.float32_only, settings.knobs.get(name, knob.default), settings, rule)
            for name, knob in self.knobs.items()
        )

    def apart(self, settings: Settings, rule: Optimizer) -> dict[str, str]:
        """Return the knobs whose values set a case apart from cases without them: knob -> why."""
        found = {
            name: knob.reason(knob.apart, settings.knobs.get(name, knob.default), settings, rule)
            for name, knob in self.knobs.items()
        }
        return {name: reason for name, reason in found.items() if reason}

    def complete(self, settings: Settings, strategy: str = SINGLE) -> Settings:
        """Return the settings with every knob of the framework: one that was not set has its default, or the strategy's value.

        A later knob that has its default is left out.
        """
        defaults = {name: knob.default for name, knob in self.knobs.items()}
        spread = self.spread(strategy)
        found = defaults | settings.knobs | (spread.knobs if spread else {})
        unused = {name for name, knob in self.knobs.items() if knob.later and found[name] == knob.default}
        return replace(settings, knobs={name: value for name, value in found.items() if name not in unused})

    def spread(self, strategy: str) -> Spread | None:
        """Return what the strategy of a case, such as `ddp:2`, does; None for a single process.

        UserError: the framework has no such strategy.
        """
        name = name_of(strategy)
        if name == SINGLE:
            return None
        if name == ALONE:
            return SPREAD_ALONE
        return named(self.strategies, name, f"{self.title} has no strategy '{name}'.")


def declared_form(known: Framework, rule: Optimizer) -> dict[str, str]:
    """Return how a framework's own optimizer differs from the canonical formula; empty for the reference implementation."""
    if rule.implementation != "native":
        return {}
    declared = dict(known.optimizers.get(rule.name, {}))
    scheduled = declared.pop("scheduled_form", "")
    return declared | ({"form": scheduled} if scheduled and rule.schedule.changes and rule.momentum else {})


def as_certified(case: Case) -> Case:
    """Return the case with those knobs at their defaults with which no case can be certified, such as dropout.

    Its certificate is that of the case.
    """
    known = framework(case.framework)
    knobs = {name: known.knobs[name].default for name in known.apart(case.settings, case.optimizer)}
    return replace(case, settings=replace(case.settings, knobs=case.settings.knobs | knobs)) if knobs else case


def use(folders: Sequence[str | Path]) -> None:
    """Set the folders with frameworks of the user's own for this process; they replace those of an earlier call.

    Raises UserError for a folder without frameworks, a file that is wrong, and a name that is taken.
    """
    wanted = [Path(folder) for folder in folders]
    _read_all(tuple(wanted))
    _user_folders[:] = wanted


def all_frameworks() -> dict[str, Framework]:
    """Return every framework by name: the built-in ones, then those of the user's folders."""
    return _read_all(tuple(_user_folders))


def listed() -> dict[str, Framework]:
    """Return the real frameworks, and the runtimes of networks that others export."""
    return {name: found for name, found in all_frameworks().items() if not found.scripted}


def contenders() -> dict[str, Framework]:
    """Return the real frameworks that have networks of their own: those that `*` stands for."""
    return {name: found for name, found in listed().items() if not found.exporters}


def framework(name: str) -> Framework:
    """Return a framework by name; UserError suggests the nearest."""
    known = all_frameworks()
    if name not in known:
        raise UserError(f"There is no framework '{name}'.{nearest(name, list(listed()))}")
    return known[name]


def exporter(case: Case) -> Exporter | None:
    """Return what exports a case's network; None: it is implemented, not exported."""
    return framework(case.framework).exporters.get(case.settings.mode)


def exporter_of(case: Case) -> str:
    """Return the environment that exports a case's network, `framework[@version]`; empty: it is implemented, not exported."""
    found = exporter(case)
    return found.environment if found else ""


def files_hash(folder: Path) -> str:
    """Return a hash of the source files of a workload's or a framework's folder (16 hexadecimal digits).

    Subfolders are included. A folder that is missing has the hash of no files.
    """
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.suffix in (".py", ".toml"):
            digest.update(str(path.relative_to(folder)).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


@cache
def _read_all(user_folders: tuple[Path, ...]) -> dict[str, Framework]:
    found = {path.parent.name: _read(path.parent) for path in sorted(BUILT_IN.glob(f"*/{FILE}"))}
    for root in user_folders:
        for folder in _framework_folders(root):
            _check_name(folder, found)
            found[folder.name] = _read(folder)
    return found


def _framework_folders(root: Path) -> list[Path]:
    """Return the folders with a framework: `root` itself, or those one level below."""
    if not root.is_dir():
        built_in = (BUILT_IN / root.name / FILE).is_file()
        hint = f"Did you mean --framework {root.name}?" if built_in else f"Name a folder that holds NAME/{FILE}."
        raise UserError(f"--frameworks {root} is not a folder. {hint}")
    found = [path.parent for path in sorted((*root.glob(FILE), *root.glob(f"*/{FILE}")))]
    if not found:
        raise UserError(f"--frameworks {root} holds no framework: there is no {FILE} in it or one level below.")
    return found


def _check_name(folder: Path, taken: dict[str, Framework]) -> None:
    """The name becomes the name of a Python package in the worker, and a part of options, so it must fit both and be free."""
    if not re.fullmatch(r"[a-z][a-z0-9_-]*", folder.name):
        raise UserError(
            f"{folder}: '{folder.name}' cannot name a framework. Use lower-case letters, digits, '_' and '-', a letter first."
        )
    if folder.name in taken:
        kind = "in another folder" if taken[folder.name].user_folder else "built in"
        raise UserError(f"{folder}: a framework named '{folder.name}' is {kind} already. Rename the folder.")


def _read(folder: Path) -> Framework:
    path = folder / FILE
    raw = settings_files.read(path)
    found: Framework = settings_files.build(path, raw, "", Framework, name=folder.name, folder=folder)
    settings_files.check_one_of(path, "default_mode", found.default_mode, found.modes)
    if found.reference_mode:
        settings_files.check_one_of(path, "reference_mode", found.reference_mode, found.modes)
    for key in ("exporters", "start_seconds", "compiled_code"):
        for mode in getattr(found, key):
            settings_files.check_one_of(path, mode, mode, found.modes, key)
    if found.reference and "float64" not in found.precisions:
        raise settings_files.wrong(
            path, "reference", "", "a 'reference' needs float64, but [precisions] does not list it."
        )
    for name, table in found.optimizers.items():
        _check_optimizer(path, name, table)
    for key in ("file_signs", "unread_signs"):
        for name, sign in getattr(found, key).items():
            _check_sign(path, key, name, sign)
    exporters = {
        mode: settings_files.build(path, table, f"exporters.{mode}", Exporter)
        for mode, table in found.exporters.items()
    }
    knobs = {name: read_knob(path, f"knobs.{name}", table) for name, table in found.knobs.items()}
    for name, value in found.reference_knobs.items():
        settings_files.check_one_of(path, name, name, knobs, "reference_knobs")
        settings_files.check_one_of(path, name, value, knobs[name].values or (value,), "reference_knobs")
    spreads = strategies.read_spreads(path, found.strategies, found.modes)
    without = strategies.read_without(path, found.without)
    return replace(found, knobs=knobs, exporters=exporters, strategies=spreads, without=without)


def _check_sign(path: Path, key: str, name: str, sign: str) -> None:
    try:
        re.compile(sign)
    except re.error as error:
        raise settings_files.wrong(path, name, key, f"'{sign}' is no regular expression ({error}).") from None


def _check_optimizer(path: Path, name: str, table: Any) -> None:
    where = f"optimizers.{name}"
    settings_files.check_type(path, name, table, (dict,), "a table", "optimizers")
    known = DECLARED | SCHEDULED
    settings_files.check_keys(path, table, where, set(DECLARED), set(known))
    for key, value in table.items():
        settings_files.check_one_of(path, key, value, known[key], where)

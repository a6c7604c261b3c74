"""The settings of a document and of a run, and the differences that rule out a judgement. Pure functions."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

KINDS = {"cpu": "CPU", "cuda": "NVIDIA GPU", "ascend": "Ascend NPU"}
"""Kind of device, as in the settings of a case -> its name in sentences."""

TF32 = "TensorFloat-32"
"""The number format of products on NVIDIA GPUs since 2020 that round float32 to 10 bits of mantissa (the knob `tf32`)."""

RANDOM = "random data"
"""The name of the data of random batches."""

ALL, EACH = "all devices", "each device"
"""Whether a document's batch is that of one device or of all devices together."""

NOT_KEPT = "the record is of an older version, which did not keep the document's settings"
NOT_THE_DOCUMENTS = "a network that the document did not measure"
ANOTHER_DEVICE = "another kind of device"
# These settings change scores, but not times.
OF_SCORES = ("optimizer", "learning_rate", "momentum", "schedule", "epochs")
WORDS = {"learning_rate": "learning rate"}
ON, OFF = "on", "off"
"""Whether a network was trained with dropout, as the knob of that name has it."""
DROPOUT = {ON: "dropout", OFF: "no dropout"}


ASKED = {
    "devices": "device",
    "batches": "batch",
    "precision": "precision",
    "data": "data",
    "learning_rate": "learning rate",
    "epochs": "epochs",
    "versions": "versions",
}
"""The settings that are needed to repeat a measurement -> their names in sentences."""


@dataclass(frozen=True)
class Conditions:
    """The settings of measurements. An empty field is not stated or unknown.

    cells: the networks, as workload:preset; empty: any. devices: kinds of devices, as cases name them. device_names and versions:
    of the devices and the software, in words. batches: samples per step; several where a statement is about all of them.
    batch_of: `EACH` or `ALL` where a batch is said to be of each of several devices, or of all; empty: not stated.
    data: the data set, or `RANDOM`. sizes: of the network and its input, such as the length of sequences, by name; a list allows
    each of its values. optimizer, learning_rate (of the first step), momentum, schedule ("constant" or what it does), epochs: of
    trainings. dropout: `ON` or `OFF`.
    assumed: names of fields, and of sizes, that the document does not state and that are assumed.
    """

    cells: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()
    device_names: str = ""
    versions: str = ""
    precision: str = ""
    batches: tuple[int, ...] = ()
    batch_of: str = ""
    data: str = ""
    sizes: dict[str, Any] = field(default_factory=dict)
    optimizer: str = ""
    learning_rate: float | None = None
    momentum: float | None = None
    schedule: str = ""
    epochs: int = 0
    dropout: str = ""
    assumed: tuple[str, ...] = ()

    def over(self, below: Conditions) -> Conditions:
        """Return these conditions, with empty fields filled from `below`."""
        names = {each.name for each in fields(Conditions)} - {"sizes", "assumed"}
        own = {name for name in names if getattr(self, name) not in ((), "", 0, None)}
        values = {name: getattr(self if name in own else below, name) for name in names}
        kept = [name for name in below.assumed if name not in own and name not in self.sizes]
        sizes = {**below.sizes, **self.sizes}
        return Conditions(**values, sizes=sizes, assumed=tuple(dict.fromkeys((*kept, *self.assumed))))

    @property
    def not_stated(self) -> list[str]:
        """The names of the empty settings."""
        return [word for name, word in ASKED.items() if getattr(self, name) in ((), "", 0, None)]

    def parts(self, assumed: bool = False) -> list[str]:
        """Return the settings that are stated, or those that are assumed, each in a few words, such as `batch 64`."""
        known = {
            "device_names": self.device_names or _kinds(self),
            "batches": self._batch,
            "precision": self.precision,
            "data": self.data,
            **{name: f"{name} {_numbers(_list(value))}" for name, value in self.sizes.items()},
            "optimizer": self.optimizer,
            "learning_rate": _named("learning rate", self.learning_rate),
            "momentum": _named("momentum", self.momentum),
            "schedule": f"schedule {self.schedule}" if self.schedule else "",
            "epochs": f"{self.epochs} epochs" if self.epochs else "",
            "dropout": DROPOUT.get(self.dropout, ""),
            "versions": self.versions,
        }
        return [text for name, text in known.items() if text and (name in self.assumed) == assumed]

    @property
    def _batch(self) -> str:
        of = f" of {self.batch_of}" if self.batch_of else ""
        return f"batch {_numbers(self.batches)}{of}" if self.batches else ""

    @property
    def text(self) -> str:
        """All settings in one line: stated, assumed, and not stated."""
        parts = [("", self.parts()), ("assumed: ", self.parts(assumed=True)), ("not stated: ", self.not_stated)]
        return "; ".join(f"{head}{', '.join(found)}" for head, found in parts if found)


def common(several: Sequence[Conditions]) -> Conditions:
    """Return the settings that several conditions share; fields that differ are empty."""
    first = several[0]
    alike = {
        each.name: getattr(first, each.name)
        for each in fields(Conditions)
        if all(getattr(other, each.name) == getattr(first, each.name) for other in several)
    }
    return Conditions(**alike)


def differences(
    said: Conditions | None, here: Conditions, parts: int = 1, usual: dict[str, Any] | None = None, scores: bool = False
) -> tuple[str, ...]:
    """Return the differences between the settings of a document and of a measurement; empty if a judgement is allowed.

    `said`: None where the record does not have them. `parts`: the devices or ranks of what is compared. `usual`: the published
    preset's values of the sizes that are others here. `scores`: the scores of trainings are compared, so that their settings
    count, too. A setting that the document does not state is no difference.
    """
    if said is None:
        return (NOT_KEPT,)
    found = [_device(said, here), *_network(said, here, usual or {}), _batch(said, here, parts)]
    found += [_plain("precision", said, here), _data(said, here), _dropout(said, here)]
    found += [_plain(name, said, here) for name in OF_SCORES] if scores else []
    return tuple(filter(None, found))


def allowed_batches(said: Conditions, parts: int) -> tuple[int, ...]:
    """Return the batches, over all parts, that equal the document's: two if the document does not say which batch it means."""
    of_each = tuple(batch * parts for batch in said.batches)
    if said.batch_of == EACH:
        return of_each
    return said.batches if said.batch_of == ALL else tuple(dict.fromkeys((*said.batches, *of_each)))


def _device(said: Conditions, here: Conditions) -> str:
    if not said.devices or set(here.devices) <= set(said.devices):
        return ""
    return f"{ANOTHER_DEVICE} ({_kinds(here)} instead of {_kinds(said)})"


def _kinds(found: Conditions) -> str:
    return " or ".join(KINDS.get(each, each) for each in found.devices)


def _network(said: Conditions, here: Conditions, usual: dict[str, Any]) -> list[str]:
    """Return that another network was measured, or the sizes that differ. Sizes of different networks are not compared."""
    if said.cells and not set(here.cells) & set(said.cells):
        return [f"another size of the network ({', '.join(here.cells)} instead of {' or '.join(said.cells)})"]
    wanted = {name: [value] for name, value in usual.items() if name != "batch"}
    wanted |= {name: _list(value) for name, value in said.sizes.items()}
    return [
        f"{name} {_text(here.sizes[name])} instead of {_numbers(allowed)}{_assumed(name, said)}"
        for name, allowed in wanted.items()
        if name in here.sizes and here.sizes[name] not in allowed
    ]


def _batch(said: Conditions, here: Conditions, parts: int) -> str:
    allowed = allowed_batches(said, parts)
    if not allowed or set(here.batches) <= set(allowed):
        return ""
    return f"batch {_numbers(here.batches)} instead of {_numbers(allowed)}{_assumed('batches', said)}"


def _data(said: Conditions, here: Conditions) -> str:
    if not said.data or here.data == said.data:
        return ""
    return RANDOM if here.data == RANDOM else f"{here.data} instead of {said.data}{_assumed('data', said)}"


def _dropout(said: Conditions, here: Conditions) -> str:
    """Return that one was with dropout and the other without; a record that does not say so was without."""
    measured = here.dropout or OFF
    if said.dropout in ("", measured):
        return ""
    return f"{DROPOUT[measured]} instead of {DROPOUT[said.dropout]}{_assumed('dropout', said)}"


def _plain(name: str, said: Conditions, here: Conditions) -> str:
    wanted, found = getattr(said, name), getattr(here, name)
    if wanted in ("", 0, None) or wanted == found or (name == "momentum" and here.optimizer != "sgd"):
        return ""
    shown = _text(found) if found not in ("", 0, None) else "none"
    return f"{WORDS.get(name, name)} {shown} instead of {_text(wanted)}{_assumed(name, said)}"


def _list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _named(word: str, value: float | None) -> str:
    return f"{word} {value:g}" if value is not None else ""


def _assumed(name: str, said: Conditions) -> str:
    return " (assumed)" if name in said.assumed else ""


def _numbers(found: Sequence[Any]) -> str:
    *most, last = map(_text, found or ["nothing"])
    return f"{', '.join(most)} or {last}" if most else last


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value).lower() if isinstance(value, bool) else str(value)

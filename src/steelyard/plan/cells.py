"""A cell: one workload x preset x environment x settings x strategy, and what it is called."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from steelyard.catalog import frameworks

if TYPE_CHECKING:
    from steelyard.catalog.frameworks import Framework
    from steelyard_worker.protocol import Optimizer, Settings


@dataclass(frozen=True)
class Cell:
    """What is measured under one name. `environment` is a name such as `jax` or `tensorflow@2.20.0`."""

    workload: str
    preset: str
    environment: str
    settings: Settings
    optimizer: Optimizer
    strategy: str = "single"

    @property
    def group(self) -> str:
        """Cells of one group are compared with each other."""
        return f"{self.workload}:{self.preset}"

    @property
    def framework(self) -> str:
        """The framework's name, without a version."""
        return self.environment.partition("@")[0]

    @property
    def arm(self) -> str:
        """What tells this cell from the others of its group."""
        knobs = [f"{name}={value}" for name, value in sorted(self.settings.knobs.items())]
        strategy = [] if self.strategy == "single" else [self.strategy]
        return ",".join([f"{self.environment}/{self.settings.mode}", *knobs, *strategy])

    @property
    def key(self) -> str:
        """Unique in a run."""
        return f"{self.group}/{self.arm}"

    @property
    def title(self) -> str:
        """What a person reads: the framework's title, then whatever is not its default."""
        known = frameworks.framework(self.framework)
        version = self.environment.partition("@")[2]
        parts = [known.title + (f" {version}" if version else "")]
        if self.settings.mode != known.default_mode:
            parts.append(self.settings.mode)
        parts += [f"{name} {value}" for name, value in sorted(self.settings.knobs.items())]
        return ", ".join(parts)

    @property
    def slug(self) -> str:
        """The key as a file name."""
        return "".join(letter if letter.isalnum() or letter in ".-=@" else "_" for letter in self.key)


def declared_form(known: Framework, rule: Optimizer) -> dict[str, Any]:
    """Return what a framework's own optimizer is known to do differently; the reference implementation is canonical."""
    return dict(known.optimizers.get(rule.name, {})) if rule.implementation == "native" else {}

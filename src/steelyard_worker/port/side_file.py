"""A side's Python file: which functions it has, and calling them with errors that name the line."""

from __future__ import annotations

import importlib.util
import sys
from typing import TYPE_CHECKING, Any

from steelyard_worker.port.errors import SideError, sentence

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import ModuleType

MODEL = "model"
OPTIONAL = ("inputs", "outputs", "loss", "optimizer", "step", "batches")


class SideFile:
    """The functions of one side."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._module = self._load()
        if not callable(getattr(self._module, MODEL, None)):
            message = (
                f"{path.name} has no function model(), which returns your model with its checkpoint loaded. Add it."
            )
            raise SideError(message)

    def has(self, name: str) -> bool:
        """Return whether the file defines an optional function."""
        return callable(getattr(self._module, name, None))

    def call(self, name: str, *arguments: Any) -> Any:
        """Call a function of the file. SideError: it raised something."""
        try:
            return getattr(self._module, name)(*arguments)
        except SideError:
            raise
        except BaseException as error:
            raise SideError(sentence(f"{name}() of {self.path.name}", error, self.path)) from error

    def iterated(self, name: str) -> Iterator[Any]:
        """Yield what a function of the file yields, or what the object that it returns does. SideError: it raised something."""
        try:
            yield from self.call(name)
        except SideError:
            raise
        except Exception as error:
            raise SideError(sentence(f"{name}() of {self.path.name}", error, self.path)) from error

    def _load(self) -> ModuleType:
        sys.path.insert(0, str(self.path.parent))  # the file may import what lies beside it
        spec = importlib.util.spec_from_file_location("steelyard_port_side", str(self.path))
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        try:
            spec.loader.exec_module(module)
        except BaseException as error:
            raise SideError(sentence(self.path.name, error, self.path)) from error
        return module

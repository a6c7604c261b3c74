"""steelyard compares the speed of deep-learning frameworks on one machine.

The names below are the library; `docs/api.md` shows them in use. They are imported when they are first used, so that
`import steelyard` takes no time.
"""

from __future__ import annotations

import importlib

from steelyard.version import VERSION

TYPE_CHECKING = (
    False  # type checkers take it for true; importing `typing` would take as long as starting the interpreter
)
if TYPE_CHECKING:
    from typing import Any

    from steelyard.library.certifying import Certificates, certify
    from steelyard.library.changes import compare
    from steelyard.library.comparisons import Comparison, Contender, Pair, Process
    from steelyard.library.porting import PortCheck, port
    from steelyard.library.runs import Run, load
    from steelyard.library.starting import run
    from steelyard.library.tables import Table

__version__ = VERSION
__all__ = [
    "Certificates",
    "Comparison",
    "Contender",
    "Pair",
    "PortCheck",
    "Process",
    "Run",
    "Table",
    "certify",
    "compare",
    "load",
    "port",
    "run",
]
_ROOMS = {
    "Certificates": "certifying",
    "Comparison": "comparisons",
    "Contender": "comparisons",
    "Pair": "comparisons",
    "PortCheck": "porting",
    "Process": "comparisons",
    "Run": "runs",
    "Table": "tables",
    "certify": "certifying",
    "compare": "changes",
    "load": "runs",
    "port": "porting",
    "run": "starting",
}


def __getattr__(name: str) -> Any:
    """Import a name of the library."""
    if name not in _ROOMS:
        raise AttributeError(f"module 'steelyard' has no attribute '{name}'")
    return getattr(importlib.import_module(f"steelyard.library.{_ROOMS[name]}"), name)


def __dir__() -> list[str]:
    """Return the names of the library too, although they are not imported yet."""
    return sorted({*globals(), *__all__})

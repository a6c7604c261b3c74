"""Settings that an implementation must leave as they are: read before the network is built, after that, and at the end.

Libraries read some of them only when they compute, and some choose by the size of a batch whether they use them. So the settings
at the start do not show how a network was computed.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from steelyard_worker import variables
from steelyard_worker.protocol import Refusal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from steelyard_worker.frameworks.base import Adapter
    from steelyard_worker.protocol import EventWriter

BUILT, END = "after the network was built", "at the end"
NOT_SET = "not set"


class KeptSettings:
    """Compares the settings of this process with those at the creation of this object.

    `workload`: whose implementation runs; empty: nothing is refused. An adapter without `arithmetic` has environment variables
    only.
    """

    def __init__(self, adapter: Adapter, events: EventWriter, workload: str) -> None:
        self._adapter, self._events, self._workload = adapter, events, workload
        self._recorded: set[str] = set()
        self.arithmetic = arithmetic(adapter)
        self._variables = variables.precision(os.environ)

    def check(self, when: str) -> None:
        """Refuse changed settings, and record once for each `when` that they were checked."""
        found = arithmetic(self._adapter)
        changed = difference(self.arithmetic, found) or difference(
            self._variables, variables.precision(os.environ), "The environment variable "
        )
        if changed and self._workload:
            who = f"the implementation of {self._workload} changed it"
            raise Refusal("setting", f"{changed} {when}: {who}. Settings belong to the case, so remove that from it.")
        if when not in self._recorded:
            self._recorded.add(when)
            self._events.write("settings-kept", when=when, arithmetic=found)


def arithmetic(adapter: Adapter) -> dict[str, Any]:
    """Return what an adapter says about precision and threads; empty where it says nothing."""
    return adapter.arithmetic() if hasattr(adapter, "arithmetic") else {}


def difference(before: Mapping[str, Any], now: Mapping[str, Any], kind: str = "") -> str:
    """Return the beginning of a sentence about the first value that changed; empty if none did."""
    for name in sorted(before.keys() | now.keys()):
        was, became = before.get(name, NOT_SET), now.get(name, NOT_SET)
        if was != became:
            return f"{kind}{name} was {_shown(was)} and is {_shown(became)}"
    return ""


def _shown(value: Any) -> str:
    return NOT_SET if value is NOT_SET else repr(value)

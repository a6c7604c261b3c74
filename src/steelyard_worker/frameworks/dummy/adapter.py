"""The scripted framework again under another name; its workloads compute the same with operations in another order."""

from typing import Any

from steelyard_worker.frameworks.fake import adapter
from steelyard_worker.protocol import Refusal


class Adapter(adapter.Adapter):
    """Like the fake framework, but another contender, which writes no networks."""

    def export(self, *_: Any) -> Any:
        """Refuse."""
        raise Refusal("unsupported", "The script says that this network cannot be exported.")

"""The result of a run as JSON, as `steelyard report --json` prints it; docs/reference/result.schema.json describes it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from steelyard.report import as_json

if TYPE_CHECKING:
    from steelyard.analysis.model import View


def text(view: View) -> str:
    """Return the result as JSON."""
    return json.dumps(as_json.as_dict(view), indent=1, allow_nan=False) + "\n"

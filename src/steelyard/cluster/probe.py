"""The first question to a node. It is sent as source code, because the node may have another version of steelyard, or none.

Only the standard library may be imported here.
"""

import importlib
import sys
from typing import Any


def probe(version: str, code: str) -> dict[str, Any]:
    """Return the facts of a node if its steelyard has the same version and measuring code; otherwise only these two."""
    found: dict[str, Any] = {"steelyard": "", "code": "", "python": sys.version.split()[0]}
    try:
        found["steelyard"] = importlib.import_module("steelyard").__version__
        if found["steelyard"] == version:
            found["code"] = importlib.import_module("steelyard.measure.launch").worker_hash()
        if found["code"] == code:
            found["facts"] = importlib.import_module("steelyard.cluster.facts").examine()
    except Exception as error:  # any fault of its installation is an answer
        found["error"] = f"{type(error).__name__}: {error}"
    return found

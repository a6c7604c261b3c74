"""The first question to a node. It travels as source code, because the node may have another steelyard, or none.

Only the standard library may be imported here.
"""

import importlib
import sys
from typing import Any


def probe(version: str, code: str) -> dict[str, Any]:
    """Return what a node is, if its steelyard is the same version with the same measuring code; otherwise only these."""
    found: dict[str, Any] = {"steelyard": "", "code": "", "python": sys.version.split()[0]}
    try:
        found["steelyard"] = importlib.import_module("steelyard").__version__
        if found["steelyard"] == version:
            found["code"] = importlib.import_module("steelyard.measure.launch").worker_hash()
        if found["code"] == code:
            found["facts"] = importlib.import_module("steelyard.cluster.facts").examine()
    except Exception as error:  # whatever is wrong with its installation is an answer
        found["error"] = f"{type(error).__name__}: {error}"
    return found

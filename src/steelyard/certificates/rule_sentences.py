"""What a certificate says about an update rule by itself."""
from __future__ import annotations
from typing import Any
def missing(name: str) -> str: return "missing " + name
def different(rule: Any, first: Any) -> str: return f"{rule.name} {first}"

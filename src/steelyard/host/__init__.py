"""The machine that measures: its facts, its free resources, load from other programs, and its arithmetic peak."""

from steelyard.host.machine import Machine, accelerators, describe
from steelyard.host.resources import Resources, available_memory_bytes, of_another, usable_cores, usable_nodes

__all__ = [
    "Machine",
    "Resources",
    "accelerators",
    "available_memory_bytes",
    "describe",
    "of_another",
    "usable_cores",
    "usable_nodes",
]

"""The machine that measures: its facts, its free resources, load from other programs, and its arithmetic peak."""

from steelyard.host.machine import Machine, accelerators, describe
from steelyard.host.resources import available_memory_bytes, usable_cores

__all__ = ["Machine", "accelerators", "available_memory_bytes", "describe", "usable_cores"]

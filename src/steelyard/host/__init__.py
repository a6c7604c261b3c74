"""The machine that measures: its hardware, load from other programs, and its arithmetic peak."""

from steelyard.host.machine import Machine, describe

__all__ = ["Machine", "describe"]

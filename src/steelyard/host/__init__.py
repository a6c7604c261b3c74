"""The machine under the measurement: its facts, its quietness, its arithmetic peak."""

from steelyard.host.machine import Machine, describe

__all__ = ["Machine", "describe"]

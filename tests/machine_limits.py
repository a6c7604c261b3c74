"""Caches of tests share what was measured of this machine: its peaks, and the bandwidth of its memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def share_limits(cache: Path, machine_limits: Path) -> None:
    """Let a new cache use and keep these limits; measuring them takes ten seconds beside other tests."""
    cache.mkdir(parents=True)
    (cache / "machines").symlink_to(machine_limits, target_is_directory=True)

"""Runs of scripted frameworks: their options and their results."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from steelyard.cli.main import EXIT_LEFT_OUT, main

Steelyard = Callable[..., subprocess.CompletedProcess[str]]

WORKLOADS = Path(__file__).resolve().parent.parent / "workloads"
MOUNTS = pytest.mark.skipif(
    os.geteuid() != 0 or sys.platform != "linux", reason="only root can mount a temporary disk, and only on Linux"
)
LINE = ("--workloads", str(WORKLOADS), "-w", "line", "--no-guard", "--plain")
DRY_RUN = ("run", *LINE, "-f", "fake", "--dry-run")


@dataclass(frozen=True)
class Finished:
    """A finished run: the data folder, the run's folder in `data_folder/runs`, and the output of `run --json`."""

    data_folder: Path
    folder: Path
    result: dict[str, Any]
    stderr: str

    def contender(self, variant: str) -> dict[str, Any]:
        """Return a contender of the only comparison by the end of its key."""
        return contender(self.result, variant)


def contender(result: dict[str, Any], variant: str) -> dict[str, Any]:
    """Return a contender of the only comparison by the end of its key."""
    (found,) = [each for each in result["comparisons"][0]["contenders"] if each["case"].endswith(variant)]
    return found


def finished(data_folder: Path, done: subprocess.CompletedProcess[str]) -> Finished:
    """Return the finished run of a `run --json` process; a contender may have been left out."""
    assert done.returncode in (0, EXIT_LEFT_OUT), done.stderr
    result = json.loads(done.stdout)
    return Finished(data_folder, Path(result["folder"]), result, done.stderr)


class CommandLine:
    """Run the command line in this process; for commands that measure nothing this is much faster than a new process."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *argv: str) -> tuple[int, str, str]:
        """Return (exit code, standard output, standard error)."""
        self._capsys.readouterr()
        try:
            code = main(list(argv))
        except SystemExit as stopped:
            code = int(stopped.code or 0)
        return (code, *self._capsys.readouterr())

    def error(self, *argv: str) -> str:
        """Return the message of a command that fails with a single line."""
        code, out, err = self(*argv)
        assert code == 2
        assert out == ""
        (message,) = err.splitlines()
        return message

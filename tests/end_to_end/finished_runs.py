"""Runs with scripted frameworks: how to ask for one, and what is left when it is over."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from steelyard.cli import main as cli

Steelyard = Callable[..., subprocess.CompletedProcess[str]]

WORKLOADS = Path(__file__).resolve().parent.parent / "workloads"
LINE = ("--workloads", str(WORKLOADS), "-w", "line", "--no-guard", "--no-calibrate", "--plain")


@dataclass(frozen=True)
class Finished:
    """A run that is over: its home (runs are in `home/runs`), its folder, and what `run --json` printed."""

    home: Path
    folder: Path
    result: dict[str, Any]
    said: str

    def contender(self, variant: str) -> dict[str, Any]:
        """Return one contender of the only comparison by the end of its key."""
        return contender(self.result, variant)


def contender(result: dict[str, Any], variant: str) -> dict[str, Any]:
    """Return one contender of the only comparison by the end of its key."""
    (found,) = [each for each in result["comparisons"][0]["contenders"] if each["case"].endswith(variant)]
    return found


def finished(home: Path, done: subprocess.CompletedProcess[str]) -> Finished:
    """Read what a `run --json` left behind."""
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    return Finished(home, Path(result["folder"]), result, done.stderr)


class Said:
    """Run the command line inside this process, as nothing is measured: much faster than a process of its own."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *argv: str) -> tuple[int, str, str]:
        """Return (exit code, standard output, standard error)."""
        self._capsys.readouterr()
        try:
            code = cli.main(list(argv))
        except SystemExit as stopped:
            code = int(stopped.code or 0)
        return (code, *self._capsys.readouterr())

    def refused(self, *argv: str) -> str:
        """Return the one sentence of a refusal."""
        code, out, err = self(*argv)
        assert code == 2
        assert out == ""
        (sentence,) = err.splitlines()
        return sentence

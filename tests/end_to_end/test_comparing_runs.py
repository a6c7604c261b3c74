"""The command line: comparing results of a run, and runs."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest

from steelyard_worker.protocol import METHOD

if TYPE_CHECKING:
    from pathlib import Path

    from finished_runs import CommandLine, Finished

pytestmark = pytest.mark.end_to_end


def test_two_results_of_a_run_are_compared_and_ambiguous_or_unknown_names_are_rejected(
    measured: Finished, cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STEELYARD_RUNS", str(measured.data_folder))
    full = ("fake/scripted", "dummy/scripted,step_us=12000")
    code, out, _ = cli("compare", *full)
    assert code == 0
    assert "1.20x" in out
    assert out.startswith(f"In run {measured.folder.name}:\n")
    _, out, _ = cli("compare", *full, "--json")
    (finding,) = json.loads(out)
    assert finding["run"] == measured.folder.name
    assert finding["ratio_of"] == "time per step of Fake / time per step of Dummy, step_us 12000"
    assert finding["value_a"] / finding["value_b"] == pytest.approx(finding["ratio"])
    assert finding["unit"] == "ns"
    assert finding["ratio"] == pytest.approx(10 / 12, rel=1e-12)
    assert "'dummy' could be any of dummy/scripted,step_us=10000, dummy/scripted,step_us=12000" in cli.error(
        "compare", "fake", "dummy"
    )
    assert "has both 'fake' and 'shame'" in cli.error("compare", "fake", "shame")


def test_two_runs_are_compared_result_by_result(copied: Finished, cli: CommandLine) -> None:
    other = copied.folder.with_name("20200101-000000-first-look")
    shutil.copytree(copied.folder, other)
    code, out, _ = cli("compare", other.name, copied.folder.name, "--json")
    assert code == 0
    findings = json.loads(out)
    assert len(findings) == 3
    for finding in findings:
        assert finding["ratio"] == pytest.approx(1.0, rel=1e-12)
        assert "no change detected" in finding["sentence"]
        assert finding["ratio_of"] == f"time per step of {copied.folder.name} / time per step of {other.name}"
        assert finding["value_a"] == finding["value_b"]
    _, out, _ = cli("compare", other.name, copied.folder.name)
    heading, *rows = out.splitlines()[:4]
    assert heading.split() == [
        "workload",
        "input",
        "contender",
        other.name,
        copied.folder.name,
        "after",
        "/",
        "before",
    ]
    assert [" ".join(row.split()) for row in rows] == [
        f"line:small cached {title} {time} ms {time} ms 1.000 [1.000, 1.000]"
        for title, time in (("Dummy, step_us 10000", "10.0"), ("Fake", "10.0"), ("Dummy, step_us 12000", "12.0"))
    ]


def _with(copied: Finished, key: str, value: object) -> str:
    """Copy a run with another value in its record; returns its name."""
    other = copied.folder.with_name("20200101-000000-first-look")
    shutil.copytree(copied.folder, other)
    path = other / "run.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), key: value}))
    return other.name


def test_runs_of_different_methods_are_not_compared(copied: Finished, cli: CommandLine) -> None:
    other = _with(copied, "method", 999)
    sentence = f"they differ in: the method of measuring (999 before, {METHOD} after"
    assert sentence in cli.error("compare", other, copied.folder.name)


def test_runs_of_different_machines_are_shown_side_by_side(copied: Finished, cli: CommandLine, tmp_path: Path) -> None:
    other = _with(copied, "machine", "0123456789abcdef")
    code, out, _ = cli("compare", other, copied.folder.name, "--output", str(tmp_path / "page.html"))
    assert code == 0
    assert "The order of contenders is the same on 2 of 2 machines: " in " ".join(out.split())
    assert "Numbers of different machines are never divided by each other" in out
    assert "% slower" not in out
    assert out.splitlines()[-1] == str(tmp_path / "page.html")
    assert "2 runs side by side" in (tmp_path / "page.html").read_text()
    code, out, _ = cli("compare", other, copied.folder.name, "--anyway")
    assert "Not comparable: the machine" in " ".join(out.split())
    assert "--output writes a page" in cli.error("compare", "fake", "dummy", "--output", "page.html")

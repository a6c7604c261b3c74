"""`steelyard list presets NAME` shows the sizes that `--set` takes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from steelyard.cli.main import main

LINE = str(Path(__file__).parents[1] / "workloads")


def test_the_sizes_of_a_workload_are_shown_with_their_meaning(capsys: pytest.CaptureFixture[str], monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert main(["list", "presets", "gnmt"]) == 0
    shown = capsys.readouterr().out
    rows = [line.split() for line in shown.splitlines()]
    assert rows[0][:2] == ["size", "wmt16"]
    assert any(row[:1] == ["hidden"] for row in rows)
    assert "Sizes: vocabulary, hidden, layers (of encoder and of decoder, at least 2)" in shown
    assert "--set vocabulary=" in shown and "follow it (vocabulary, source, target)" in shown


def test_a_preset_is_shown_alone_and_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "presets", "line:small", "--workloads", LINE, "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert row["preset"] == "line:small" and row["sizes"] == {"features": 8, "classes": 3, "batch": 16}
    assert row["meaning"] == "Sizes: features, classes, batch."


@pytest.mark.parametrize(
    ("name", "message"),
    [("gnmx", "There is no workload 'gnmx'. Did you mean 'gnmt'"), ("gnmt:tny", "Did you mean 'tiny'")],
)
def test_an_unknown_name_is_refused(name: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "presets", name]) == 2
    assert message in capsys.readouterr().err

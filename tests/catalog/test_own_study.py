"""The study that docs/own-study.md shows can be planned with the commands that it shows."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from steelyard.cli.main import main

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "own-study.md").read_text(encoding="utf-8")
(STUDY,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
COMMANDS = [line for line in re.findall(r"^steelyard .*$", PAGE, re.MULTILINE) if "--dry-run" in line]
QUICK = {f"resnet18:tiny,batch={batch}" for batch in (4, 16)}
FULL = {f"resnet18:digits,batch={batch},threads={threads}" for batch in (16, 32, 64, 128) for threads in (1, 2)}


@pytest.mark.parametrize("command", COMMANDS)
def test_the_commands_of_the_page_plan_its_study(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "batches.toml").write_text(STUDY)
    monkeypatch.chdir(tmp_path)
    assert main([*shlex.split(command)[1:], "--json"]) == 0
    plan = json.loads(capsys.readouterr().out)
    groups = {each["case"].rpartition("/")[0].rpartition("/")[0] for each in plan["cases"]}
    assert groups == QUICK if "quick" in command else groups in (FULL, QUICK)


def test_the_page_shows_a_plan_of_each_size() -> None:
    assert len(COMMANDS) == 2

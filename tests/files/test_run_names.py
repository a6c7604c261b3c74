"""The name of a run as a command takes it: with the folder of runs where that is not the usual one."""

from pathlib import Path

import pytest

from steelyard.files import paths


@pytest.fixture
def usual(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("STEELYARD_RUNS", str(tmp_path / "usual"))
    return paths.runs_folder()


def test_a_run_in_the_usual_folder_is_named_alone(usual: Path) -> None:
    assert paths.named(usual / "20260101-first-look") == "20260101-first-look"
    assert paths.runs_option(usual / ".." / usual.name / "20260101-first-look") == []


def test_a_run_elsewhere_is_named_with_its_folder_as_a_shell_reads_it(usual: Path, tmp_path: Path) -> None:
    assert usual != tmp_path
    assert paths.named(tmp_path / "my runs" / "r") == f"r --runs '{tmp_path}/my runs'"
    assert paths.runs_option(tmp_path / "my runs" / "r") == ["--runs", f"{tmp_path}/my runs"]


def test_a_folder_given_relatively_is_named_absolutely(
    usual: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert paths.named(Path("here") / "r") == f"r --runs {tmp_path}/here"

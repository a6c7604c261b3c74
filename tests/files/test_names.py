"""Names of studies, workloads and presets cannot leave their folder, hide another name, or break a line of output."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.catalog import scaffold, workloads
from steelyard.cli.main import main
from steelyard.errors import UserError
from steelyard.files import names
from steelyard.plan import studies

LINE = Path(__file__).parents[1] / "workloads" / "line"
STUDY = (
    'name = {}\ntitle = "Mine"\nquestion = "Which?"\nversion = 1\n[[cells]]\nworkloads = ["line:small"]\n'
    'frameworks = ["fake"]\n'
)
WRONG = [
    "",
    ".",
    "..",
    "../x",
    "a/b",
    "a\\b",
    "a\nb",
    "a\x00b",
    "a\x1b[31mb",
    "-x",
    ".x",
    "a b",
    "a:b",
    "a,b",
    "é",
    "x" * 300,
]


@given(st.text() | st.from_regex(r"[./a-z\n-]{0,50}"))
def test_a_name_is_either_refused_in_one_line_or_stays_in_its_folder(name: str) -> None:
    sentence = names.flaw(name, "study")
    assert sentence.isprintable()
    assert len(sentence) < 300
    if not sentence:
        root = Path("/runs")
        placed = root / f"20260101-000000-{name}"
        assert placed.parent == root
        assert (root / name).resolve().parent == root
        assert 1 <= len(name) <= names.LONGEST
        assert name.isascii()
        assert not name.startswith(("-", "."))


@given(st.from_regex(r"[a-zA-Z0-9][a-zA-Z0-9._-]{0,39}", fullmatch=True))
def test_ordinary_names_are_accepted(name: str) -> None:
    assert names.flaw(name, "study") == ""


def test_the_names_that_steelyard_has_itself_are_accepted() -> None:
    for workload in workloads.find().values():
        assert [names.flaw(each, "preset") for each in (workload.name, *workload.presets)] == [""] * (
            1 + len(workload.presets)
        )


@pytest.mark.parametrize("name", WRONG)
def test_a_study_with_a_name_that_is_no_name_is_refused_with_its_line(name: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(STUDY.format(json.dumps(name)), encoding="utf-8")
    with pytest.raises(UserError, match=r"mine\.toml, line 1: .* is not a valid name of a study\. Use at most 40"):
        studies.study(str(path))


def test_a_study_cannot_have_the_name_of_one_that_comes_with_steelyard(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(STUDY.format('"first-look"'), encoding="utf-8")
    with pytest.raises(UserError, match="There is another study named 'first-look', which this one would hide"):
        studies.study(str(path))


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.parametrize(("old", "kind"), [('name = "line"', "workload"), ("[presets.small]", "preset")])
def test_a_workload_or_preset_with_a_name_that_is_no_name_is_refused(
    name: str, old: str, kind: str, tmp_path: Path
) -> None:
    folder = shutil.copytree(LINE, tmp_path / "line", ignore=shutil.ignore_patterns("__pycache__"))
    text, quoted = (folder / "spec.toml").read_text(), json.dumps(name)
    new = f"name = {quoted}" if kind == "workload" else f"[presets.{quoted}]"
    (folder / "spec.toml").write_text(text.replace(old, new).replace("[presets.small.", f"[presets.{quoted}."))
    with pytest.raises(UserError, match=rf"spec\.toml, line \d+: .* is not a valid name of a {kind}\."):
        workloads.find((tmp_path,))


def test_a_workload_cannot_hide_one_of_steelyard_or_of_another_folder(tmp_path: Path) -> None:
    for parent, name in (("a", "resnet18"), ("b", "line"), ("c", "line")):
        folder = shutil.copytree(LINE, tmp_path / parent / "net", ignore=shutil.ignore_patterns("__pycache__"))
        spec = folder / "spec.toml"
        spec.write_text(spec.read_text().replace('name = "line"', f'name = "{name}"'))
    with pytest.raises(UserError, match="There is another workload named 'resnet18', which this one would hide"):
        workloads.find((tmp_path / "a",))
    assert "line" in workloads.find((tmp_path / "b", tmp_path / "b" / "net")), "the same folder twice is one workload"
    with pytest.raises(UserError, match="There is another workload named 'line', which this one would hide"):
        workloads.find((tmp_path / "b", tmp_path / "c"))
    with pytest.raises(UserError, match="There is another workload named 'resnet18'"):
        scaffold.write("resnet18", tmp_path, ["pytorch"])


@pytest.mark.parametrize("name", ["../x", "a\nb", "a\x1b[31mb", ""])
def test_a_run_that_does_not_exist_is_reported_in_one_printable_line(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "20260101-000000-mine"
    run.mkdir()
    (run / "run.json").write_text("{}")
    assert main(["report", name, "--runs", str(tmp_path)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.isprintable()
    assert "There is no run" in line

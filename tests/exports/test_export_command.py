"""`steelyard export` and `steelyard cite`: texts are printed, files are named, and the folder of the run stays as it is."""

from __future__ import annotations

import json

import pytest

import steelyard
from steelyard.cli.main import main
from steelyard.errors import UserError
from steelyard.exports.formats import FORMATS


@pytest.fixture
def folder(recorded):
    return recorded("training") / "training"


@pytest.mark.parametrize("name", [name for name, known in FORMATS.items() if known.is_text])
def test_a_text_is_printed_or_written_and_both_are_equal(name, folder, tmp_path, capsys):
    assert main(["export", "training", "--format", name]) == 0
    printed = capsys.readouterr().out
    assert main(["export", str(folder), "--format", name, "-o", str(tmp_path / "new" / "file")]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'new' / 'file'}\n"
    assert (tmp_path / "new" / "file").read_text() == printed
    assert main(["export", "--format", name, "-o", str(tmp_path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["files"] == [str(tmp_path / f"training{FORMATS[name].ending}")]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--format", "parquet"], "The format parquet is written to a file: name it with -o FILE.parquet"),
        (["--format", "svg"], "The format svg is written to a folder: name it with -o FOLDER"),
        (["--format", "csv", "--json"], "--json prints the paths of files: name a file or a folder with -o."),
        (["--format", "csv", "--quantity", "speed"], "There is no quantity 'speed'."),
        (["--format", "csv", "-o", "/proc/x/y"], "cannot be written"),
    ],
)
def test_what_cannot_be_is_one_sentence(arguments, sentence, folder, capsys):
    assert main(["export", "training", *arguments]) == 2
    err = capsys.readouterr().err
    assert sentence in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("name", FORMATS)
def test_nothing_is_written_into_the_folder_of_the_run(name, folder):
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    run = steelyard.load("training")
    for place in (folder, folder / "x", folder / "trials" / ".." / "x"):
        with pytest.raises(UserError, match="is inside the folder of the run"):
            run.export(name, place)
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before


def test_a_format_that_does_not_exist_is_refused(folder, capsys):
    with pytest.raises(UserError, match="There is no format 'excel'"):
        steelyard.load("training").export("excel", "x")
    with pytest.raises(SystemExit) as ended:
        main(["export", "--format", "excel"])
    assert ended.value.code == 2


def test_a_run_is_cited(folder, capsys):
    assert main(["cite", "training"]) == 0
    assert capsys.readouterr().out.startswith("@software{steelyard-training,\n")
    assert main(["cite", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["version"] == "0.1.0"

"""A framework of the user's own: the files that docs/adding-a-framework.md shows are extracted, checked and run as they are."""

from __future__ import annotations

import json
import re
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

    Steelyard = Callable[..., subprocess.CompletedProcess[str]]

REPOSITORY = Path(__file__).resolve().parents[2]
PAGE = (REPOSITORY / "docs" / "adding-a-framework.md").read_text(encoding="utf-8")
# A line that begins with the name of a file in backticks and ends in a colon, then the file as a code block.
FILE = re.compile(r"^`([\w/.]+)`[^\n]*:\n\n```(?:toml|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
pytestmark = pytest.mark.end_to_end

SMALL_NETWORK = '''"""Tensors with given gradients."""

import numpy as np


def forward(weights, batch):
    return {"total": np.zeros(1, np.float32)}


def backward(batch, outputs):
    table = np.zeros((9, 4), batch["table"].dtype)
    table[batch["rows"][0]] = batch["table"][0]
    names = {"kernel.weight": "weight", "kernel.bias": "bias", "norm.gamma": "gamma", "norm.beta": "beta"}
    return 0.0, {name: batch[each][0] for name, each in names.items()} | {"table.weight": table}
'''
RUN = ("--protocol", "fixed:1+3", "--no-guard", "--plain", "--rounds", "1")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder `my-frameworks` of the page."""
    for name, text in FILE.findall(PAGE):
        path = tmp_path / "my-frameworks" / "plain_numpy" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return tmp_path / "my-frameworks"


def words(command: str, folder: Path) -> list[str]:
    """Return the arguments of a command of the page, its folders and its interpreter replaced by those of this test."""
    (line,) = re.findall(rf"^steelyard {command} +((?:.*\\\n)*.*)$", PAGE, re.MULTILINE)
    replaced = {"my-frameworks": str(folder), "plain_numpy=python3": f"plain_numpy={sys.executable}"}
    replaced["tests/workloads"] = str(REPOSITORY / "tests" / "workloads")
    return [command, *(replaced.get(word, word) for word in shlex.split(line.replace("\\\n", " ")))]


def test_the_name_of_a_framework_may_have_hyphens(folder: Path, steelyard: Steelyard) -> None:
    (folder / "plain_numpy").rename(folder / "plain-numpy")
    asked = [word.replace("plain_numpy", "plain-numpy") for word in words("certify", folder)]
    done = steelyard(*asked, "--json", "--plain", "--knob", "plain-numpy.layout=columns")
    assert done.returncode == 0, done.stderr
    (found,) = (each for name, each in json.loads(done.stdout).items() if "plain-numpy" in name)
    assert found["passed"]


def test_the_page_holds_three_files(folder: Path) -> None:
    found = sorted(str(path.relative_to(folder)) for path in folder.rglob("*.*"))
    assert found == [f"plain_numpy/{name}" for name in ("adapter.py", "framework.toml", "workloads/line.py")]


def test_the_example_of_the_page_is_certified_by_the_command_of_the_page(folder: Path, steelyard: Steelyard) -> None:
    done = steelyard(*words("certify", folder), "--json", "--plain")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["line:small/plain_numpy/eager"]
    assert found["passed"]
    assert [each.partition(" ")[0] for each in found["references"]] == ["Fake", "Dummy"]
    assert found["rule_steps"] == 0
    assert "Update rule not checked by itself: the folder of Plain NumPy has no file" in found["sentence"]


def test_its_update_rule_is_checked_by_itself_where_the_folder_has_the_small_network(
    folder: Path, steelyard: Steelyard
) -> None:
    (folder / "plain_numpy" / "workloads" / "update_rule.py").write_text(SMALL_NETWORK)
    done = steelyard(*words("certify", folder), "--json", "--plain")
    found = json.loads(done.stdout)["line:small/plain_numpy/eager"]
    assert found["passed"], found["sentence"]
    assert found["rule_steps"] == 200
    path = folder / "plain_numpy" / "adapter.py"
    text = "            velocity += gradient\n"
    assert path.read_text().count(text) == 1
    late = "            self._late = getattr(self, '_late', 0) + 1\n            gradient = gradient * (1 + (self._late > 480))\n"
    path.write_text(path.read_text().replace(text, late + text))
    done = steelyard(*words("certify", folder), "--json", "--plain")
    found = json.loads(done.stdout)["line:small/plain_numpy/eager"]
    assert done.returncode == 3
    assert "SGD by itself, with given gradients, differs from its formula from step 97 on" in found["sentence"]


def test_a_mistake_in_the_example_is_rejected(folder: Path, steelyard: Steelyard) -> None:
    path = folder / "plain_numpy" / "workloads" / "line.py"
    path.write_text(path.read_text().replace("slope /= len(rows)", "slope /= len(rows) + 1"))
    done = steelyard(*words("certify", folder), "--json", "--plain")
    found = json.loads(done.stdout)["line:small/plain_numpy/eager"]
    assert done.returncode == 3
    assert found["stage"] == "gradients", found["sentence"]


def test_a_run_can_be_measured_and_reported_when_the_folder_is_gone_but_not_continued_when_it_has_changed(
    folder: Path, steelyard: Steelyard
) -> None:
    chosen = words("certify", folder)[1:]
    assert (done := steelyard("run", *chosen, *RUN, "--json")).returncode == 0, done.stderr
    adapter = folder / "plain_numpy" / "adapter.py"
    before = adapter.read_text()
    adapter.write_text(before + "# changed\n")
    refused = steelyard("run", "--resume", "latest", "--plain")
    assert "The files of plain_numpy have changed" in refused.stderr
    adapter.write_text(before)
    assert (done := steelyard("run", "--resume", "latest", "--plain")).returncode == 0, done.stderr
    for path in sorted(folder.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    assert (done := steelyard("report", "latest")).returncode == 0, done.stderr
    assert "Plain NumPy" in done.stdout


def test_without_an_interpreter_one_sentence_says_what_to_do(folder: Path, steelyard: Steelyard) -> None:
    chosen = [word for word in words("certify", folder) if word != "--env" and not word.startswith("plain_numpy=")]
    done = steelyard(*chosen, "--plain")
    assert "Plain NumPy has no lock file. Name an interpreter that holds it with --env plain_numpy=" in done.stderr


def test_the_lists_show_it(folder: Path, steelyard: Steelyard) -> None:
    workloads = str(REPOSITORY / "tests" / "workloads")
    listed = steelyard("list", "frameworks", "--frameworks", str(folder), "--json")
    assert "plain_numpy" in {each["framework"] for each in json.loads(listed.stdout)}
    listed = steelyard("list", "workloads", "--frameworks", str(folder), "--workloads", workloads, "--json")
    (line,) = (each for each in json.loads(listed.stdout) if each["workload"] == "line")
    assert line["plain_numpy"].endswith(" of 1")  # certified by another test or not: it is one of one preset


def test_a_new_workload_gets_its_template(folder: Path, tmp_path: Path, steelyard: Steelyard) -> None:
    asked = ("new", "workload", "mine", "-f", "plain_numpy", "--frameworks", str(folder), "--into", str(tmp_path))
    assert "There is no template for 'plain_numpy'" in steelyard(*asked).stderr
    (folder / "plain_numpy" / "template.py").write_text('"""To be filled in."""\n')
    assert steelyard(*asked).returncode == 0
    assert (tmp_path / "mine" / "plain_numpy.py").read_text() == '"""To be filled in."""\n'


def doctor(folder: Path, steelyard: Steelyard) -> tuple[int, dict[str, dict[str, str]]]:
    """Run the doctor's command of the page; returns its exit code and the findings by name."""
    done = steelyard(*words("doctor", folder), "--json")
    assert done.stdout.startswith("["), done.stderr
    return done.returncode, {each["name"]: each for each in json.loads(done.stdout)}


def test_a_knob_value_that_this_machine_does_not_support_is_a_note(folder: Path, steelyard: Steelyard) -> None:
    path = folder / "plain_numpy" / "adapter.py"
    refusal = (
        'if settings.knobs.get("layout") == "columns":\n            raise Refusal("unsupported", "Not here.")\n        '
    )
    path.write_text(path.read_text().replace("self._dtype = np.dtype", refusal + "self._dtype = np.dtype", 1))
    code, found = doctor(folder, steelyard)
    assert (code, found["layout = columns"]["state"], found["layout = columns"]["sentence"]) == (0, "warn", "Not here.")


def test_the_doctor_finds_no_fault_in_the_example(folder: Path, steelyard: Steelyard) -> None:
    code, found = doctor(folder, steelyard)
    assert {name: each["sentence"] for name, each in found.items() if each["state"] != "ok"} == {}
    assert code == 0
    rows = re.findall(r"^\| ([^|]+) \| [^|]+ \|$", PAGE.partition("`doctor --adapter` checks:")[2], re.MULTILINE)
    shown = {name.partition(": ")[2] for name in found} - {""}
    assert set(rows) - {"check"} == shown | {"unknown values"}


@pytest.mark.parametrize(
    ("file", "old", "new", "name", "sentence"),
    [
        (
            "adapter.py",
            '"columns" if probe.flags.f_contiguous else "rows"',
            '"rows"',
            "layout = columns",
            "layout was set to 'columns'",
        ),
        (
            "adapter.py",
            'ORDERS = {"rows": "C", "columns": "F"}',
            'ORDERS = {"rows": "F", "columns": "C"}',
            "layout = rows",
            "reports 'columns'",
        ),
        (
            "adapter.py",
            'if settings.mode != "eager"',
            "if False",
            "mode no-such-value",
            "the request is returned, not read back",
        ),
        (
            "adapter.py",
            '"layout": "columns" if probe.flags.f_contiguous else "rows",',
            "",
            "mode eager",
            "layout was set to 'rows', but plain_numpy reports None",
        ),
        (
            "adapter.py",
            "np.array(array, self._dtype",
            "np.asarray(array, self._dtype",
            "mode eager: put copies",
            "put() must copy",
        ),
        ("framework.toml", 'eager = "', 'lazy = "Later"\neager = "', "mode lazy", "Plain NumPy has no mode 'lazy'"),
    ],
)
def test_the_doctor_finds_a_planted_fault(
    file: str, old: str, new: str, name: str, sentence: str, folder: Path, steelyard: Steelyard
) -> None:
    path = folder / "plain_numpy" / file
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    code, found = doctor(folder, steelyard)
    assert code == 1
    assert found[name]["state"] == "bad"
    assert sentence in found[name]["sentence"]

"""What a person types and reads: help, lists, plans, comparisons, and the words for every mistake."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest
from finished_runs import LINE

if TYPE_CHECKING:
    from pathlib import Path

    from finished_runs import Finished, Said, Steelyard

pytestmark = pytest.mark.end_to_end

COMMANDS = ("run", "certify", "report", "compare", "list", "new", "env", "doctor")
ASKED = ("run", *LINE, "-f", "fake", "--dry-run")


def test_the_help_names_every_command_and_where_to_start(steelyard: Steelyard) -> None:
    done = steelyard("--help")
    assert done.returncode == 0
    for name in COMMANDS:
        assert f"\n  {name} " in done.stdout
    assert "steelyard run --dry-run" in done.stdout


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_a_command_explains_every_option(name: str, said: Said) -> None:
    code, out, err = said(name, "--help")
    assert (code, err) == (0, "")
    assert out.startswith(f"usage: steelyard {name}")
    assert "options:" in out
    for line in out.splitlines():
        assert len(line) <= 200
    explained = [line for line in out.splitlines() if line.startswith("  -")]
    assert explained


def test_the_version_is_one_line(said: Said) -> None:
    code, out, _ = said("--version")
    assert code == 0
    assert out.startswith("steelyard ")
    assert out.count("\n") == 1


@pytest.mark.parametrize("what", ["frameworks", "workloads", "presets", "studies", "data", "runs"])
def test_every_list_is_a_table_and_json_holds_the_same_rows(what: str, copied: Finished, said: Said) -> None:
    code, out, _ = said("list", what, "--json")
    assert code == 0
    rows = json.loads(out)
    assert rows
    code, table, _ = said("list", what)
    assert code == 0
    for row in rows:
        assert str(next(iter(row.values()))) in table


def test_a_workload_of_ones_own_is_listed(said: Said) -> None:
    _, out, _ = said("list", "workloads", "--workloads", LINE[1], "--json")
    assert "line" in {row["workload"] for row in json.loads(out)}


def test_a_full_size_certificate_takes_one_step_of_a_small_batch(steelyard: Steelyard) -> None:
    names = ("-f", "fake", "-f", "dummy", "--plain", "--json")
    done = steelyard("certify", "--full", "--workloads", LINE[1], "-w", "line", *names)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert {key: (each["passed"], each["steps"]) for key, each in found.items()} == {
        "line:small/fake/scripted": (True, 1), "line:small/dummy/scripted": (True, 1),
    }  # fmt: skip


def test_certifying_everything_leaves_no_room_for_a_choice_of_workloads(said: Said) -> None:
    assert "--workload cannot be given beside it" in said.refused("certify", "--all", "-w", "resnet18")


@pytest.mark.parametrize("batch", ["0", "-4"])
def test_a_batch_without_samples_is_refused(said: Said, batch: str) -> None:
    assert "--batch takes a number of samples" in said.refused("run", f"--batch={batch}", "--dry-run")


def test_there_is_nothing_to_list_before_the_first_run(said: Said) -> None:
    assert said("list", "runs")[1].strip() == "Nothing yet. Start with: steelyard run"
    assert said("list", "runs", "--json")[1].strip() == "[]"
    assert "There is no run in" in said.refused("report")
    assert "Start one with: steelyard run" in said.refused("run", "--resume", "latest")


def test_a_dry_run_shows_the_plan_with_an_estimate_and_does_nothing(said: Said, home: Path) -> None:
    code, out, _ = said(*ASKED, "--knob", "step_us=1,2")
    assert code == 0
    assert "step_us=1" in out
    assert "step_us=2" in out
    assert "minutes" in out
    code, out, _ = said(*ASKED, "--json")
    assert [case["case"] for case in json.loads(out)["cases"]] == ["line:small/fake/scripted"]
    assert not home.exists()


def test_the_default_study_weighs_every_framework_that_has_both_networks(said: Said) -> None:
    _, out, _ = said("run", "--dry-run", "--json")
    plan = json.loads(out)
    measured = {case["framework"] for case in plan["cases"]}
    assert len(measured) >= 3
    assert {case["case"].partition("/")[0] for case in plan["cases"]} == {"resnet18:digits", "lstm-imdb:reviews"}
    assert not {"fake", "dummy"} & measured


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        (("run", "--study", "frist-look", "--dry-run"), "There is no study 'frist-look'. Did you mean 'first-look'?"),
        (("run", "--study", "missing.toml", "--dry-run"), "missing.toml cannot be read"),
        (("run", "-w", "resnet81", "--dry-run"), "There is no workload 'resnet81'. Did you mean 'resnet18'?"),
        (("run", "-w", "resnet18:cifar01", "--dry-run"), "Workload resnet18 has no preset 'cifar01'. Did you mean 'cifar10'?"),
        (("run", "-f", "pytroch", "--dry-run"), "There is no framework 'pytroch'. Did you mean 'pytorch'?"),
        ((*ASKED, "--mode", "fake=scriptd"), "Fake has no mode 'scriptd'. Did you mean 'scripted'?"),
        ((*ASKED, "--mode", "scripted"), "'scripted' names no mode: write FRAMEWORK=MODE, such as fake=scripted."),
        ((*ASKED, "--mode", "fak=scripted"), "'fak' is not in this run. Did you mean 'fake'?"),
        ((*ASKED, "--knob", "fake.nois=0.1"), "Fake has no knob 'nois'. Did you mean 'noise'?"),
        ((*ASKED, "--knob", "nois=0.1"), "No framework of this run has a knob 'nois'. Did you mean 'noise'?"),
        ((*ASKED, "--knob", "fake.fault=hangs"), "Fake: knob fault takes none, hang"),
        ((*ASKED, "--knob", "fake.noise=much"), "Knob noise takes a value like 0.0, not 'much'."),
        ((*ASKED, "--knob", "noise"), "'noise' is no setting: write FRAMEWORK.KNOB=VALUE or KNOB=VALUE."),
        ((*ASKED, "--knob", "dummy.noise=0.1"), "'dummy' is not in this run."),
        ((*ASKED, "--protocol", "secnd-epoch"), "There is no protocol 'secnd-epoch'. Did you mean 'second-epoch'?"),
        ((*ASKED, "--protocol", "fixed:10"), "There is no protocol 'fixed:10'. Known: epochs:N-first, fixed:WARMUP+COUNTED,"),
        ((*ASKED, "--protocol", "second-epoch"), "has synthetic batches only, and protocol second-epoch needs data."),
        ((*ASKED, "--protocol", "epochs:20-first"), "has synthetic batches only, and protocol epochs:20-first needs data."),
        ((*ASKED, "--optimizer", "sdg"), "Workload line has no optimizer 'sdg'. Did you mean 'sgd'?"),
        ((*ASKED, "--device", "cuda"), "Fake has no device 'cuda' (it has cpu)."),
        ((*ASKED, "--precision", "float16"), "Fake has no precision 'float16' (it has float32, float64)."),
        ((*ASKED, "--rounds", "three"), "--rounds takes a number or a range such as 3-8, not 'three'."),
        ((*ASKED, "--rounds", "5-3"), "Rounds must be at least 1 and not fall: got 5 to 3."),
        ((*ASKED, "--delta", "2"), "--delta is a share between 0 and 1, such as 0.02 for 2 %, not 2."),
        ((*ASKED, "--threads", "none"), "--threads takes a number of at least 1, or 'default', not 'none'."),
        ((*ASKED, "--env", "fake"), "--env takes NAME=PYTHON, such as NAME=/opt/venv/bin/python, not 'fake'."),
        ((*ASKED, "--env", "fka=/usr/bin/python3"), "--env fka: 'fka' is not in this run."),
        (("run", "--workloads", "/missing", "-w", "line", "--dry-run"), "/missing is not a folder, so it holds no workloads."),
    ],
)  # fmt: skip
def test_a_mistake_is_answered_with_one_sentence_that_helps(
    argv: tuple[str, ...], sentence: str, said: Said, home: Path
) -> None:
    answer = said.refused(*argv)
    assert sentence in answer
    assert answer.startswith("steelyard: ")
    assert not home.exists()


def test_an_interpreter_that_is_missing_or_no_python_is_named(said: Said, tmp_path: Path) -> None:
    asked = ("run", "-w", "resnet18:tiny", "-f", "pytorch", "--plain", "--env")
    missing = tmp_path / "bin" / "python"
    code, _, err = said(*asked, f"pytorch={missing}")
    assert code == 2
    assert f"--env pytorch={missing}: there is no such file." in err
    code, _, err = said(*asked, f"pytorch={tmp_path}")
    assert code == 2
    assert f"--env pytorch={tmp_path} is a folder; name the interpreter in it" in err
    assert "Traceback" not in err


def test_an_unknown_command_suggests_the_nearest(said: Said) -> None:
    assert said.refused("reprot") == "steelyard: There is no command 'reprot'. Did you mean 'report'?"


def test_an_unknown_option_is_named_with_the_usage(said: Said) -> None:
    code, _, err = said("run", "--framwork", "fake")
    assert code == 2
    assert err.startswith("usage: steelyard")
    assert "unrecognized arguments: --framwork fake" in err


def test_the_name_of_a_framework_in_place_of_a_folder_suggests_the_other_option(said: Said) -> None:
    assert said.refused("run", "--frameworks", "fake").endswith("is not a folder. Did you mean --framework fake?")


def test_nothing_at_all_is_answered_with_the_help(said: Said) -> None:
    assert said() == said("--help")


def test_a_study_of_ones_own_runs(steelyard: Steelyard, tmp_path: Path) -> None:
    study = tmp_path / "mine.toml"
    study.write_text(
        'name = "mine"\ntitle = "Mine"\nquestion = "Is Dummy level with Fake?"\nversion = 1\nprotocol = "fixed:2+5"\n'
        'workloads = ["line:small"]\nframeworks = ["fake", "dummy"]\n'
    )
    done = steelyard("run", "--study", str(study), "--workloads", LINE[1], "--no-certify", "--plain", "--json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["study"] == "mine"
    assert [each["speeds"]["cached"]["counted_steps"] for each in result["comparisons"][0]["contenders"]] == [5, 5]


def test_two_contenders_are_compared_by_name_or_in_full(
    measured: Finished, said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STEELYARD_RUNS", str(measured.home))
    full = ("fake/scripted,step_us=10000", "dummy/scripted,step_us=12000")
    code, out, _ = said("compare", *full)
    assert code == 0
    assert "1.20x" in out
    _, out, _ = said("compare", *full, "--json")
    (finding,) = json.loads(out)
    assert finding["ratio"] == pytest.approx(10 / 12, rel=1e-12)
    assert "'dummy' could be any of dummy/scripted,step_us=10000, dummy/scripted,step_us=12000" in said.refused(
        "compare", "fake", "dummy"
    )
    assert "has both 'fake' and 'shame'" in said.refused("compare", "fake", "shame")


def test_two_runs_are_compared_contender_by_contender(copied: Finished, said: Said) -> None:
    other = copied.folder.with_name("20200101-000000-first-look")
    shutil.copytree(copied.folder, other)
    code, out, _ = said("compare", other.name, copied.folder.name, "--json")
    assert code == 0
    findings = json.loads(out)
    assert len(findings) == 3
    for finding in findings:
        assert finding["ratio"] == pytest.approx(1.0, rel=1e-12)
        assert "no change can be told" in finding["sentence"]


@pytest.mark.parametrize(("key", "value", "sentence"), [
    ("machine", "0123456789abcdef", "were measured on different machines; their times cannot be compared."),
    ("method", 999, "the way of measuring itself changed between them."),
])  # fmt: skip
def test_runs_on_different_terms_are_not_compared(
    key: str, value: object, sentence: str, copied: Finished, said: Said
) -> None:
    other = copied.folder.with_name("20200101-000000-first-look")
    shutil.copytree(copied.folder, other)
    path = other / "run.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), key: value}))
    assert sentence in said.refused("compare", other.name, copied.folder.name)


def test_output_into_a_closed_pipe_ends_quietly(command: list[str], surroundings: object, copied: Finished) -> None:
    import subprocess

    env = surroundings(copied.home)  # type: ignore[operator]
    shell = f"{' '.join(command)} list frameworks --json | head -c 1"
    done = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, env=env, check=False)
    assert done.stdout == "["
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr

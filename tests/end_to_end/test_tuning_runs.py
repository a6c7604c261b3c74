"""`steelyard advise --tune`: a search that measures what it chose anew, through the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from finished_runs import WORKLOADS

from steelyard.results import record, searched, trials

if TYPE_CHECKING:
    import subprocess

    from finished_runs import CommandLine, Finished, Steelyard

STEPS = ("--knob", "step_us=9000,5000,14000,8000,11000")
MORE = ("--minutes", "3", "--plain", "--json")


def result_of(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def outcomes(result: dict[str, Any]) -> dict[str, tuple[str, int]]:
    """Return settings in words -> (outcome, processes)."""
    return {
        ", ".join(f"{name} {value}" for name, value in each["settings"].items()): (
            each["outcome"],
            len(each["times_ns"]),
        )
        for each in result["search"]["tried"]
    }


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory, measured: Finished, shared_steelyard: Steelyard) -> dict[str, Any]:
    """Fake tuned over five times of a step; its usual one is 10 ms, as is that of the fastest other contender."""
    return result_of(
        shared_steelyard(
            tmp_path_factory.mktemp("tuned"), "advise", "--tune", "fake", "--run", str(measured.folder), *STEPS, *MORE
        )
    )


def test_the_fastest_is_measured_anew_beside_the_usual_settings_and_a_rival(result: dict[str, Any]) -> None:
    (comparison,) = result["comparisons"]
    fastest, *rest = comparison["contenders"]
    assert fastest["title"] == "Fake, step_us 5000"
    assert {each["title"] for each in rest} == {"Fake, step_us 10000", "Dummy"}
    assert all(each["certificate"] == "certified" for each in comparison["contenders"])
    found, _ = trials.read_all(Path(result["folder"]))
    assert len(found) >= 3 * 3
    assert {each.job.kind for each in found} == {"measure"}


def test_every_try_and_its_outcome_is_recorded(result: dict[str, Any]) -> None:
    assert outcomes(result) == {
        "": ("usual", 1),
        "step_us 9000": ("left behind", 2),
        "step_us 5000": ("chosen", 4),
        "step_us 8000": ("left behind", 4),
        "step_us 14000": ("left behind", 1),
        "step_us 11000": ("left behind", 1),
    }
    assert result["search"]["left_out"] == 0


def test_the_page_says_what_was_tried_and_that_it_is_no_result(result: dict[str, Any]) -> None:
    page = (Path(result["folder"]) / "report.html").read_text(encoding="utf-8")
    assert "6 settings of Fake were tried in" in page
    assert "The search chose step_us 5000, which the rounds then measured anew." in page
    assert "the best of many is partly luck" in page


def test_the_search_can_be_read_after_its_file_was_damaged(result: dict[str, Any], cli: CommandLine) -> None:
    folder = Path(result["folder"])
    kept = (folder / searched.FILE).read_text()
    (folder / searched.FILE).write_text("{")
    code, out, err = cli("report", str(folder))
    (folder / searched.FILE).write_text(kept)
    assert code == 0, err
    assert "search.json is damaged" in " ".join(out.split())
    assert "settings of Fake were tried" not in out


def test_a_search_goes_on_where_it_was_interrupted(
    copied: Finished, steelyard: Steelyard, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if the run had been killed before its last process: the others are not run again."""
    first = result_of(steelyard("advise", "--tune", "fake", "--run", str(copied.folder), *STEPS, *MORE))
    folder = Path(first["folder"])
    known = record.read(folder)
    assert known.plan.search
    assert known.plan.search.ended
    begun = {**json.loads((folder / record.FILE).read_text())}
    begun["plan"]["search"]["ended"] = False
    begun["plan"]["groups"][0]["variants"] = [
        each for each in begun["plan"]["groups"][0]["variants"] if each["case"]["settings"]["knobs"]["step_us"] != 5000
    ]
    begun["state"] = "interrupted"
    (folder / record.FILE).write_text(json.dumps(begun))
    (folder / searched.FILE).unlink()
    last = max((folder / searched.FOLDER).iterdir(), key=lambda path: path.stat().st_mtime_ns)
    (last / "events.jsonl").write_text("")
    kept = {path: path.stat().st_mtime_ns for path in (folder / searched.FOLDER).glob("*/events.jsonl")}
    again = result_of(steelyard("run", "--resume", folder.name, "--plain", "--json"))
    assert outcomes(again) == outcomes(first)
    changed = [path.parent.name for path, when in kept.items() if path.stat().st_mtime_ns != when]
    assert changed == [last.name]


def test_settings_that_fail_are_left_out_with_their_reason(copied: Finished, steelyard: Steelyard) -> None:
    found = result_of(
        steelyard(
            "advise",
            "--tune",
            "fake",
            "--run",
            str(copied.folder),
            "--knob",
            "fault=nan,die",
            "--knob",
            "step_us=9000",
            *MORE,
        )
    )
    tried = {tuple(each["settings"].items()): each for each in found["search"]["tried"]}
    assert tried[("fault", "nan"),]["outcome"] == "failed"
    assert "is nan" in tried[("fault", "nan"),]["reason"]
    assert tried[("step_us", "9000"),]["outcome"] == "chosen"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--minutes", "5"), "--minutes needs --tune FRAMEWORK."),
        (("--knob", "step_us=1"), "--knob needs --tune FRAMEWORK."),
        (
            ("--tune", "fake", "--for", "memory"),
            "--tune looks for the least time per step, so it takes no goal and no price.",
        ),
        (("--tune", "fake", "--minutes", "0"), "--minutes 0: a search needs a time limit of at least 0.5 minutes."),
        (("--tune", "torch"), "has no result of 'torch' to start from. Known: dummy, fake."),
        (("--tune", "fake"), "Fake has no other mode and no knob that could make line:small faster."),
    ],
)
def test_requests_that_make_no_sense_are_one_sentence(
    arguments: tuple[str, ...], sentence: str, copied: Finished, cli: CommandLine
) -> None:
    code, _, err = cli("advise", *arguments)
    assert code == 2
    assert sentence in " ".join(err.split())
    assert WORKLOADS.name not in err


def test_a_run_of_other_measuring_code_is_not_tuned(copied: Finished, cli: CommandLine) -> None:
    path = copied.folder / record.FILE
    path.write_text(path.read_text().replace('"worker_hash": "', '"worker_hash": "x'))
    code, _, err = cli("advise", "--tune", "fake", *STEPS)
    assert code == 2
    assert "was started with different measuring code, so it cannot be tuned. Start a new run." in " ".join(err.split())

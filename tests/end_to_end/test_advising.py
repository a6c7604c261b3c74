"""`steelyard advise`: what to choose from a finished run, and what is said about requests that make no sense."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from finished_runs import CommandLine, Finished


def test_a_finished_run_says_what_to_choose(copied: Finished, cli: CommandLine) -> None:
    code, out, err = cli("advise")
    assert code == 0, err
    text = " ".join(out.split())
    # Two contenders at 10 ms, without noise.
    assert "speed (time per step): Dummy (step_us 10000) and Fake are practically the same (within 2 %)" in text
    assert "accuracy-in-time: No whole epochs were trained and evaluated. A run that does: `steelyard run" in text
    assert "maintained: Maintained: Dummy and Fake." in text


def test_goals_with_weights_and_conditions_as_json(copied: Finished, cli: CommandLine) -> None:
    code, out, _ = cli(
        "advise", "--for", "speed=2", "--for", "short-jobs", "--steps", "1000", "--for", "maintained", "--json"
    )
    assert code == 0
    (comparison,) = json.loads(out)
    (made,) = comparison["choices"]
    assert made["goals"] == ["speed", "short-jobs"]
    assert {each["case"] for each in made["contenders"]} >= set(made["candidates"])
    assert sum(each["probability"] for each in made["contenders"]) == pytest.approx(1)
    assert list(comparison["conditions"]) == ["maintained"]


def test_a_goal_that_the_run_cannot_answer_names_the_run_that_can(copied: Finished, cli: CommandLine) -> None:
    code, out, _ = cli("advise", "--for", "accuracy-in-time")
    assert code == 1
    assert "--protocol epochs:5 --threshold 0.9`" in " ".join(out.split())


def test_a_run_without_certificates_says_why_nothing_is_chosen(
    uncertified: Finished, cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STEELYARD_RUNS", str(uncertified.data_folder))
    code, out, _ = cli("advise")
    assert code == 1
    assert "has no certificate" in out
    assert "start the run again without --no-certify" in " ".join(out.split())


def test_retired_frameworks_are_chosen_only_if_asked_for(copied: Finished, cli: CommandLine) -> None:
    path = copied.folder / "run.json"
    known = json.loads(path.read_text())
    known["plan"]["frameworks"]["dummy"]["maintained"] = False
    path.write_text(json.dumps(known))
    text = " ".join(cli("advise")[1].split())
    assert "Only Fake is left" in text
    assert "Dummy (step_us 10000) (retired) and Fake are practically the same" not in text
    assert "Only Fake is left" not in " ".join(cli("advise", "--any")[1].split())


def test_a_price_ranks_by_cost_and_leaves_the_record_as_it_is(copied: Finished, cli: CommandLine) -> None:
    record = (copied.folder / "run.json").read_bytes()
    code, out, err = cli("advise", "--for", "cost", "--price", "1.20EUR/h")
    assert code == 0, err
    text = " ".join(out.split())
    assert "cost (cost per million steps): Dummy (step_us 10000) and Fake are practically the same (within 2 %)" in text
    assert "At 1.20 EUR per hour." in text
    assert "practically the same (within 2 %): choose by something else." in text
    code, out, _ = cli("report", "--price", "$1.2/h", "--json")
    assert code == 0
    assert json.loads(out)["price"]["text"] == "$1.2 per hour"
    code, out, _ = cli("report", "--price", "1.2/h")
    assert out.splitlines()[-1].endswith("/report-with-price.html")
    assert (copied.folder / "run.json").read_bytes() == record
    for name in ("report", "export"):
        more = ("--format", "md") if name == "export" else ()
        assert "A cost needs a price: give one with --price" in cli.error(name, *more, "--quantity", "cost")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--for", "sped"), "There is no goal 'sped'. Did you mean 'speed'?"),
        (("--for", "speed=fast"), "--for speed must be GOAL=WEIGHT with a number above 0, not 'fast'."),
        (("--for", "speed=-1"), "--for speed must be GOAL=WEIGHT with a number above 0, not '-1'."),
        (
            ("--for", "speed=0"),
            "--for speed=0: a weight must be above 0 and at most 1,000,000; leave out what does not matter.",
        ),
        (("--for", "speed", "--for", "speed=2"), "--for speed is given twice. Give each goal once, with its weight."),
        (
            ("--for", "maintained=2"),
            "--for maintained takes no weight: a contender meets it or does not, and is set aside if not.",
        ),
        (
            ("--for", "cost"),
            "A cost needs a price: give one with --price, such as 1.2/h, to `steelyard report` or `advise`.",
        ),
        (("--price", "1,2/h"), "A price must be an amount above 0 per hour or kilowatt-hour, such as 1.2/h, "),
        (
            ("--tune", "fake", "--price", "1/h"),
            "--tune looks for the least time per step, so it takes no goal and no price.",
        ),
        (("--steps", "0"), "--steps must be a number of steps from 1 to 1,000,000,000, not '0'."),
        (("--epochs", "x"), "--epochs must be a number of epochs from 1 to 1,000,000, not 'x'."),
        (("--steps", "5", "--epochs", "1"), "--steps and --epochs contradict each other. Remove one of them."),
    ],
)
def test_what_makes_no_sense_is_one_sentence(
    copied: Finished, cli: CommandLine, arguments: tuple[str, ...], sentence: str
) -> None:
    assert sentence in cli.error("advise", *arguments)

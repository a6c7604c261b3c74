"""`steelyard explain`: where the time of a step goes, on terminal and page, and what happens where that cannot be known."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from finished_runs import CommandLine, Finished


def test_every_contender_is_profiled_and_the_classes_add_up(copied: Finished, cli: CommandLine) -> None:
    hint = f"steelyard explain --run {copied.folder.name}"
    assert hint in (copied.folder / "report.html").read_text()
    code, out, err = cli("explain", "--plain")
    assert code == 0, err
    text = " ".join(out.split())
    # Two thirds of 10 ms are the product, a quarter the optimizer, and the rest is a gap.
    assert "matrix product 6.60 ms (66.0%) 6.60 ms (66.0%) 7.92 ms (66.0%)" in text
    assert "optimizer 2.50 ms (25.0%) 2.50 ms (25.0%) 3.00 ms (25.0%)" in text
    assert "unattributed 0 ns (0.0%)" in text
    assert "host gap 900 µs (9.0%) 900 µs (9.0%) 1.08 ms (9.0%)" in text
    assert "takes 2.00 ms longer than one of" in text
    assert "measured step, mean over rounds 10.0 ms 10.0 ms 12.0 ms" in text
    assert "matrix product (+1.32 ms) and optimizer (+500 µs)" in text
    assert out.splitlines()[-1].endswith("report.html")
    page = (copied.folder / "report.html").read_text()
    assert "Where the time goes" in page
    assert hint not in page
    assert "profile/trace.json" in page
    assert len(list(copied.folder.glob("profiles/*/profile/trace.json"))) == 3


def test_explanations_are_plain_values_for_scripts(copied: Finished, cli: CommandLine) -> None:
    code, out, err = cli("explain", "fake", "--plain", "--json")
    assert code == 0, err
    found = json.loads(out)
    assert found["run"] == copied.folder.name
    assert found["page"].endswith("report.html")
    ((contender,),) = [each["contenders"] for each in found["comparisons"]]
    assert contender["case"] == "line:small/fake/scripted"
    assert contender["profile"]["classes"]["optimizer"] == pytest.approx(2.5e6, rel=0.01)
    assert sum(contender["profile"]["classes"].values()) == pytest.approx(contender["profile"]["step_ns"])


def test_two_results_are_a_waterfall(copied: Finished, cli: CommandLine) -> None:
    code, out, err = cli("explain", "fake", "dummy/scripted,step_us=12000", "--plain")
    assert code == 0, err
    changes = [line for line in out.splitlines() if "█" in line]
    assert [line.split("  ")[0].strip() for line in changes] == ["matrix product", "optimizer", "host gap"]
    assert "+1.32 ms" in changes[0]
    assert changes[0].count("█") > changes[1].count("█") > changes[2].count("█") > 0
    _, out, _ = cli("report", "--json")
    for contender in json.loads(out)["comparisons"][0]["contenders"]:
        found = contender.get("profile")
        assert (not contender["case"].endswith("step_us=10000") or "fake" in contender["case"]) == bool(found)
        if found:
            assert sum(found["classes"].values()) == pytest.approx(found["step_ns"])


def test_a_profile_is_taken_once_and_verdicts_stay(copied: Finished, cli: CommandLine) -> None:
    cli("explain", "fake", "--plain")
    (folder,) = copied.folder.glob("profiles/*")
    before = (folder / "events.jsonl").stat().st_mtime_ns
    code, out, err = cli("explain", "fake", "--plain")
    assert code == 0
    assert (folder / "events.jsonl").stat().st_mtime_ns == before
    assert "Dummy" not in out
    assert "Environments" not in out + err, "nothing is to be measured"
    code, out, _ = cli("explain", "fake", "--plain", "--fresh")
    assert (folder / "events.jsonl").stat().st_mtime_ns > before
    _, out, _ = cli("report", "--json")
    after = json.loads(out)["comparisons"][0]
    assert after["verdicts"] == copied.result["comparisons"][0]["verdicts"]


def test_more_processes_are_profiled_later_and_give_intervals(copied: Finished, cli: CommandLine) -> None:
    cli("explain", "fake", "--plain")
    (first,) = copied.folder.glob("profiles/*")
    before = (first / "events.jsonl").stat().st_mtime_ns
    code, _, err = cli("explain", "fake", "--profiles", "3", "--plain")
    assert code == 0, err
    assert (first / "events.jsonl").stat().st_mtime_ns == before
    assert "profiling" in err
    assert ", 3 of 3" in err
    _, out, _ = cli("report", "--json")
    profiled = [each for each in json.loads(out)["comparisons"][0]["contenders"] if each.get("profile_quantities")]
    assert [each["title"] for each in profiled] == ["Fake"]
    gap = profiled[0]["profile_quantities"]["host gap"]
    assert gap["processes"] == 3
    assert gap["low"] <= gap["value"] <= gap["high"]
    code, _, err = cli("explain", "fake", "--plain")
    assert "profiling" not in err, "they are all there"


def test_no_process_to_profile_is_refused(copied: Finished, cli: CommandLine) -> None:
    assert "--profiles must be a number of processes from 1 to 20, not '0'." in cli.error("explain", "--profiles", "0")


def test_what_is_not_in_the_run_is_refused(copied: Finished, cli: CommandLine) -> None:
    assert "fak" in cli.error("explain", "fak", "--plain")
    assert not list(copied.folder.glob("profiles"))


@pytest.mark.parametrize("damaged", ["rules.json", "profile/operations/tensors.bin", "profile/operations/index.json"])
def test_a_damaged_profile_is_a_sentence_and_the_rest_is_shown(
    copied: Finished, cli: CommandLine, damaged: str
) -> None:
    cli("explain", "--plain")
    folder = sorted(copied.folder.glob("profiles/*"))[0]
    (folder / damaged).write_text("{}")
    code, _, err = cli("report")
    assert code == 0, err
    page = (copied.folder / "report.html").read_text()
    assert "could not be profiled" in page
    assert "Where the time goes" in page


def test_a_run_of_other_measuring_code_is_refused(copied: Finished, cli: CommandLine) -> None:
    path = copied.folder / "run.json"
    path.write_text(path.read_text().replace('"worker_hash": "', '"worker_hash": "0'))
    assert "different measuring code" in cli.error("explain", "--plain")
    shutil.rmtree(copied.folder)

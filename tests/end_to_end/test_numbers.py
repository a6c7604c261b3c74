"""With a scripted clock every number is known in advance: steps of 10 ms and 12 ms without noise."""

from __future__ import annotations

import json
import re
import shutil
from typing import TYPE_CHECKING

import pytest
from finished_runs import LINE, WORKLOADS

from steelyard.results import durations

if TYPE_CHECKING:
    from pathlib import Path

    from finished_runs import CommandLine, Finished, Steelyard

pytestmark = pytest.mark.end_to_end

BATCH = 16


@pytest.mark.parametrize(("variant", "step_ns"), [("fake/scripted", 10e6), ("dummy/scripted,step_us=12000", 12e6)])
def test_times_and_throughput_equal_the_scripted_values(measured: Finished, variant: str, step_ns: float) -> None:
    contender = measured.contender(variant)
    speed = contender["speeds"]["cached"]
    assert speed["median_ns"] == step_ns
    assert speed["location"]["value_ns"] == pytest.approx(step_ns, rel=1e-12)
    assert speed["throughput"] == pytest.approx(BATCH * 1e9 / step_ns, rel=1e-12)
    assert contender["first_step_ns"] == step_ns
    assert speed["processes"] == 3


def test_the_ratio_is_exact_and_inside_its_interval(measured: Finished) -> None:
    ratio = measured.contender("dummy/scripted,step_us=12000")["speeds"]["cached"]["ratio"]
    assert ratio["value"] == pytest.approx(1.2, rel=1e-12)
    assert ratio["low"] < 1.2 < ratio["high"]
    assert ratio["high"] / ratio["low"] < 1.05


def test_the_verdict_names_the_fastest_and_the_equal_ones(measured: Finished) -> None:
    sentence = measured.result["comparisons"][0]["sentences"]["cached"]
    assert re.search(r"1\.20x \[1\.\d\d, 1\.\d\d\] faster than", sentence)
    assert "practically the same" in sentence


def test_equal_speeds_are_practically_the_same(measured: Finished) -> None:
    verdicts = measured.result["comparisons"][0]["verdicts"]["cached"]
    same = ("line:small/fake/scripted", "line:small/dummy/scripted,step_us=10000")
    (equal,) = [v for v in verdicts if v["a"] in same and v["b"] in same]
    assert equal["kind"] == "equal"
    assert equal["ratio"] == pytest.approx(1.0, rel=1e-12)


def test_every_result_of_a_default_run_is_certified(measured: Finished) -> None:
    assert {each["certificate"] for each in measured.result["comparisons"][0]["contenders"]} == {"certified"}


def test_a_run_says_where_its_time_went(steelyard: Steelyard, data_folder: Path) -> None:
    done = steelyard("run", *LINE, "-f", "fake", "-f", "dummy", "--rounds", "2")
    assert done.returncode == 0
    (path,) = data_folder.glob("runs/*/run.json")
    seconds = json.loads(path.read_text())["seconds"]
    told, page = done.stdout.splitlines()[-2:]
    assert told == durations.sentence(seconds)
    assert re.match(r"Time: .*\(environments \d.*, certificates \d.*, rounds \d", told)
    assert page == str(path.parent / "report.html")
    assert seconds.keys() >= {"environments", "certificates", "rounds", "processes", "total"}
    assert 0 < seconds["processes"] <= seconds["rounds"]
    stages = [seconds[each] for each in durations.STAGES if each in seconds]
    assert min(stages) >= 0
    assert 0.5 * seconds["total"] < sum(stages) <= seconds["total"]


def test_a_workload_with_a_single_implementation_is_measured_without_certificate_and_the_page_gives_the_reason(
    steelyard: Steelyard, data_folder: Path, tmp_path: Path
) -> None:
    shutil.copytree(WORKLOADS / "line", tmp_path / "mine" / "line")
    (tmp_path / "mine" / "line" / "dummy.py").unlink()
    own = ("--workloads", str(tmp_path / "mine"), "-w", "line", "-f", "fake", "--rounds", "3", "--plain", "--json")
    done = steelyard("run", *own, "--no-guard")
    assert done.returncode == 0, done.stderr
    (contender,) = json.loads(done.stdout)["comparisons"][0]["contenders"]
    assert contender["certificate"] == "none"
    assert contender["speeds"]["cached"]["processes"] == 3
    (page,) = data_folder.glob("runs/*/*.html")
    assert "Only Fake implements line, so there is nothing to certify against." in page.read_text(encoding="utf-8")


def test_uncertified_results_are_marked_and_get_no_verdict(uncertified: Finished, steelyard: Steelyard) -> None:
    (comparison,) = uncertified.result["comparisons"]
    assert {each["certificate"] for each in comparison["contenders"]} == {"none"}
    assert comparison["verdicts"].get("cached", []) == []
    assert not re.search(r"faster|the same", comparison["sentences"].get("cached", ""))
    warned = {each["subject"] for each in uncertified.result["warnings"] if each["name"] == "NotCertified"}
    assert warned == {"Fake on line:small", "Dummy on line:small"}
    shown = steelyard("compare", "fake", "dummy", STEELYARD_RUNS=str(uncertified.data_folder))
    assert "No verdict: Fake and Dummy not certified." in shown.stdout


def test_a_fixed_protocol_counts_exactly_the_requested_steps(uncertified: Finished) -> None:
    for contender in uncertified.result["comparisons"][0]["contenders"]:
        speed = contender["speeds"]["cached"]
        assert (speed["processes"], speed["counted_steps"]) == (1, 200)
    (folder,) = uncertified.folder.glob("trials/*fake*")
    events = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]
    steps = {event["phase"]: event["steps"] for event in events if event["event"] == "samples"}
    assert steps == {"first": 1, "warm-up": 10, "counted": 200}


def test_the_time_and_the_loss_of_every_step_are_stored(measured: Finished) -> None:
    folder = min(measured.folder.glob("trials/*"))
    events = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]
    steps = sum(event["steps"] for event in events if event["event"] == "samples")
    assert (folder / "samples.i64").stat().st_size == 8 * steps
    assert (folder / "losses.f32").stat().st_size == 4 * steps


def test_report_reproduces_the_numbers_of_the_run(copied: Finished, cli: CommandLine) -> None:
    (copied.folder / "report.html").unlink()
    code, out, _ = cli("report", "--json")
    assert code == 0
    again = json.loads(out)
    assert again["comparisons"] == copied.result["comparisons"]
    assert (copied.folder / "report.html").stat().st_size > 10_000


def test_report_prints_the_table_and_then_the_path_of_the_page(copied: Finished, cli: CommandLine) -> None:
    _, table, _ = cli("report")
    lines = table.strip().splitlines()
    assert lines[-1] == str(copied.folder / "report.html")
    assert "10.0 ms" in table
    assert "12.0 ms" in table
    assert "1.20x" in table


def test_report_ranks_by_another_quantity(copied: Finished, cli: CommandLine) -> None:
    before = (copied.folder / "report.html").read_bytes()
    code, table, _ = cli("report", "--quantity", "throughput")
    assert code == 0
    assert table.strip().splitlines()[-1] == str(copied.folder / "report-throughput.html")
    assert "Ranked by throughput: more is better." in table
    assert "1,600 points/s" in table
    assert "0.83x" in table
    assert "higher throughput than" in table
    assert "fastest" not in table
    assert "ratio to highest" in (copied.folder / "report-throughput.html").read_text(encoding="utf-8")
    assert (copied.folder / "report.html").read_bytes() == before


def test_report_by_peak_memory_has_bytes_and_one_ranking_as_json(copied: Finished, cli: CommandLine) -> None:
    code, out, _ = cli("report", copied.folder.name, "--quantity", "peak memory", "--json")
    assert code == 0
    read = json.loads(out)
    assert (read["quantity"]["name"], read["quantity"]["unit"]) == ("peak memory", "bytes")
    (comparison,) = read["comparisons"]
    assert (comparison["primary"], list(comparison["headlines"])) == ("process", ["process"])
    used = [contender["standings"]["process"]["value"] for contender in comparison["contenders"]]
    assert used == sorted(used)
    assert all(2**20 < value < 2**40 for value in used)
    assert "fast" not in str(comparison["headlines"]) + str(comparison["sentences"])
    assert "There is no quantity 'peak memry'. Did you mean 'peak memory'?" in cli.error(
        "report", "--quantity", "peak memry"
    )


def test_the_page_can_be_written_to_another_file(copied: Finished, cli: CommandLine, tmp_path: Path) -> None:
    page = tmp_path / "elsewhere.html"
    assert cli("report", "--output", str(page))[1].strip().endswith(str(page))
    assert page.stat().st_size > 10_000
    assert "cannot be written" in cli.error("report", "--output", str(tmp_path / "missing" / "page.html"))

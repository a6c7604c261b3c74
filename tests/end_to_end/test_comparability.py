"""Two runs are compared only if everything that affects their numbers is equal; a run is planned once."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest
from finished_runs import LINE, WORKLOADS, Finished, finished

from steelyard.catalog import workloads
from steelyard.plan import resolve
from steelyard.results import record
from steelyard_worker import records

if TYPE_CHECKING:
    from pathlib import Path

    from finished_runs import CommandLine, Steelyard

pytestmark = pytest.mark.end_to_end

QUICK = ("-f", "fake", "--knob", "fake.step_us=1000", "--rounds", "3", "--json")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory, shared_steelyard: Steelyard) -> dict[str, Finished]:
    """Three runs in one folder: two with the same options, one with another batch and thread count. Do not change them."""
    data_folder = tmp_path_factory.mktemp("comparable")
    options = {"first": (), "again": (), "other": ("--batch", "64", "--threads", "1")}
    return {
        name: finished(data_folder, shared_steelyard(data_folder, "run", *LINE, *QUICK, *more))
        for name, more in options.items()
    }


def _compare(cli: CommandLine, runs: dict[str, Finished], a: str, b: str, *more: str) -> tuple[int, str, str]:
    folders = (runs[name].folder for name in (a, b))
    return cli("compare", *map(str, folders), "--runs", str(runs[a].folder.parent), *more)


def test_runs_with_equal_options_are_compared(cli: CommandLine, runs: dict[str, Finished]) -> None:
    code, out, err = _compare(cli, runs, "first", "again", "--json")
    assert code == 0, err
    found = json.loads(out)
    assert found
    assert all(each["ratio"] == pytest.approx(1, rel=1e-3) for each in found)


def test_runs_with_another_batch_and_thread_count_are_not_compared_and_both_are_named(
    cli: CommandLine, runs: dict[str, Finished]
) -> None:
    code, out, err = _compare(cli, runs, "first", "other")
    assert (code, out) == (2, "")
    assert "batch (16 before, 64 after)" in err
    assert "threads (" in err
    assert "With --anyway both are shown without a verdict." in err


def test_anyway_shows_both_values_without_a_verdict(cli: CommandLine, runs: dict[str, Finished]) -> None:
    code, out, _ = _compare(cli, runs, "first", "other", "--anyway", "--json")
    assert code == 0
    for each in json.loads(out):
        assert each["ratio"] is None
        assert "1.00 ms before, 1.00 ms after. Not comparable: batch (16 before, 64 after)" in each["sentence"]


def test_runs_with_another_protocol_are_not_compared(
    cli: CommandLine, runs: dict[str, Finished], shared_steelyard: Steelyard
) -> None:
    data_folder = runs["first"].data_folder
    fixed = finished(
        data_folder, shared_steelyard(data_folder, "run", *LINE, *QUICK[:4], "--protocol", "fixed:5+20", "--json")
    )
    code, _, err = cli("compare", str(runs["first"].folder), str(fixed.folder), "--runs", str(data_folder / "runs"))
    assert code == 2
    assert "schedule warmup (adaptive before, 5 steps after)" in err


def test_other_software_under_the_same_version_is_named(
    cli: CommandLine, runs: dict[str, Finished], tmp_path: Path
) -> None:
    first, again = (runs[name].folder for name in ("first", "again"))
    changed = tmp_path / again.name
    shutil.copytree(again, changed)
    path = changed / "run.json"
    kept = json.loads(path.read_text())
    kept["environments"]["fake"]["packages"] |= {"threadpools": "2.0"}
    path.write_text(json.dumps(kept))
    path = changed / "certificates.json"
    path.write_text(path.read_text().replace('"implementation": "', '"implementation": "0'))
    code, out, err = cli("compare", str(first), str(changed), "--json")
    assert code == 0, err
    for each in json.loads(out):
        assert ", other versions of threadpools, other implementation files): no change detected" in each["sentence"]
    _, out, _ = _compare(cli, runs, "first", "again", "--json")
    assert "other" not in out


def test_another_quantity_can_be_compared(cli: CommandLine, runs: dict[str, Finished]) -> None:
    code, out, _ = _compare(cli, runs, "first", "again", "--quantity", "peak memory", "--json")
    assert code == 0
    assert all("of the peak memory before" in each["sentence"] for each in json.loads(out))
    assert "There is no quantity 'weight'." in cli.error("compare", "a", "b", "--quantity", "weight")


def test_a_run_cannot_be_continued_after_a_change_of_its_workload(
    steelyard: Steelyard, data_folder: Path, tmp_path: Path
) -> None:
    shutil.copytree(WORKLOADS / "line", tmp_path / "mine" / "line")
    own = ("--workloads", str(tmp_path / "mine"), "-w", "line", "-f", "fake", "--no-guard", "--plain")
    done = finished(data_folder, steelyard("run", *own, "--rounds", "2", "--no-certify", "--json"))
    spec = tmp_path / "mine" / "line" / "spec.toml"
    spec.write_text(spec.read_text().replace("batch = 16", "batch = 32"))
    again = steelyard("run", "--resume", done.folder.name, "--plain")
    assert again.returncode == 2
    assert "The files of line have changed since run" in again.stderr


def test_every_job_contains_its_case_as_planned(measured: Finished) -> None:
    cases = record.read(measured.folder).plan.by_id
    jobs = [json.loads(path.read_text()) for path in measured.folder.glob("trials/*/job.json")]
    assert len(jobs) == 9
    stored = {json.dumps(json.loads(records.to_line(variant.case)), sort_keys=True) for variant in cases.values()}
    assert {json.dumps(job["case"], sort_keys=True) for job in jobs} == stored
    assert all(job["case"]["inputs"] for job in jobs)


def test_a_run_is_planned_once_and_each_specification_is_read_once(
    cli: CommandLine, data_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: dict[str, int] = {}

    def counted(module: object, name: str) -> None:
        original = getattr(module, name)

        def call(*args: object) -> object:
            key = f"{name} {args[0]}" if name == "parse" else name
            calls[key] = calls.get(key, 0) + 1
            return original(*args)

        monkeypatch.setattr(module, name, call)

    counted(resolve, "plan")
    counted(workloads, "parse")
    code, _, err = cli("run", *LINE, *QUICK, "--no-certify")
    assert code == 0, err
    assert calls.pop("plan") == 1
    assert calls
    assert set(calls.values()) == {1}

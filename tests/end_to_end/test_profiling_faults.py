"""Real faults of profiling: each gives one sentence, in the record and on the page, and no verdict changes by a byte."""

from __future__ import annotations

import json
import re
import shutil
from typing import TYPE_CHECKING, Any

import pytest
from finished_runs import LINE, MOUNTS, Finished, finished

from steelyard.catalog import frameworks

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from finished_runs import CommandLine, Steelyard

pytestmark = pytest.mark.end_to_end

# The section, to the one that follows in its fold.
SECTION = re.compile(
    r'<div class="input screen">\s*<h3>Where the time goes</h3>.*?(?=<div class="input screen">)', re.DOTALL
)
# fault -> (kind of the recorded event, part of the reason)
FAULTS = {
    "unsupported": ("unsupported", "The script says that this cannot be done."),
    "privileges": ("crash", "PermissionError: [Errno 13] The script denies the profiler its counters"),
    "empty": ("unsupported", "The profiler of fake recorded no operation."),
    "hang": ("hung", "The worker wrote no event for 2 s and was stopped."),
    "die": ("killed", "The worker was killed (signal 9)"),
    "disk": ("disk-full", "Its trace does not fit into the"),
}


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory, shared_steelyard: Steelyard) -> Finished:
    """An explained run in which the profiler of Fake has every fault once, and that of Dummy none. Tests must not change it."""
    data_folder = tmp_path_factory.mktemp("unexplained")
    knobs = ("--knob", f"fake.profiler_fault={','.join(FAULTS)}", "--silence", "2", "--rounds", "1", "--no-certify")
    run = finished(
        data_folder, shared_steelyard(data_folder, "run", *LINE, "-f", "fake", "-f", "dummy", *knobs, "--json")
    )
    page = run.folder / "report.html"
    page.replace(run.folder / "before.html")
    done = shared_steelyard(data_folder, "explain", "--plain")
    assert done.returncode == 3, done.stderr
    return Finished(data_folder, run.folder, run.result, done.stdout)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_recorded_and_said_in_one_sentence(faulty: Finished, fault: str) -> None:
    kind, message = FAULTS[fault]
    (folder,) = faulty.folder.glob(f"profiles/*fault={fault}*")
    last = json.loads((folder / "events.jsonl").read_text().splitlines()[-1])
    assert (last["event"], last["kind"]) == ("error", kind)
    assert message in last["message"]
    assert message in " ".join(faulty.stderr.split())
    assert message.split(" [")[0] in (faulty.folder / "report.html").read_text()


def test_the_others_are_explained_and_the_page_is_the_same_but_for_its_section(faulty: Finished) -> None:
    before, after = ((faulty.folder / name).read_text() for name in ("before.html", "report.html"))
    assert "Where the time goes" not in before
    assert len(SECTION.findall(after)) == 1
    hint = re.compile(r'<p class="aside screen">Why does one take longer\?.*?</p>\s*')
    opened = after.replace('<details class="screen" open><summary>Why one', '<details class="screen"><summary>Why one')
    assert opened != after, "the fold of what was asked for is open"
    assert _words(SECTION.sub("", opened)) == _words(hint.sub("", before)) != _words(before)


def _words(page: str) -> list[str]:
    return page.split()


def _verdicts(comparisons: list[dict[str, Any]]) -> list[Any]:
    return [each[key] for each in comparisons for key in ("verdicts", "sentences", "headlines", "advice")]


def _shown(cli: CommandLine) -> list[Any]:
    return _verdicts(json.loads(cli("report", "--json")[1])["comparisons"])


@pytest.mark.parametrize(
    ("key", "value"), [("version", "0.1"), ("packages", {"numpy": "0.1"}), ("contents", "other files")]
)
def test_another_environment_than_the_measured_one_is_not_profiled(
    copied: Finished, cli: CommandLine, key: str, value: object
) -> None:
    path = copied.folder / "run.json"
    known = json.loads(path.read_text())
    known["environments"]["fake"][key] = value
    path.write_text(json.dumps(known))
    code, out, err = cli("explain", "--plain")
    assert code == 3, err
    assert "The packages of fake have changed since the run" in " ".join(out.split())
    assert len(list(copied.folder.glob("profiles/*dummy*/rules.json"))) == 2
    assert _shown(cli) == _verdicts(copied.result["comparisons"])
    assert cli("explain", "fake", "--plain")[0] == 1


def test_the_record_of_a_run_stays_as_it_was_measured(copied: Finished, cli: CommandLine) -> None:
    path = copied.folder / "run.json"
    path.write_text(path.read_text().replace('"system": "', '"system": "Before an update of '))
    before = path.read_bytes()
    assert cli("explain", "fake", "--plain")[0] == 0
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        ("missing.toml", "Fake cannot be profiled: it has no table of operations (missing.toml)."),
        ("framework.toml", "framework.toml has no [[operations]]."),
    ],
)
def test_a_framework_without_a_table_of_operations_is_not_profiled(
    copied: Finished, cli: CommandLine, monkeypatch: pytest.MonkeyPatch, table: str, reason: str
) -> None:
    monkeypatch.setattr(frameworks, "OPERATIONS", table)
    code, out, _ = cli("explain", "--plain")
    assert code == 1
    assert reason in " ".join(out.split())
    assert _shown(cli) == _verdicts(copied.result["comparisons"])


def test_a_run_without_a_finished_process_has_nothing_to_explain(copied: Finished, cli: CommandLine) -> None:
    shutil.rmtree(copied.folder / "trials")
    message = cli.error("explain", "--run", copied.folder.name, "--plain")
    assert "has no finished process, so there is nothing to explain." in message
    assert message.endswith(f"steelyard run --resume {copied.folder.name}")


@pytest.mark.parametrize("missing", [0, 3])  # events at the end of the file
def test_an_interrupted_profile_is_said_to_be_and_taken_again(copied: Finished, cli: CommandLine, missing: int) -> None:
    cli("explain", "fake", "--plain")
    (folder,) = copied.folder.glob("profiles/*")
    events = (folder / "events.jsonl").read_text().splitlines()
    (folder / "events.jsonl").write_text("".join(f"{event}\n" for event in events[: len(events) - missing]))
    (folder / "rules.json").unlink()
    assert cli("report")[0] == 0
    assert "Its profiling was interrupted." in (copied.folder / "report.html").read_text()
    code, out, err = cli("explain", "fake", "--plain")
    assert code == 0, err
    assert "Its profiling was" not in out


def test_a_new_profile_that_fails_leaves_the_earlier_one(
    copied: Finished, cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, shown, _ = cli("explain", "fake", "--plain")
    monkeypatch.setattr(frameworks, "OPERATIONS", "missing.toml")
    code, out, err = cli("explain", "fake", "--plain", "--fresh")
    assert code == 0
    assert "The earlier profile was kept." in err
    assert out == shown
    assert len(list(copied.folder.glob("profiles/*"))) == 1


@MOUNTS
def test_a_trace_larger_than_the_disk_is_removed_and_the_others_are_profiled(
    disk: Callable[[str], Path], steelyard: Steelyard
) -> None:
    folder = disk("230m")
    options = ("--knob", "fake.profiler_fault=fill", "--rounds", "2", "--no-certify", "--json")
    run = finished(folder, steelyard("run", *LINE, "-f", "fake", "-f", "dummy", *options, STEELYARD_RUNS=str(folder)))
    done = steelyard("explain", "--plain", STEELYARD_RUNS=str(folder))
    assert done.returncode == 3, done.stderr
    assert "Its trace does not fit into the" in " ".join(done.stdout.split())
    assert "Its trace does not fit into the" in (run.folder / "report.html").read_text()
    assert not list(folder.rglob("filler"))
    assert len(list(run.folder.glob("profiles/*dummy*/rules.json"))) == 1
    disk("64m")
    full = steelyard("explain", "--plain", "--fresh", STEELYARD_RUNS=str(folder))
    assert full.returncode == 2
    advice = f"MiB left. Free at least 200 MiB, then continue with: steelyard explain --run {run.folder.name}"
    assert advice in full.stderr.splitlines()[-1]
    shown = json.loads(steelyard("report", "--json", STEELYARD_RUNS=str(folder)).stdout)
    assert _verdicts(shown["comparisons"]) == _verdicts(run.result["comparisons"])

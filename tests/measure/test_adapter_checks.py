"""Which processes check an adapter, and how their events become findings; the processes are scripted."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from measure.scripted_session import Screen
from steelyard.catalog import frameworks
from steelyard.errors import UserError
from steelyard.measure import adapter_checks, launch
from steelyard.measure.doctor import Finding
from steelyard.plan.options import Options
from steelyard.results.trials import Trial

if TYPE_CHECKING:
    from collections.abc import Callable

    from steelyard_worker.case import Settings
    from steelyard_worker.protocol import Job

WORKLOADS = Path(__file__).parents[1] / "workloads"
OPTIONS = Options(frameworks=("fake",), workload_folders=(str(WORKLOADS),))
NOT_ACCEPTED = Finding("mode no-such-value", "ok", "It does not exist, and it is not accepted.")

Answer = list[dict[str, Any]]


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[tuple[Job, Path, launch.Guard]]:
    """The processes that were started; each is refused where its settings do not exist, and passes a check otherwise."""
    return script(monkeypatch, tmp_path, answer)


def script(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    events: Callable[[Job], Answer],
    error: tuple[str, str] | None = None,
) -> list[tuple[Job, Path, launch.Guard]]:
    monkeypatch.setenv("STEELYARD_CACHE", str(tmp_path / "cache"))
    found: list[tuple[Job, Path, launch.Guard]] = []

    def run(job: Job, python: Path, watch: Callable[[dict[str, Any]], None], guard: launch.Guard) -> Trial:
        found.append((job, python, guard))
        for event in events(job):
            watch(event)
        return Trial(Path(job.folder), job, error=error)

    monkeypatch.setattr(launch, "launch", run)
    return found


def answer(job: Job) -> Answer:
    settings = job.case.settings
    if adapter_checks.UNKNOWN in (settings.mode, settings.knobs["fault"], settings.knobs["profiler_fault"]):
        return [{"event": "error", "kind": "setting", "message": "There is no such value."}]
    if job.kind == "settings":
        return [{"event": "hello"}, {"event": "done"}]
    return [{"event": "check", "name": "loss", "passed": True, "message": ""}, {"event": "done"}]


def examine(options: Options = OPTIONS) -> dict[str, Finding]:
    found = adapter_checks.examine(options, Screen())
    assert len({finding.name for finding in found}) == len(found)
    return {finding.name: finding for finding in found}


def test_every_declared_mode_precision_and_knob_gets_a_process(
    started: list[tuple[Job, Path, launch.Guard]],
) -> None:
    examine()
    usual = started[0][0].case.settings
    assert usual.mode == "scripted"
    assert usual.precision == "float32"
    assert not usual.deterministic

    def changed(**knobs: Any) -> Settings:
        return replace(usual, knobs={**usual.knobs, **knobs})

    knobs = frameworks.framework("fake").knobs
    expected = [
        ("contract", usual),
        ("contract", replace(usual, deterministic=True)),
        ("contract", replace(usual, precision="float64")),
        ("settings", changed(step_us=10001)),
        ("settings", changed(noise=1.0)),
        ("settings", changed(process_noise=1.0)),
        *(("settings", changed(fault=value)) for value in knobs["fault"].values),
        ("settings", changed(fault="no-such-value")),
        ("settings", changed(fault_step=21)),
        ("settings", changed(fault_rank=1)),
        *(("settings", changed(profiler_fault=value)) for value in knobs["profiler_fault"].values),
        ("settings", changed(profiler_fault="no-such-value")),
        ("settings", changed(accumulate=2)),
        ("settings", replace(usual, mode="no-such-value")),
    ]
    assert [(job.kind, job.case.settings) for job, _, _ in started] == expected
    folders = {Path(job.folder) for job, _, _ in started}
    assert sorted(folder.name for folder in folders) == sorted(str(number) for number in range(len(expected)))
    assert len({folder.parent for folder in folders}) == 1
    assert {python for _, python, _ in started} == {Path(__import__("sys").executable)}
    assert {guard.silence_s for _, _, guard in started} == {600.0}
    assert {job.case.workload for job, _, _ in started} == {"line"}


def test_the_progress_names_every_process(started: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[tuple[Any, ...]] = []
    monkeypatch.setattr(Screen, "stage", lambda _, title: shown.append((title,)))
    monkeypatch.setattr(Screen, "progress", lambda _, *said: shown.append(said))
    examine()
    progress = shown[shown.index(("Checks",)) + 1 :]
    assert progress[:2] == [("mode scripted", 0, 0), ("deterministic", 1, 0)]
    assert progress[-1] == ("mode no-such-value", len(started) - 1, 0)


def test_the_preparation_of_data_reports_its_progress_to_nobody(
    started: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare = adapter_checks.case_inputs.prepare

    def with_progress(plan: Any, report: Callable[[Any], None]) -> Any:
        report(0.5)
        return prepare(plan, report)

    monkeypatch.setattr(adapter_checks.case_inputs, "prepare", with_progress)
    assert examine()


def test_a_kept_contract_is_reported_per_setting_and_per_check(started: list[Any]) -> None:
    found = examine()
    assert found["mode scripted: settings"] == Finding("mode scripted: settings", "ok", "Read back as requested.")
    assert found["mode scripted: loss"] == Finding("mode scripted: loss", "ok", "As required.")
    assert found["deterministic: loss"].state == found["float64: loss"].state == "ok"
    assert found["step_us = 10001: settings"].sentence == "Read back as requested."
    assert found["mode no-such-value"] == NOT_ACCEPTED
    assert found["fault = no-such-value"].state == "ok"
    assert {finding.state for finding in found.values()} == {"ok"}
    assert len(found) == 1 + 3 * 2 + 3 + 9 + 1 + 1 + 18 + 1 + 1 + 1 + 1
    assert "float64" not in found, "only a framework without float64 gets a finding that says so"


def test_a_failed_check_is_bad_and_says_what_is_wrong(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def failing(job: Job) -> Answer:
        if job.kind == "contract":
            return [{"event": "check", "name": "loss", "passed": False, "message": "The loss is a sum"}]
        return answer(job)

    script(monkeypatch, tmp_path, failing)
    assert examine()["mode scripted: loss"] == Finding("mode scripted: loss", "bad", "The loss is a sum.")


def test_an_unknown_value_that_is_accepted_is_bad(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    script(monkeypatch, tmp_path, lambda _: [{"event": "done"}])
    found = examine()
    assert found["mode no-such-value"] == Finding(
        "mode no-such-value",
        "bad",
        "It does not exist, but applied() reports it: the request is returned, not read back.",
    )
    assert found["fault = no-such-value"].state == "bad"


@pytest.mark.parametrize(("kind", "state"), [("unsupported", "warn"), ("setting", "bad")])
def test_a_value_of_a_knob_may_be_unsupported_here_and_a_mode_may_not(
    kind: str, state: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    script(monkeypatch, tmp_path, lambda _: [{"event": "error", "kind": kind, "message": "Not here."}])
    found = examine()
    assert found["noise = 1.0"] == Finding("noise = 1.0", state, "Not here.")
    assert found["mode scripted"] == Finding("mode scripted", "bad", "Not here.")


def test_a_process_that_ends_without_an_error_of_its_own_is_bad_with_the_launchers_message(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    script(monkeypatch, tmp_path, lambda _: [{"event": "hello"}], ("killed", "The worker was killed"))
    found = examine()
    assert found["mode scripted"] == Finding("mode scripted", "bad", "The worker was killed.")
    assert found["noise = 1.0"] == Finding("noise = 1.0", "bad", "The worker was killed.")


def test_the_kind_of_the_launchers_error_decides_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    script(monkeypatch, tmp_path, lambda _: [], ("unsupported", "Not here."))
    assert examine()["noise = 1.0"] == Finding("noise = 1.0", "warn", "Not here.")


def test_the_workers_own_message_counts_before_the_launchers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    own = {"event": "error", "kind": "unsupported", "message": "Not here."}
    script(monkeypatch, tmp_path, lambda _: [{"event": "hello"}, own], ("crash", "It ended."))
    assert examine()["noise = 1.0"] == Finding("noise = 1.0", "warn", "Not here.")


@pytest.mark.parametrize(
    ("reason", "sentence"),
    [
        ('\n[unsupported]\nfloat64 = "Its kernels are float32."\n', "Declared as absent: Its kernels are float32."),
        ("", "Declared as absent: it is not listed under [precisions]."),
    ],
)
def test_a_framework_without_float64_is_reported_with_its_reason(
    reason: str, sentence: str, started: list[Any], tmp_path: Path
) -> None:
    folder = tmp_path / "frameworks" / "single"
    folder.mkdir(parents=True)
    built_in = frameworks.WORKER / "frameworks" / "fake"
    knobs = """
[knobs.other]
default = true
values = []
help = ""

[knobs.count]
default = 1
values = [1, 2]
help = ""
"""
    text = (built_in / "framework.toml").read_text().replace('float64 = ""\n', "").replace("reference = 1\n", "")
    text = text.replace("[modes]\n", '[modes]\nsecond = "Another"\n') + knobs + reason
    (folder / "framework.toml").write_text(text)
    (folder / "adapter.py").write_text((built_in / "adapter.py").read_text())
    (folder / "workloads").mkdir()
    (folder / "workloads" / "line.py").write_text((WORKLOADS / "line" / "fake.py").read_text())
    options = replace(OPTIONS, frameworks=("single",), framework_folders=(str(tmp_path / "frameworks"),))
    try:
        found = examine(options)
        assert found["float64"] == Finding("float64", "ok", sentence)
        assert not any("other" in name for name in found), "a switch without listed values has no other value to try"
        assert {"count = 1: settings", "count = 2: settings"} <= found.keys()
        assert "count = no-such-value" not in found, "a number has no unknown name"
        modes = [job.case.settings.mode for job, _, _ in started if job.kind == "contract"]
        assert modes == ["second", "scripted", "scripted"]
    finally:
        frameworks.use(())


def test_the_smallest_workload_that_the_framework_implements_is_used(started: list[Any], tmp_path: Path) -> None:
    for name, features in (("line", 80), ("narrow", 4), ("none", 2), ("refused", 2), ("inexact", 2)):
        folder = tmp_path / "workloads" / name
        shutil.copytree(WORKLOADS / "line", folder)
        spec = (folder / "spec.toml").read_text()
        larger = spec[spec.index("[presets.small]") :].replace("presets.small", "presets.large")
        smaller = spec.replace('name = "line"', f'name = "{name}"').replace("features = 8", f"features = {features}")
        (folder / "spec.toml").write_text(f"{smaller}\n{larger}")
    (tmp_path / "workloads" / "none" / "fake.py").unlink()
    with (tmp_path / "workloads" / "refused" / "spec.toml").open("a") as spec_file:
        spec_file.write('\n[unsupported]\nfake = "No such operator."\n')
    with (tmp_path / "workloads" / "inexact" / "spec.toml").open("a") as spec_file:
        spec_file.write('\n[unsupported]\n"fake/float32" = "Its loss overflows."\n')
    own = replace(OPTIONS, workload_folders=(str(tmp_path / "workloads"),))
    found = examine(own)
    assert {(job.case.workload, job.case.preset) for job, _, _ in started} == {("narrow", "small")}
    assert found["workload"].sentence == (
        "Checked on narrow:small, the smallest that it implements (another: -w NAME:PRESET)."
    )
    started.clear()
    assert examine(replace(own, workloads=("line:large",)))["workload"].sentence == "Checked on line:large."
    assert {(job.case.workload, job.case.preset) for job, _, _ in started} == {("line", "large")}
    with pytest.raises(UserError, match=r"^There is nothing to measure: Fake has no implementation of none "):
        examine(replace(own, workloads=("none:small",)))


def test_a_framework_that_implements_no_workload_cannot_be_checked(started: list[Any], tmp_path: Path) -> None:
    folder = tmp_path / "frameworks" / "bare"
    folder.mkdir(parents=True)
    built_in = frameworks.WORKER / "frameworks" / "fake"
    text = (built_in / "framework.toml").read_text().replace('title = "Fake"', 'title = "Bare"')
    (folder / "framework.toml").write_text(text)
    (folder / "adapter.py").write_text("")
    options = replace(OPTIONS, frameworks=("bare",), framework_folders=(str(tmp_path / "frameworks"),))
    try:
        with pytest.raises(
            UserError, match=rf"^Bare implements no workload, .* Write bare\.py .*NAME\.py in {folder}\.$"
        ):
            examine(options)
    finally:
        frameworks.use(())
    assert not started

"""Does an adapter keep its contract? Processes of its framework check it; their events become findings."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from steelyard.catalog import frameworks, workloads
from steelyard.catalog.frameworks import Framework
from steelyard.console import Screen
from steelyard.environments import setup
from steelyard.errors import UserError
from steelyard.inputs import case_inputs
from steelyard.measure import jobs, launch
from steelyard.measure.doctor import Finding
from steelyard.plan import resolve
from steelyard.plan.options import Options
from steelyard_worker.case import Case, Settings
from steelyard_worker.job_kinds import CONTRACT, SETTINGS
from steelyard_worker.protocol import Job

UNKNOWN = "no-such-value"


@dataclass(frozen=True)
class Process:
    """One process to start. `title` names it in findings; `kind` is that of its job; `refused`: it must not succeed."""

    title: str
    kind: str
    settings: Settings
    refused: bool = False


def examine(options: Options, screen: Screen) -> list[Finding]:
    """Return a finding for every check of the one framework in `options`; the first finding names the workload.

    The workload is the one in `options`, or else the smallest that the framework implements. Raises UserError where the framework
    is unknown, implements no workload, or has no environment.
    """
    frameworks.use(options.framework_folders)
    (name,) = options.frameworks
    known = frameworks.framework(name)
    _check_own_networks(known)
    plan = resolve.plan(replace(options, workloads=options.workloads or (_smallest(known, options),)))
    environments = setup.begin(plan, screen)
    environments.failures()
    screen.stage("Checks")
    (inputs,) = case_inputs.prepare(plan, lambda _: None).values()
    (variant,) = plan.variants
    with TemporaryDirectory() as folder:
        job = jobs.certifying(plan, variant, inputs, Path(folder))
        python = environments[variant.case.environment].python
        findings = [_chosen(variant.case, bool(options.workloads))]
        for number, process in enumerate(_processes(known, variant.case.settings)):
            screen.progress(process.title, number, 0)
            findings += _findings(process, _events(job, process, Path(folder) / str(number), python))
    if "float64" not in known.precisions:
        reason = known.unsupported.get("float64", "it is not listed under [precisions].")
        findings.append(Finding("float64", "ok", f"Declared as absent: {reason}"))
    return findings


def _chosen(case: Case, asked: bool) -> Finding:
    why = "" if asked else ", the smallest that it implements (another: -w NAME:PRESET)"
    return Finding("workload", "ok", f"Checked on {case.workload}:{case.preset}{why}.")


def _check_own_networks(known: Framework) -> None:
    if known.exporters:
        raise UserError(
            f"{known.title} runs networks that other frameworks have exported, so its adapter is not checked alone. Certify one: "
            f"steelyard certify -w resnet18:tiny -f {known.name} --task inference"
        )


def _smallest(known: Framework, options: Options) -> str:
    """Return the workload and preset with the fewest parameters that the framework implements."""
    found = workloads.find(options.workload_folders)
    counts = {
        f"{name}:{preset}": network.trainable_count
        for name, workload in found.items()
        if workload.implemented_by(known.name) and not workload.obstacle(known.name, "float32")
        for preset, network in workload.networks().items()
    }
    if not counts:
        raise UserError(
            f"{known.title} implements no workload, so its adapter cannot be checked. Write {known.name}.py in a workload's "
            f"folder (--workloads DIR), or workloads/NAME.py in {known.folder}."
        )
    return min(counts, key=lambda name: counts[name])


def _processes(known: Framework, settings: Settings) -> Iterator[Process]:
    """Yield the processes that check everything that `framework.toml` declares."""
    for mode in known.modes:
        yield Process(f"mode {mode}", CONTRACT, replace(settings, mode=mode))
    yield Process("deterministic", CONTRACT, replace(settings, deterministic=True))
    for precision in known.precisions:
        if precision != settings.precision:
            yield Process(precision, CONTRACT, replace(settings, precision=precision))
    for name, knob in known.knobs.items():
        for value in knob.values or _other_values(knob.default):
            yield Process(f"{name} = {value}", SETTINGS, replace(settings, knobs={**settings.knobs, name: value}))
        if isinstance(knob.default, str) and knob.values:
            changed = replace(settings, knobs={**settings.knobs, name: UNKNOWN})
            yield Process(f"{name} = {UNKNOWN}", SETTINGS, changed, refused=True)
    yield Process(f"mode {UNKNOWN}", SETTINGS, replace(settings, mode=UNKNOWN), refused=True)


def _other_values(default: Any) -> tuple[Any, ...]:
    """Return a value beside the default for a knob without a list of values."""
    return (default + 1,) if isinstance(default, (int, float)) and not isinstance(default, bool) else ()


def _events(job: Job, process: Process, folder: Path, python: Path) -> list[dict[str, Any]]:
    """Run one process; returns its events, with the launcher's error if there is one."""
    events: list[dict[str, Any]] = []
    case = replace(job.case, settings=process.settings)
    wanted = replace(job, kind=process.kind, case=case, folder=str(folder))
    trial = launch.launch(wanted, python, events.append, launch.Guard())
    if trial.error and not any(event["event"] == "error" for event in events):
        events.append({"event": "error", "kind": trial.error[0], "message": trial.error[1]})
    return events


def _findings(process: Process, events: list[dict[str, Any]]) -> list[Finding]:
    errors = [event for event in events if event["event"] == "error"]
    if process.refused and errors:
        return [Finding(process.title, "ok", "It does not exist, and it is not accepted.")]
    if process.refused:
        sentence = "It does not exist, but applied() reports it: the request is returned, not read back."
        return [Finding(process.title, "bad", sentence)]
    if errors:
        # A value of a knob may need a device or a processor that this machine lacks; a mode must work wherever it is listed.
        excused = process.kind == SETTINGS and errors[0]["kind"] == "unsupported"
        return [Finding(process.title, "warn" if excused else "bad", _sentence(errors[0]["message"]))]
    read_back = Finding(f"{process.title}: settings", "ok", "Read back as requested.")
    return [read_back, *(_checked(process, each) for each in events if each["event"] == "check")]


def _checked(process: Process, event: dict[str, Any]) -> Finding:
    title, passed = f"{process.title}: {event['name']}", event["passed"]
    return Finding(title, "ok", "As required.") if passed else Finding(title, "bad", _sentence(event["message"]))


def _sentence(text: str) -> str:
    return text if text.endswith(".") else f"{text}."

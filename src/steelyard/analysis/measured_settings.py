"""The settings that a group was measured with, in the same terms as those of documents."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from steelyard.statistics.conditions import OFF, ON, RANDOM, TF32, Conditions
from steelyard_worker.case import TRAINING

if TYPE_CHECKING:
    from steelyard.plan.run_plan import Group
    from steelyard.results.record import RunRecord
    from steelyard_worker.case import Case

SYNTHETIC = "synthetic"
"""The name of data sets that tests draw."""


def of_group(record: RunRecord, group: Group) -> Conditions:
    """Return the settings that all cases of a group share, with the machine's devices and the frameworks' versions."""
    names = _device(record, group.cases[0])
    return replace(of_plan(group), device_names=names, versions=_versions(record, group))


def of_plan(group: Group) -> Conditions:
    """Return the settings that a group is to be measured with."""
    case = group.cases[0]
    rule = case.optimizer
    name = str(case.data.get("name", ""))
    trained: dict[str, Any] = {}
    if case.task == TRAINING:
        trained = {"optimizer": rule.name, "learning_rate": rule.learning_rate, "schedule": rule.schedule.summary}
        trained |= {"momentum": rule.momentum} if rule.name == "sgd" else {}
    return Conditions(
        cells=(f"{case.workload}:{case.preset}",),
        devices=(case.settings.device,),
        precision=_precision(group),
        batches=(case.batch,),
        data=RANDOM if name in ("", SYNTHETIC) else name + _limit(case),
        sizes={key: value for key, value in case.sizes.items() if key != "batch"},
        epochs=group.protocol.schedule.epochs,
        dropout=ON if case.settings.knobs.get("dropout") == ON else OFF,
        **trained,
    )


def _limit(case: Case) -> str:
    """Return how many training samples are used, where not all are."""
    limit = case.data.get("train_limit", 0)
    return f", {limit:,} training samples" if limit else ""


def _precision(group: Group) -> str:
    """Return the number format: TensorFloat-32 where all cases ask for it."""
    settings = [each.settings for each in group.cases]
    rounded = all(each.device == "cuda" and each.knobs.get("tf32") is True for each in settings)
    return TF32 if rounded else settings[0].precision


def _device(record: RunRecord, case: Case) -> str:
    host = record.host
    found = {"cpu": [host.get("cpu_model", "")], "cuda": host.get("gpus", []), "ascend": host.get("npus", [])}
    return ", ".join(dict.fromkeys(filter(None, found.get(case.settings.device, []))))


def _versions(record: RunRecord, group: Group) -> str:
    """Return the versions that ran, where they are known, such as `PyTorch 2.9.1, MXNet 1.9.1`."""
    known = {
        case.environment: f"{record.plan.frameworks[case.framework].title} {record.environments[case.environment]['version']}"
        for case in group.cases
        if case.environment in record.environments
    }
    return ", ".join(dict.fromkeys(known.values()))

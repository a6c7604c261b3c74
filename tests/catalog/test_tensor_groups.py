"""Groups of tensors in spec.toml: what they mean for a network, and one sentence for each mistake."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from steelyard.catalog import frameworks, workloads
from steelyard.errors import UserError
from steelyard.plan.options import Options
from steelyard.plan.resolve import plan
from steelyard_worker.case import Settings, TensorGroup

if TYPE_CHECKING:
    from steelyard.catalog.workloads import Workload
    from steelyard_worker.case import Optimizer

LINE = Path(__file__).resolve().parent.parent / "workloads" / "line"
DECAY = 'weight_decay = 0.1\ndecay = ["dense"]\n'


def written(folder: Path, lines: str, frozen: str = "") -> Workload:
    """Return the smallest workload with these lines in the table of its SGD; `frozen`: a tensor that is not trained."""
    own = shutil.copytree(LINE, folder / "line")
    spec = own / "spec.toml"
    spec.write_text(spec.read_text().replace("momentum = 0.9\n", f"momentum = 0.9\n{lines}\n"))
    if frozen:
        code = (own / "network.py").read_text()
        changed = re.sub(rf'("{frozen}", .*)\),\n', r"\1, trainable=False),\n", code)
        assert changed != code
        (own / "network.py").write_text(changed)
    return workloads.parse(spec)


def rule_of(workload: Workload) -> Optimizer:
    return workload.optimizer(workload.presets["small"])


def test_patterns_become_names_of_tensors_in_the_order_of_the_network(tmp_path: Path) -> None:
    found = rule_of(written(tmp_path, DECAY + 'groups = [{ tensors = ["*.bias", "head.w*"], rate = 3, decay = 0.0 }]'))
    assert found.groups == (TensorGroup(("head.weight", "head.bias"), 3.0, 0.0),)
    assert found.decay == ("head.weight",)


def test_groups_may_be_tables_of_their_own(tmp_path: Path) -> None:
    workload = written(tmp_path, "")
    spec = workload.folder / "spec.toml"
    groups = '[[optimizers.sgd.groups]]\ntensors = ["head.bias"]\nrate = 2.0\n\n[optimizers.adam]'
    spec.write_text(spec.read_text().replace("[optimizers.adam]", groups))
    assert rule_of(workloads.parse(spec)).groups == (TensorGroup(("head.bias",), 2.0),)


WRONG = {
    "groups = 3": "line 13: 'groups' must be a list of tables, but it is 3.",
    'groups = ["head"]': "line 13: 'groups[0]' must be a table, but it is 'head'.",
    "groups = [{ rate = 2.0 }]": "line 13: table 1 of [[optimizers.sgd.groups]] lacks the key 'tensors'. Add it.",
    "groups = [{ tensors = [], rate = 2.0 }]": "line 13: 'tensors' of table 1 of [[optimizers.sgd.groups]] is empty.",
    'groups = [{ tensors = "head.*", rate = 2.0 }]': "'tensors' must be a list of strings, but it is 'head.*'.",
    'groups = [{ tensors = ["head.*"], rate = 0.0 }]': "'rate' must be above 0, but it is 0.0.",
    'groups = [{ tensors = ["head.*"], decay = -1.0 }]': "'decay' must be at least 0, but it is -1.0.",
    'groups = [{ tensors = ["head.*"], rates = 2.0 }]': "has an unknown key 'rates'. Did you mean 'rate'?",
    'groups = [{ tensors = ["head.*"] }]': (
        "line 13: table 1 of [[optimizers.sgd.groups]] has no effect: its learning rate and weight decay are those of the rest."
    ),
    'groups = [{ tensors = ["head.*"], rate = 2.0, decay = 0.0 }]': (
        "'decay' has no effect in table 1 of [[optimizers.sgd.groups]]: the optimizer has no weight decay. Remove it."
    ),
}


@pytest.mark.parametrize("lines", WRONG)
def test_a_wrong_table_is_named_with_its_line(lines: str, tmp_path: Path) -> None:
    with pytest.raises(UserError) as raised:
        written(tmp_path, lines)
    assert WRONG[lines] in str(raised.value)


@pytest.mark.parametrize(
    ("lines", "frozen", "why"),
    [
        (
            'groups = [{ tensors = ["haed.*"], rate = 2.0 }]',
            "",
            "The pattern 'haed.*' of a group of tensors matches no tensor of line:small. Did you mean 'head.bias'?",
        ),
        (
            'groups = [{ tensors = ["*.bias"], rate = 2.0 }]',
            "head.bias",
            "The pattern '*.bias' of a group of tensors matches only tensors that are not trained of line:small.",
        ),
        (
            'groups = [{ tensors = ["head.*"], rate = 2.0 }, { tensors = ["*.bias"], rate = 3.0 }]',
            "",
            "The patterns 'head.*' and '*.bias' of groups of tensors overlap in line:small: both match 'head.bias'.",
        ),
        (
            'groups = [{ tensors = ["head.*", "*.weight"], rate = 2.0 }]',
            "",
            "The patterns 'head.*' and '*.weight' of groups of tensors overlap in line:small: both match 'head.weight'.",
        ),
        (
            DECAY + 'groups = [{ tensors = ["*.bias"], decay = 0.0 }]',
            "",
            "The weight decay of the group '*.bias' has no effect on line:small: none of its tensors decays.",
        ),
    ],
)
def test_a_group_that_does_not_fit_the_network_is_refused_at_planning(
    lines: str, frozen: str, why: str, tmp_path: Path
) -> None:
    written(tmp_path, lines, frozen)
    options = Options(workload_folders=(str(tmp_path),), workloads=("line:small",), frameworks=("fake",))
    with pytest.raises(UserError) as raised:
        plan(options)
    assert why in str(raised.value)


def test_a_plan_has_the_groups_in_its_cases_and_in_its_record(tmp_path: Path) -> None:
    written(tmp_path, 'groups = [{ tensors = ["head.bias"], rate = 2.0 }]')
    options = Options(workload_folders=(str(tmp_path),), workloads=("line:small",), frameworks=("fake",))
    found = plan(options)
    (case,) = found.groups[0].cases
    assert case.optimizer.groups == (TensorGroup(("head.bias",), 2.0),)
    (group,) = found.to_dict()["groups"]
    recorded = group["variants"][0]["case"]["optimizer"]["groups"]
    assert recorded == ({"tensors": ("head.bias",), "rate": 2.0, "decay": 1.0},)


@pytest.mark.parametrize(
    ("framework", "mode", "knobs", "reason"),
    [
        ("tensorflow", "fit", {"update": "keras"}, "an optimizer of Keras has one learning rate for all variables"),
        ("tensorflow", "graph", {"embedding": "sparse"}, "groups of tensors were not tried with slices"),
        ("pytorch", "eager", {"embedding": "sparse"}, "groups of tensors were not tried with sparse gradients"),
    ],
)
def test_what_a_framework_cannot_do_with_groups_is_refused_with_its_reason(
    framework: str, mode: str, knobs: dict[str, str], reason: str, tmp_path: Path
) -> None:
    rule = rule_of(written(tmp_path, 'groups = [{ tensors = ["head.bias"], rate = 2.0 }]'))
    rule, known = replace(rule, momentum=0.0), frameworks.framework(framework)
    settings = known.complete(Settings(mode, knobs=knobs))
    assert reason in known.obstacle(settings, rule)
    assert known.obstacle(settings, replace(rule, groups=())) == ""

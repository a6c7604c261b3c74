"""Learning rates of every step: computed once, the same for every framework, and changing in every certificate."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.catalog import workloads
from steelyard.certificates.method import FULL_SIZE, STEPS
from steelyard.errors import UserError
from steelyard.inputs import case_inputs, data, rates
from steelyard.plan import resolve
from steelyard.plan.options import Options
from steelyard_worker import tensors
from steelyard_worker.case import Optimizer, RateSchedule

LINE = Path(__file__).parents[1] / "workloads" / "line"
UNITS = st.sampled_from(["epochs", "steps"])
LENGTHS = st.integers(2, 30)
FACTORS = st.floats(0.05, 0.95)
SCHEDULES = st.one_of(
    st.builds(
        lambda unit, factor, every, warmup: RateSchedule("step", unit, factor, every, warmup=warmup),
        UNITS,
        FACTORS,
        LENGTHS,
        st.integers(0, 4),
    ),
    st.builds(
        lambda unit, factor, at: RateSchedule("step", unit, factor, at=tuple(sorted(at))),
        UNITS,
        FACTORS,
        st.sets(st.integers(1, 40), min_size=1, max_size=4),
    ),
    st.builds(lambda unit, length: RateSchedule("cosine", unit, length=length), UNITS, LENGTHS),
    st.builds(lambda unit, warmup: RateSchedule(unit=unit, warmup=warmup), UNITS, LENGTHS),
)


def rule(schedule: RateSchedule, rate: float = 0.1) -> Optimizer:
    return Optimizer("sgd", rate, schedule=schedule)


def found(schedule: RateSchedule, steps: int, per_epoch: int = 3) -> list[float]:
    """Return the rates of steps in units of the full one."""
    made = rates.learning_rates(rule(schedule, 1.0), steps, per_epoch)
    assert (made.dtype, made.shape) == (np.float32, (steps,))
    return made.tolist()


def test_a_step_multiplies_the_rate_after_whole_epochs_or_steps() -> None:
    assert found(RateSchedule("step", "epochs", 0.5, 2), 13) == [1] * 6 + [0.5] * 6 + [0.25]
    assert found(RateSchedule("step", "steps", 0.5, 2), 5) == [1, 1, 0.5, 0.5, 0.25]


def test_the_places_of_steps_may_be_given() -> None:
    assert found(RateSchedule("step", "epochs", 0.5, at=(1, 3)), 11) == [1] * 3 + [0.5] * 6 + [0.25] * 2
    assert found(RateSchedule("step", "steps", 0.5, at=(1, 3)), 5) == [1, 0.5, 0.5, 0.25, 0.25]


def test_a_cosine_falls_to_zero_and_stays_there() -> None:
    cosine = found(RateSchedule("cosine", "steps", length=4), 7)
    assert cosine == pytest.approx([1, 0.8535534, 0.5, 0.1464466, 0, 0, 0], abs=1e-7)


def test_a_warm_up_rises_linearly_and_multiplies_what_follows() -> None:
    assert found(RateSchedule(unit="steps", warmup=4), 6) == [0.25, 0.5, 0.75, 1, 1, 1]
    assert found(RateSchedule("step", "steps", 0.5, 3, warmup=2), 7) == [0.5, 1, 1, 0.5, 0.5, 0.5, 0.25]


@given(schedule=SCHEDULES, steps=st.sampled_from([FULL_SIZE.steps, STEPS]), per_epoch=st.integers(1, 50))
def test_the_rates_of_a_certificate_change_and_begin_as_those_of_training(
    schedule: RateSchedule, steps: int, per_epoch: int
) -> None:
    spec = rule(schedule)
    certified = rates.certificate_rates(spec, steps, per_epoch)
    real = rates.comparable_losses(spec, steps) - 1
    training = rates.learning_rates(spec, max(steps, 2), per_epoch)
    assert len(certified) == steps
    assert certified[:real].tolist() == training[:real].tolist()
    assert (certified != np.float32(spec.learning_rate)).any()  # an implementation that ignores the schedule differs
    if steps > 1:
        assert len(set(certified.tolist())) > 1
    assert (certified > 0).all()


def test_all_losses_of_a_certificate_are_those_of_training_where_the_rate_is_constant() -> None:
    assert rates.comparable_losses(rule(RateSchedule()), 5) == 5
    assert rates.comparable_losses(rule(RateSchedule(unit="steps", warmup=3)), 5) == 3


def own(tmp_path: Path, table: str, where: str = "optimizers.sgd") -> Path:
    folder = shutil.copytree(LINE, tmp_path / "own" / "line", ignore=shutil.ignore_patterns("__pycache__"))
    with (folder / "spec.toml").open("a") as file:
        file.write(f"\n[{where}.schedule]\n{table}\n")
    return folder


def test_cases_that_differ_in_their_schedule_have_different_ids_and_inputs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STEELYARD_CACHE", str(tmp_path / "cache"))
    identities, ids = set(), set()
    for number, table in enumerate(('kind = "constant"', 'kind = "step"\nfactor = 0.5\nevery = 9\nunit = "steps"')):
        folder = own(tmp_path / str(number), table)
        plan = resolve.plan(Options(workloads=("line",), frameworks=("fake",), workload_folders=(str(folder.parent),)))
        (inputs,) = case_inputs.prepare(plan, data.silent).values()
        identities.add(inputs.identity)
        ids.add(plan.variants[0].case.id)
        if number:
            assert inputs.rates
            stored = tensors.read(inputs.rates)["rates"]
            assert stored[[0, 8, 9, 18]].tolist() == pytest.approx([0.1, 0.1, 0.05, 0.025])
        else:
            assert inputs.rates is None
    assert len(identities) == len(ids) == 2


def test_a_preset_has_its_own_schedule_unless_another_optimizer_is_chosen(tmp_path: Path) -> None:
    known = workloads.parse(own(tmp_path, 'kind = "cosine"\nlength = 4\nunit = "steps"', "presets.small") / "spec.toml")
    preset = known.preset("small")
    assert known.optimizer(preset).schedule == RateSchedule("cosine", "steps", length=4)
    assert known.optimizer(preset, "adam").schedule == RateSchedule()


def test_epochs_without_data_are_refused_before_anything_is_created(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STEELYARD_CACHE", str(tmp_path / "cache"))
    folder = own(tmp_path, 'kind = "step"\nfactor = 0.5\nevery = 2')
    plan = resolve.plan(Options(workloads=("line",), frameworks=("fake",), workload_folders=(str(folder.parent),)))
    with pytest.raises(
        UserError, match=r"The learning rate of line:small changes by epochs, but synthetic batches have none\."
    ):
        case_inputs.check(plan)
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize(
    ("schedule", "words"),
    [
        (RateSchedule(), "constant"),
        (RateSchedule("step", "epochs", 0.9, 10), "x0.9 every 10 epochs"),
        (RateSchedule("step", "steps", 0.1, at=(30, 60)), "x0.1 at steps 30, 60"),
        (RateSchedule("cosine", "epochs", length=8, warmup=1), "cosine over 8 epochs, warm-up of 1 epochs"),
    ],
)
def test_a_schedule_is_described_in_words(schedule: RateSchedule, words: str) -> None:
    assert schedule.summary == words


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        ('kind = "stairs"', "'kind' must be one of 'constant', 'step', 'cosine', but it is 'stairs'."),
        ('kind = "step"\nfactor = 0.5\nevery = 2\nunit = "hours"', "'unit' must be one of 'epochs', 'steps'"),
        ('kind = "step"\nevery = 2', "a step learning rate needs 'factor', a number above 0 other than 1."),
        ('kind = "step"\nfactor = -0.5\nevery = 2', "a step learning rate needs 'factor'"),
        (
            'kind = "step"\nfactor = 0.5',
            "a step learning rate needs either 'every', a whole number of at least 1, or 'at'",
        ),
        ('kind = "step"\nfactor = 0.5\nevery = 2\nat = [3]', "a step learning rate needs either 'every'"),
        (
            'kind = "step"\nfactor = 0.5\nat = [3, 3]',
            "'at' must be whole numbers from 1 in increasing order, but it is [3, 3].",
        ),
        ('kind = "step"\nfactor = 0.5\nat = [1.5]', "'at' must be a list of whole numbers, but it is 1.5."),
        ('kind = "step"\nfactor = 0.5\nat = [0, 3]', "'at' must be whole numbers from 1"),
        ('kind = "cosine"', "a cosine learning rate needs 'length', a whole number of at least 1."),
        ('kind = "cosine"\nlength = 3\nevery = 2', "'every' has no effect on a cosine learning rate. Remove it."),
        ('kind = "step"\nfactor = 0.5\nat = [3]\nevery = -1', "'every' must be at least 0, but it is -1."),
        ('kind = "step"\nfactor = inf\nevery = 2', "'factor' must be a finite number, but it is inf."),
        ("warmup = -1", "'warmup' must be at least 0, but it is -1."),
        ("warm_up = 1", "has an unknown key 'warm_up'. Did you mean 'warmup'?"),
    ],
)
def test_a_wrong_schedule_is_refused_with_file_and_line(table: str, sentence: str, tmp_path: Path) -> None:
    path = own(tmp_path, table) / "spec.toml"
    with pytest.raises(UserError) as raised:
        workloads.parse(path)
    assert sentence in str(raised.value)
    assert str(raised.value).startswith(f"{path}, line ")

"""The parts that all adapters share: the check of tensors, optimizer scalars, and the batches for a loader."""

from __future__ import annotations

import numpy as np
import pytest

from steelyard.catalog import frameworks
from steelyard_worker.batches import Source, Split, Steps
from steelyard_worker.case import Optimizer, Settings
from steelyard_worker.frameworks import named_tensors, update_scalars
from steelyard_worker.network import Network, Parameter
from steelyard_worker.protocol import Refusal

NETWORK = Network((Parameter("head.weight", (3, 2), "dense", "x"), Parameter("head.bias", (3,), "bias", "x")), (), 0)
SHAPES = {"head.weight": (3, 2), "head.bias": (3,)}


def test_an_implementation_with_the_tensors_of_the_network_is_accepted() -> None:
    named_tensors.check(NETWORK, SHAPES)


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ({"head.weight": (3, 2)}, "The implementation has no tensor head.bias, which network.py lists."),
        (SHAPES | {"tail.bias": (3,)}, "The implementation has a tensor tail.bias, which network.py does not list."),
        (
            SHAPES | {"head.weight": (2, 3)},
            "Tensor head.weight of the implementation has shape (2, 3); network.py says (3, 2).",
        ),
    ],
)
def test_a_missing_an_extra_and_a_misshapen_tensor_are_refused(
    shapes: dict[str, tuple[int, ...]], message: str
) -> None:
    with pytest.raises(Refusal) as refused:
        named_tensors.check(NETWORK, shapes)
    assert str(refused.value) == message
    assert refused.value.kind == "implementation"


def test_scalars_of_a_step_are_the_corrections_and_the_rate_of_the_epsilon_hat_form() -> None:
    found = update_scalars.of_step(Optimizer("adam", 0.1), 1)
    assert found == pytest.approx((0.1, 0.001, 0.1 * 0.001**0.5 / 0.1))


def test_only_listed_tensors_decay() -> None:
    spec = Optimizer("sgd", 0.1, weight_decay=0.01, decay=("head.weight",))
    assert [spec.decay_of(name) for name in SHAPES] == [0.01, 0.0]


def test_adjusted_constants_cancel_the_rounding_of_a_kernel_in_float32() -> None:
    """The first step of a kernel that computes 1 - beta in float32, against the formula in exact arithmetic."""
    spec, gradient = Optimizer("adam", 0.1, epsilon=1e-3), 0.25
    rate, epsilon = update_scalars.adam_constants(spec)

    def step(rate: float, epsilon: float, first: float, second: float) -> float:
        return rate * first * gradient / ((second * gradient**2) ** 0.5 + epsilon)

    exact = step(spec.learning_rate, spec.epsilon, 1 - spec.beta1, 1 - spec.beta2)
    rounded = [float(np.float32(1) - np.float32(beta)) for beta in (spec.beta1, spec.beta2)]
    assert step(rate, epsilon, *rounded) == pytest.approx(exact, rel=1e-12)
    assert step(spec.learning_rate, spec.epsilon, *rounded) != pytest.approx(exact, rel=1e-6)


def test_constants_do_not_change_in_float64() -> None:
    spec = Optimizer("adam", 0.1)
    assert update_scalars.adam_constants(spec, np.float64) == pytest.approx((0.1, 1e-8), rel=1e-15)


def test_item_i_for_a_loader_is_the_batch_of_step_i() -> None:
    order = np.array([[3, 0], [1, 2]], np.int32)
    steps = Steps(Source(Split({"point": np.arange(4)}, None), order))
    assert len(steps) == 2
    assert [steps[number]["point"].tolist() for number in range(2)] == order.tolist()


@pytest.mark.parametrize("name", sorted(frameworks.all_frameworks()))
def test_settings_are_completed_with_the_defaults_of_all_knobs_but_later_ones(name: str) -> None:
    known = frameworks.framework(name)
    defaults = {knob: each.default for knob, each in known.knobs.items() if not each.later}
    assert known.complete(Settings("mode")).knobs == defaults
    assert {knob for knob, each in known.knobs.items() if each.later} <= {"accumulate"}
    for knob in known.knobs:
        assert known.complete(Settings("mode", knobs={knob: "set"})).knobs[knob] == "set"

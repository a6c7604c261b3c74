"""Initial weights: distributions, one seed per tensor, and reuse of written weights."""

import math
from pathlib import Path

import numpy as np
import pytest

from steelyard.errors import UserError
from steelyard.inputs import weights
from steelyard.inputs.weights import initialise
from steelyard_worker.network import Parameter
from steelyard_worker.tensors import BYTES, read


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("STEELYARD_CACHE", str(tmp_path))
    return tmp_path


def one(initial: str, shape: tuple[int, ...], seed: int = 0, name: str = "layer.weight") -> np.ndarray:
    """Return one newly initialised tensor."""
    return read(initialise([Parameter(name, shape, "dense", initial)], seed))[name]


def test_kaiming_normal_has_the_standard_deviation_of_its_fan_out():
    values = one("kaiming_normal_fan_out", (64, 32, 3, 3))
    assert values.dtype == np.float32
    assert values.std() == pytest.approx(math.sqrt(2 / (64 * 9)), rel=0.02)
    assert abs(values.mean()) < 0.002


@pytest.mark.parametrize(
    ("initial", "shape", "bound"),
    [
        ("glorot_uniform", (40, 60), math.sqrt(6 / 100)),
        ("glorot_uniform", (8, 4, 5, 5), math.sqrt(6 / (4 * 25 + 8 * 25))),
        ("lecun_uniform_in", (100, 64), 1 / 8),
        ("lecun_uniform_in:512", (3000,), 1 / math.sqrt(512)),
        ("uniform:0.05", (500, 10), 0.05),
    ],
)
def test_uniform_distributions_fill_their_interval_evenly(initial: str, shape: tuple[int, ...], bound: float):
    values = one(initial, shape).astype(np.float64)
    assert np.abs(values).max() <= bound * (1 + 1e-6)
    assert np.abs(values).max() > bound * 0.98
    assert values.std() == pytest.approx(bound / math.sqrt(3), rel=0.06)
    assert abs(values.mean()) < 0.06 * bound


def test_normal_has_its_standard_deviation():
    assert one("normal:0.01", (300, 300)).std() == pytest.approx(0.01, rel=0.02)


def test_truncated_normal_stays_within_two_deviations_without_rescaling():
    values = one("trunc_normal:0.02", (300, 300))
    assert np.abs(values).max() <= np.float32(2) * np.float32(0.02)
    assert values.std() == pytest.approx(
        0.02 * 0.87963, rel=0.02
    )  # the standard deviation of a normal distribution truncated at two deviations


@pytest.mark.parametrize("shape", [(256, 64), (64, 256), (16, 4, 3, 3), (50, 50)])
def test_orthogonal_has_an_orthonormal_shorter_side(shape: tuple[int, ...]):
    matrix = one("orthogonal", shape).reshape(shape[0], -1).astype(np.float64)
    small = matrix.T @ matrix if matrix.shape[0] >= matrix.shape[1] else matrix @ matrix.T
    np.testing.assert_allclose(small, np.eye(len(small)), atol=1e-6)


def test_orthogonal_signs_are_fixed_by_the_diagonal_of_r():
    shape = (24, 6)
    gaussian = weights.child_generator(0, "layer.weight").standard_normal(shape)
    triangle = one("orthogonal", shape).T.astype(np.float64) @ gaussian
    assert (np.diagonal(triangle) > 0).all()
    np.testing.assert_allclose(triangle, np.triu(triangle), atol=1e-5)


def test_constants_and_the_forget_gate():
    assert (one("constant:1", (5,)) == 1).all()
    assert one("forget_one", (8,)).tolist() == [0, 0, 1, 1, 0, 0, 0, 0]


def test_values_depend_on_seed_and_name_but_not_on_order_or_other_parameters():
    first, second = (Parameter(name, (4, 5), "dense", "normal:1") for name in ("a", "b"))
    together, swapped = read(initialise([first, second], 7)), read(initialise([second, first], 7))
    for name in ("a", "b"):
        np.testing.assert_array_equal(together[name], swapped[name])
        np.testing.assert_array_equal(together[name], one("normal:1", (4, 5), 7, name))
    assert (together["a"] != together["b"]).any()
    assert (together["a"] != one("normal:1", (4, 5), 8, "a")).any()


def test_tensors_are_stored_in_network_order():
    first, second = (Parameter(name, (2,), "bias", "constant:0") for name in ("b", "a"))
    assert list(read(initialise([first, second], 0))) == ["b", "a"]
    assert list(read(initialise([second, first], 0))) == ["a", "b"]


def test_a_tensor_larger_than_a_block_has_the_same_values(monkeypatch):
    whole = one("normal:1", (1000, 7))
    monkeypatch.setattr(weights, "BLOCK_ELEMENTS", 100)
    np.testing.assert_array_equal(one("normal:1", (1000, 7), name="layer.weight"), whole)
    generator = weights.child_generator(0, "layer.weight")
    np.testing.assert_array_equal(whole.ravel(), generator.standard_normal(7000, dtype=np.float32))


def test_written_weights_are_reused_unless_they_are_damaged():
    parameters = [Parameter("a", (10, 10), "dense", "normal:1")]
    folder = initialise(parameters, 0)
    written = (folder / BYTES).stat().st_mtime_ns
    assert (initialise(parameters, 0) / BYTES).stat().st_mtime_ns == written
    expected = read(folder)["a"].copy()
    (folder / BYTES).write_bytes(b"")
    np.testing.assert_array_equal(read(initialise(parameters, 0))["a"], expected)


@pytest.mark.parametrize(
    ("initial", "shape", "sentence"),
    [
        ("kaiming_normal", (4, 4), "unknown initial value .* Did you mean 'kaiming_normal_fan_out'"),
        ("normal", (4, 4), "a finite number is required"),
        ("normal:x", (4, 4), "could not convert"),
        ("uniform:nan", (4, 4), "a finite number is required"),
        ("glorot_uniform", (4,), r"of shape \[4\] cannot be initialised as 'glorot_uniform'"),
        ("orthogonal", (4,), "the shape must be a matrix"),
        ("forget_one", (6,), "four gate blocks"),
    ],
)
def test_an_invalid_distribution_is_reported_with_the_parameter(initial: str, shape: tuple[int, ...], sentence: str):
    with pytest.raises(UserError, match=f"(?s)'layer.weight'.*{sentence}"):
        one(initial, shape)


def test_a_name_declared_twice_is_rejected():
    twice = Parameter("a", (2,), "bias", "constant:0")
    with pytest.raises(UserError, match="'a' is declared twice"):
        initialise([twice, twice], 0)


def test_a_ramp_rises_evenly_from_a_quarter_below_zero():
    np.testing.assert_allclose(one("ramp:2", (6,)), (-0.5, 0, 0.5, 1, 1.5, 2))
    with pytest.raises(UserError, match="the shape must be a vector"):
        initialise([Parameter("layer.weight", (2, 2), "dense", "ramp:2")], 0)


def test_as_if_trained_constants_become_values_around_them_and_nothing_else_changes():
    network = (
        *(
            Parameter(f"bn.{kind}", (4000,), kind, f"constant:{value}")
            for kind, value in (("running_mean", 0), ("running_var", 1))
        ),
        Parameter("head.weight", (3, 4), "dense", "glorot_uniform"),
    )
    plain, trained = read(initialise(network, 1)), read(initialise(weights.as_if_trained(network), 1))
    for name, centre in (("bn.running_mean", 0), ("bn.running_var", 1)):
        assert np.abs(trained[name] - centre).max() <= weights.SPREAD
        assert trained[name].std() == pytest.approx(weights.SPREAD / math.sqrt(3), rel=0.05)
    assert trained["bn.running_var"].min() > 0
    assert np.array_equal(trained["head.weight"], plain["head.weight"])

"""Losses, running statistics and optimizers: one changed setting is recognised, from what both sides computed."""

from __future__ import annotations

import numpy as np
import pytest

from steelyard.ports import causes
from steelyard.ports.causes import Place, losses, running_statistics, updates
from steelyard.ports.causes.updates import APART, CANONICAL, COUPLED, HAT, INSIDE, NONE, UNCORRECTED, Updates

DRAW = np.random.default_rng(5)
ROUNDING = 1e-7
LOGITS = DRAW.normal(size=(6, 7, 5)) * 2
LABELS = DRAW.integers(1, 5, (6, 7)).astype(float)
LABELS[0, :3] = 0


def loss_of(family, inputs, settings):
    return family.compute(Place(inputs, {}, np.zeros(1), np.zeros(1)), settings)


def of_every_value():
    """Yield family, inputs, usual settings, and settings with one other value."""
    shares = np.abs(LOGITS) / np.abs(LOGITS).sum(-1, keepdims=True)
    for family, inputs in (
        (losses.CROSS_ENTROPY, {"input": LOGITS, "target": LABELS}),
        (losses.CROSS_ENTROPY, {"input": shares, "target": LABELS}),
        (losses.OF_TERMS, {"input": LOGITS, "target": DRAW.uniform(size=LOGITS.shape)}),
    ):
        known = family.values(Place(inputs, {}, np.zeros(1), np.zeros(1)))
        usual = {name: values[0] for name, values in known.items()}
        for name, values in known.items():
            for value in values[1:]:
                if value != "second":
                    yield pytest.param(family, inputs, usual, usual | {name: value}, id=f"{family.name} {name} {value}")


@pytest.mark.parametrize(("family", "inputs", "usual", "other"), list(of_every_value()))
def test_every_form_of_a_loss_is_recognised(family, inputs, usual, other):
    one, two = (loss_of(family, inputs, settings) for settings in (usual, other))
    if np.allclose(one, two, rtol=1e-9):
        pytest.skip("both are the same on these arrays")
    if not np.isfinite([one, two]).all():
        pytest.skip("these arrays have no such loss")
    found = causes.explain(family, Place(inputs, {}, one, two), ROUNDING)
    assert found is not None
    again = [loss_of(family, inputs, settings) for settings in (found.left, found.right)]
    assert np.allclose([one, two], again, rtol=1e-6)
    assert len(found.differing) == 1


def test_cross_entropy_is_that_of_its_definition():
    usual = {"takes": "logits", "over": losses.MEAN, "smoothing": 0.1, "left out": 0, "classes": "last"}
    terms = []
    for row, label in zip(LOGITS.reshape(-1, 5), LABELS.reshape(-1).astype(int), strict=True):
        if label != 0:
            shares = np.exp(row) / np.exp(row).sum()
            wanted = np.full(5, 0.1 / 5)
            wanted[label] += 0.9
            terms.append(-(wanted * np.log(shares)).sum())
    found = loss_of(losses.CROSS_ENTROPY, {"input": LOGITS, "target": LABELS}, usual)
    assert np.allclose(found, np.mean(terms))


def test_logits_that_a_loss_of_labels_takes_for_probabilities_are_recognised():
    """Keras clips what it gets, and divides by the sum only then; logits may be negative."""
    rows = LOGITS.reshape(-1, 5)
    chosen = (np.arange(len(rows)), LABELS.reshape(-1).astype(int))
    one = -np.log((np.exp(rows) / np.exp(rows).sum(-1, keepdims=True))[chosen]).mean()
    clipped = np.clip(rows, 1e-7, 1 - 1e-7)
    other = -np.log((clipped / clipped.sum(-1, keepdims=True))[chosen]).mean()
    place = Place({"input": LOGITS, "target": LABELS}, {}, np.array([one]), np.array([other]))
    found = causes.explain(losses.CROSS_ENTROPY, place, ROUNDING)
    assert found is not None
    assert found.left_words == "a loss that takes logits"
    assert found.right_words.startswith("a loss that takes probabilities, clipped")


PICTURES = DRAW.normal(1, 2, size=(8, 3, 5, 5))


@pytest.mark.parametrize(
    ("shares", "subtracted", "differing"),
    [
        ((0.1, 0.01), (1, 1), {"share"}),
        ((0.1, 0.1), (1, 0), {"subtracted"}),
        ((0.1, 0.01), (1, 0), {"share", "subtracted"}),
        ((0.1, 0.0375), (0, 0), {"share"}),
    ],
)
def test_running_statistics_name_the_share_and_the_variance(shares, subtracted, differing):
    old = np.array([0.5, 1.0, 2.0])
    new = [
        (1 - share) * old + share * PICTURES.var((0, 2, 3), ddof=less)
        for share, less in zip(shares, subtracted, strict=True)
    ]
    inputs = {"input": PICTURES, "old": old, "is variance": np.array(True)}
    found = causes.explain(running_statistics.FAMILY, Place(inputs, {}, *new), ROUNDING)
    assert found is not None
    assert {*found.differing} == differing
    assert (found.left["share"], found.right["share"]) == shares


STEPS = 5
START = DRAW.normal(size=40)
GRADIENTS = [DRAW.normal(size=40) * size for size in (1.0, 0.5, 2.0, 0.1, 1.5)]
NORMS = [float(np.linalg.norm(each)) for each in GRADIENTS]
SGD = {"rule": "SGD", "momentum": 0.9, "nesterov": False, "damped": False, "decay": NONE, "amount": 0.0, "clip": None}
ADAM = {"rule": "Adam", "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-5, "form": CANONICAL, "decay": NONE, "amount": 0.0}
ADAM |= {"clip": None}


def course(settings, rates, start=START):
    """Return the weights after every step, computed here: not with the code that is tested."""
    w, first, second, found = start, np.zeros(40), np.zeros(40), []
    for t, (g, rate) in enumerate(zip(GRADIENTS, rates, strict=True), 1):
        g = g * min(1, settings["clip"] / np.linalg.norm(g)) if settings["clip"] else g
        g = g + settings["amount"] * w if settings["decay"] == COUPLED else g
        if settings["rule"] == "SGD":
            share = 1 - settings["momentum"] if settings["damped"] and t > 1 else 1
            first = settings["momentum"] * first + share * g
            step = g + settings["momentum"] * first if settings["nesterov"] else first
        else:
            first = settings["beta1"] * first + (1 - settings["beta1"]) * g
            second = settings["beta2"] * second + (1 - settings["beta2"]) * g**2
            mean, root = first / (1 - settings["beta1"] ** t), np.sqrt(second / (1 - settings["beta2"] ** t))
            if settings["form"] == CANONICAL:
                step = mean / (root + settings["epsilon"])
            elif settings["form"] == HAT:
                step = mean / (root + settings["epsilon"] / np.sqrt(1 - settings["beta2"] ** t))
            elif settings["form"] == INSIDE:
                step = mean / np.sqrt(root**2 + settings["epsilon"])
            else:
                step = first / (np.sqrt(second) + settings["epsilon"])
        w = w - rate * step - (rate * settings["amount"] * w if settings["decay"] == APART else 0)
        found.append(w)
    return found


def explained(one, other, declared=({}, {})):
    return updates.explain(Updates(START, GRADIENTS, one, other, NORMS, *declared), 1e-6)


@pytest.mark.parametrize(
    ("usual", "other"),
    [
        (SGD, {"momentum": 0.0}),
        (SGD, {"nesterov": True}),
        (SGD, {"damped": True}),
        (SGD, {"decay": COUPLED, "amount": 1e-4}),
        (SGD, {"decay": APART, "amount": 0.05}),
        (SGD, {"clip": 1.0}),
        (ADAM, {"epsilon": 1e-3}),
        (ADAM, {"form": HAT}),
        (ADAM, {"form": UNCORRECTED}),
        (ADAM, {"form": INSIDE}),
        (ADAM, {"beta2": 0.99}),
        (ADAM, {"decay": COUPLED, "amount": 0.01}),
        (ADAM, {"decay": APART, "amount": 0.01}),
        (ADAM, {"clip": 0.5}),
    ],
    ids=str,
)
def test_one_changed_constant_of_an_optimizer_is_recognised(usual, other):
    one, two = (course(usual | each, [0.01] * STEPS) for each in ({}, other))
    found = explained(one, two)
    assert found is not None
    assert {name: found.right[name] for name in found.differing} == pytest.approx(other)
    assert {name: found.left[name] for name in found.differing} == {name: usual[name] for name in other}


def test_a_schedule_that_is_one_step_late_shows_in_the_rates():
    warm = [0.002, 0.004, 0.006, 0.008, 0.01]
    found = explained(course(ADAM, warm), course(ADAM, [0.0005, *warm[:-1]]))
    assert found is not None
    assert found.differing == ("learning rate",)
    assert found.left_words == "learning rates 0.002, 0.004, 0.006, 0.008, 0.01"
    assert found.right_words == "learning rates 0.0005, 0.002, 0.004, 0.006, 0.008"


def test_a_schedule_that_begins_at_zero_shows_in_the_rates():
    """A warm-up that counts from 0 does nothing in its first step."""
    decayed = ADAM | {"decay": APART, "amount": 0.01}
    warm = [0.002, 0.004, 0.006, 0.008, 0.01]
    found = explained(course(decayed, warm), course(decayed, [0.0, *warm[:-1]]))
    assert found is not None
    assert found.right_words == "learning rates 0, 0.002, 0.004, 0.006, 0.008"


def test_weights_that_never_change_have_no_cause():
    assert explained(course(ADAM, [0.01] * STEPS), [START] * STEPS) is None


def test_a_constant_that_an_optimizer_declares_is_tried():
    other = ADAM | {"beta1": 0.55}
    one, two = course(ADAM, [0.01] * STEPS), course(other, [0.01] * STEPS)
    assert explained(one, two) is None
    found = explained(one, two, ({}, {"beta1": [0.55]}))
    assert found is not None
    assert (found.left_words, found.right_words) == ("beta1 0.9", "beta1 0.55")


def test_two_rules_are_named():
    found = explained(course(SGD, [0.01] * STEPS), course(ADAM, [0.001] * STEPS))
    assert found is not None
    assert (found.left_words, found.right_words) == ("SGD, learning rate 0.01", "Adam, learning rate 0.001")


def test_the_cause_of_another_tensor_is_tried_first_and_taken_only_if_it_fits():
    decayed = ADAM | {"decay": APART, "amount": 0.01}
    known = explained(course(ADAM, [0.01] * STEPS), course(decayed, [0.01] * STEPS))
    assert known is not None
    start = DRAW.normal(size=40)
    one, two, third = (course(each, [0.01] * STEPS, start) for each in (ADAM, decayed, ADAM | {"beta2": 0.99}))
    assert updates.explain(Updates(start, GRADIENTS, one, two, NORMS, {}, {}), 1e-6, [known]) is known
    other = updates.explain(Updates(start, GRADIENTS, one, third, NORMS, {}, {}), 1e-6, [known])
    assert other is not None
    assert other.differing == ("beta2",)


def test_updates_that_no_rule_makes_have_no_cause():
    one = course(ADAM, [0.01] * STEPS)
    assert explained(one, [each + DRAW.normal(size=40) * 1e-4 for each in one]) is None
    assert explained(one, one) is None


def test_weights_that_begin_at_zero_still_show_their_decay():
    """The first step of such weights says nothing of weight decay."""
    zeros = np.zeros(40)
    one, two = (course(ADAM | each, [0.01] * STEPS, zeros) for each in ({}, {"decay": APART, "amount": 0.5}))
    found = updates.explain(Updates(zeros, GRADIENTS, one, two, NORMS, {}, {}), 1e-6)
    assert found is not None
    assert found.right_words == "a weight decay of 0.5 apart from the gradient"


def test_float32_weights_are_recognised_within_their_rounding():
    one = [each.astype(np.float32) for each in course(ADAM, [0.01] * STEPS)]
    two = [each.astype(np.float32) for each in course(ADAM | {"decay": APART, "amount": 0.1}, [0.01] * STEPS)]
    found = updates.explain(Updates(START.astype(np.float32), GRADIENTS, one, two, NORMS, {}, {}), 1e-3)
    assert found is not None
    assert found.right_words == "a weight decay of 0.1 apart from the gradient"

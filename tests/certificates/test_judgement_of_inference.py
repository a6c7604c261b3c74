"""The judgement on synthetic dumps of an inference."""

from __future__ import annotations

import numpy as np
import pytest
import synthetic
from synthetic import FLOAT32, judged

from steelyard.certificates.causes import CAUSES
from steelyard.certificates.tensors import places
from steelyard_worker.network import Input, Network, Parameter


def inference_dumps() -> list[synthetic.Dump]:
    """Return the reference of an inference of three batches, and two noisy runs."""
    generator = np.random.default_rng(5)
    keys = [
        "after0/head.weight",
        *(f"inference{number}/logits" for number in (1, 2, 10)),
        "adversarial/inference1/logits",
    ]
    exact = {key: generator.standard_normal((4, 3)) for key in keys}
    noisy = [
        {key: array * (1 + FLOAT32.noise * generator.standard_normal(array.shape)) for key, array in exact.items()}
        for _ in range(2)
    ]
    return [exact, *noisy]


ONE_LAYER = Network((Parameter("head.weight", (4, 3), "dense", "normal:1"),), (Input("point", (3,), "float32"),), 12)


def test_the_outputs_of_an_inference_are_compared_in_the_order_of_the_batches_and_the_adversarial_one_last() -> None:
    labels = [place.label for place in places(inference_dumps()[0], ONE_LAYER).values()]
    assert labels == [
        '"head.weight" before the first step',
        'the output "logits" of batch 1',
        'the output "logits" of batch 2',
        'the output "logits" of batch 10',
        'the output "logits" on the adversarial batch',
    ]


@pytest.mark.parametrize(
    ("key", "named"),
    [
        ("inference2/logits", 'the output "logits" of batch 2'),
        ("adversarial/inference1/logits", 'the output "logits" on the adversarial batch'),
    ],
)
def test_an_output_of_an_inference_beyond_its_limit_is_named_with_its_batch_and_a_cause(key: str, named: str) -> None:
    runs = inference_dumps()
    assert judged(runs, runs[0], network=ONE_LAYER).passed
    wrong = judged(runs, runs[0] | {key: runs[0][key] * (1 + 1e-3)}, network=ONE_LAYER)
    assert not wrong.passed
    assert wrong.sentence.startswith(f"Different computation, first seen in {named}:")
    kind = "adversarial" if key.startswith("adversarial") else "inference output"
    assert wrong.sentence.endswith(CAUSES[kind])


def test_a_batch_that_was_not_saved_is_missing() -> None:
    runs = inference_dumps()
    candidate = {key: array for key, array in runs[0].items() if key != "inference10/logits"}
    found = judged(runs, candidate, network=ONE_LAYER)
    assert found.sentence.startswith('The output "logits" of batch 10 is missing.')

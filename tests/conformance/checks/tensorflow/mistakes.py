"""What the TensorFlow adapter relies on: the mistakes of a published program."""

from unittest import mock

import numpy as np

from checks.tensorflow.shared import adapter_of, classifier
from steelyard_worker.case import Optimizer
from steelyard_worker.frameworks.tensorflow import mistakes


def check_the_mistakes_of_the_published_program_have_the_losses_and_gradients_that_follow_from_them():
    """softmax twice: the loss of the probabilities; summed: as many times the gradient as the batch has samples."""

    def gradients(kind):
        built, source = classifier(adapter_of("eager", loss=kind), Optimizer("sgd", 0.1))
        _, loss, found = built.gradients(built.put(source.batch(0)))
        return built, source, loss, found["head.bias"]

    built, source, right, gradient = gradients("as-described")
    _, _, same, summed = gradients("summed")
    np.testing.assert_allclose(same, right, rtol=1e-6)
    np.testing.assert_allclose(summed, 5 * gradient, rtol=1e-6)
    batch = source.batch(0)
    logits = built.outputs(built.put(batch))["logits"].astype("f8")
    chances = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    again = np.exp(chances) / np.exp(chances).sum(1, keepdims=True)
    _, _, twice, flat = gradients("softmax-twice")
    np.testing.assert_allclose(twice, -np.log(again[np.arange(5), batch["label"]]).mean(), rtol=1e-5)
    assert np.linalg.norm(flat) < 0.8 * np.linalg.norm(gradient)
    np.testing.assert_allclose(gradients("softmax-twice-and-summed")[3], 5 * flat, rtol=1e-5)


def check_a_loss_without_its_mistake_is_reported():
    for kind in ("as-described", "softmax-twice", "summed", "softmax-twice-and-summed"):
        assert adapter_of("graph", loss=kind).applied()["loss"] == kind
    with mock.patch.object(mistakes, "_twice", lambda outputs: outputs):
        assert adapter_of("graph", loss="softmax-twice-and-summed").applied()["loss"] == "summed"

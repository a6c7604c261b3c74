"""What the MXNet adapter relies on: layers and the loss."""

from pathlib import Path

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon, nd

import steelyard_worker
from checks import ctc_golden
from steelyard_worker import network
from steelyard_worker.frameworks.mxnet import layers
from steelyard_worker.frameworks.mxnet.running_statistics import RunningStatistics

WORKLOADS = Path(steelyard_worker.__file__).parent / "workloads"


def check_ctc_agrees_with_the_enumeration_of_all_paths():
    loss = network.load(WORKLOADS / "deepspeech2", "mxnet").loss()
    loss.hybridize()

    def found(logits, batch):
        logits = nd.array(logits)
        logits.attach_grad()
        with autograd.record():
            value = loss(logits, *(nd.array(array, dtype="int32") for array in batch.values()))
        value.backward()
        return value.asscalar(), logits.grad.asnumpy()

    ctc_golden.compare(found)


def check_ctc_has_no_float64():
    """The reason why Deep Speech 2 is not offered in float64. If this fails, offer it."""
    logits = nd.zeros((4, 1, 3), dtype="float64")
    for dtype in ("float32", "float64", "int32"):
        labels, lengths, label_lengths = (nd.array(values, dtype=dtype) for values in ([[1, 2]], [4], [2]))
        try:
            nd.CTCLoss(
                logits, labels, lengths, label_lengths, use_data_lengths=True, use_label_lengths=True
            ).wait_to_read()
        except mx.MXNetError as error:
            assert "data type do not match" in str(error), error
        else:
            raise AssertionError(f"CTC of float64 logits runs with {dtype} labels.")


def check_running_variances_are_unbiased_where_the_number_of_values_changes():
    """The canonical recurrence in NumPy, over batches of two samples with different numbers of frames, some twice in a row."""
    norm = gluon.nn.BatchNorm(axis=1, momentum=0.9, epsilon=1e-5, in_channels=3, prefix="bn.")
    norm.initialize()
    named = dict(norm.collect_params().items())
    statistics = RunningStatistics(
        named, lambda shapes: {"bn": layers.BatchNorm(0.9, shapes[0][0] * shapes[0][2])}, ((2, 3, 8),)
    )
    generator, expected = np.random.default_rng(1), np.ones(3)
    for step, frames in enumerate((8, 5, 5, 3, 8)):
        x = nd.array(generator.normal(step, 1 + step, (2, 3, frames)))
        statistics.advance((x.shape,))
        with autograd.record():
            y = norm(x)
        y.backward()
        expected = 0.9 * expected + 0.1 * x.asnumpy().transpose(1, 0, 2).reshape(3, -1).astype(float).var(
            axis=1, ddof=1
        )
        if step in (1, 4):
            np.testing.assert_allclose(statistics.canonical()["bn.running_var"], expected, rtol=2e-6)

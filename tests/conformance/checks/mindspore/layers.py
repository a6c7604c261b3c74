"""What the MindSpore adapter relies on: layers and the loss."""

from pathlib import Path

import mindspore
import numpy as np
from mindspore import Tensor, nn

import steelyard_worker
from checks import ctc_golden
from steelyard_worker import network
from steelyard_worker.frameworks.mindspore import pooling

WORKLOADS = Path(steelyard_worker.__file__).parent / "workloads"


def check_running_variance_is_unbiased():
    layer = nn.BatchNorm1d(2, momentum=0.9).set_train()
    layer(Tensor(np.arange(8.0, dtype=np.float32).reshape(4, 2)))
    np.testing.assert_allclose(layer.moving_mean.asnumpy(), (0.3, 0.4), rtol=1e-5)
    np.testing.assert_allclose(layer.moving_variance.asnumpy(), (1.566667, 1.566667), rtol=1e-5)


def check_ctc_agrees_with_the_enumeration_of_all_paths():
    loss = network.load(WORKLOADS / "deepspeech2", "mindspore").loss()
    differentiate = mindspore.value_and_grad(loss, 0)

    def found(logits, batch):
        value, gradient = differentiate(Tensor(logits), *map(Tensor, batch.values()))
        return value.asnumpy(), gradient.asnumpy()

    ctc_golden.compare(found)


def check_an_average_includes_its_padding_and_a_maximum_rounds_up():
    averaged = pooling.AveragePool(3, 1, 1)(Tensor(np.ones((1, 1, 3, 3), "f4"))).asnumpy()
    np.testing.assert_allclose(averaged[0, 0, :2, :2] * 9, ((4, 6), (6, 9)), rtol=1e-6)
    for extent, window, expected in ((6, 3, (14, 16, 17)), (5, 2, (6, 8, 9)), (7, 3, (16, 18, 20)), (6, 2, (7, 9, 11))):
        rising = Tensor(np.arange(extent**2, dtype="f4").reshape(1, 1, extent, extent))
        found = pooling.MaxPool(window, 2, ceil=True)(rising).asnumpy()
        np.testing.assert_array_equal(found[0, 0, 0], expected)
    down = pooling.MaxPool(3, 2)(Tensor(np.arange(36, dtype="f4").reshape(1, 1, 6, 6))).asnumpy()
    np.testing.assert_array_equal(down[0, 0, 0], (14, 16))


def check_bins_that_do_not_divide_the_extent_overlap():
    x = np.arange(196, dtype="f4").reshape(1, 1, 14, 14)
    found = pooling.AdaptiveAveragePool(4)(Tensor(x)).asnumpy()
    np.testing.assert_allclose(found[0, 0, 0, 1], x[0, 0, 0:4, 3:7].mean(), rtol=1e-6)

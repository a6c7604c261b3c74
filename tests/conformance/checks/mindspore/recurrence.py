"""What the MindSpore adapter relies on: recurrent layers."""

import mindspore
import numpy as np
from mindspore import Tensor, nn, ops

from steelyard_worker.frameworks.mindspore import recurrent


class _SumOfSines(nn.Cell):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def construct(self, x):
        return ops.sin(self.layer(x)).sum()


def check_the_implementations_of_an_lstm_agree_and_are_told_apart():
    """Outputs and gradients of two layers in both directions, in float32, with weights for which tanh is exact (P-53)."""
    found = {}
    for kind in ("fused", "cell", "loop"):
        assert recurrent.implementation_of(kind) == kind
        with recurrent.built_as(kind):
            lstm = recurrent.Lstm(3, 4, layers=2, bidirectional=True)
        named = lstm.named()
        for number, (name, each) in enumerate(sorted(named.items())):
            drawn = 0.3 * np.random.default_rng(number).standard_normal(each.shape)
            each.set_data(Tensor(drawn.astype("f4")))
            each.name = name
        trained = [named[name] for name in sorted(named)]
        assert {each.name for each in lstm.trainable_params()} == set(named)
        x = Tensor(np.linspace(-1, 1, 30).reshape(5, 2, 3).astype("f4"))
        score = mindspore.value_and_grad(_SumOfSines(lstm), 0, tuple(trained))
        value, (of_x, gradients) = score(x)
        found[kind] = [each.asnumpy() for each in (value, of_x, *gradients)]
    for way in found.values():
        for each, expected in zip(way, found["fused"], strict=True):
            np.testing.assert_allclose(each, expected, rtol=1e-4, atol=1e-5)

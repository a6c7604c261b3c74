"""What the MXNet adapter relies on: recurrent layers."""

import mxnet as mx
import numpy as np
from mxnet import autograd, nd

from steelyard_worker.frameworks.mxnet import recurrent


def check_the_implementations_of_an_lstm_agree_and_are_told_apart():
    """Outputs and gradients in float64 of two layers in both directions, as a graph and operator by operator."""
    found, x = {}, nd.array(np.linspace(-2, 2, 30).reshape(5, 2, 3), dtype="float64")
    x.attach_grad()
    for kind in ("fused", "cell", "loop"):
        assert recurrent.implementation_of(kind) == kind
        for hybrid in (True, False):
            with recurrent.built_as(kind):
                lstm = recurrent.Lstm("l", 3, 4, 5, layers=2, bidirectional=True)
            lstm.cast("float64")
            lstm.initialize(mx.init.Zero())
            trained = {name: p for name, p in lstm.collect_params().items() if p.grad_req != "null"}
            assert len(trained) == 12, list(trained)
            for number, (_, each) in enumerate(sorted(trained.items())):
                each.set_data(nd.array(np.random.default_rng(number).standard_normal(each.shape), dtype="float64"))
            lstm.hybridize(hybrid)
            with autograd.record():
                y = lstm(x)
                score = nd.sin(y).sum()
            score.backward()
            gradients = [each.grad().asnumpy() for _, each in sorted(trained.items())]
            found[kind, hybrid] = [y.asnumpy(), x.grad.asnumpy(), *gradients]
    for way in found.values():
        for each, expected in zip(way, found["fused", False], strict=True):
            np.testing.assert_allclose(each, expected, rtol=1e-10, atol=1e-13)

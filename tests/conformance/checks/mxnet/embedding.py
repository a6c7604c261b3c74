"""What the MXNet adapter relies on: gradients of embeddings."""

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon, nd

from checks.mxnet.shared import parameter
from steelyard_worker.case import Optimizer
from steelyard_worker.frameworks.mxnet import layers, optimizers
from steelyard_worker.frameworks.mxnet import settings as process


def check_repeated_and_absent_embedding_rows_are_updated_once():
    p = parameter((1.0, 1.0, 1.0))
    update = optimizers.update_rule(Optimizer("sgd", 0.1), {"p": p})
    with autograd.record():
        loss = nd.take(p.data(), nd.array([1, 1])).sum()
    loss.backward()
    update.step(1)
    np.testing.assert_allclose(p.data().asnumpy(), (1.0, 0.8, 1.0), rtol=1e-6)


def check_row_sparse_gradients_give_the_dense_update_unless_it_is_lazy():
    """One word twice, then another one: momentum moves the first word again, unless only rows of the batch are updated."""
    found = {}
    for spec in (Optimizer("sgd", 0.1), Optimizer("sgd", 0.1, momentum=0.9), Optimizer("adam", 0.1)):
        for kind in ("dense", "sparse", "lazy"):
            table = gluon.nn.Embedding(3, 1)
            layers.choose_gradients(table, kind)
            table.initialize(mx.init.One())
            assert process._embedding(kind) == kind
            rule = optimizers.update_rule(spec, {"p": table.weight}, lazy=kind == "lazy")
            for word in (1, 2):
                with autograd.record():
                    score = table(nd.array([word, word])).sum()
                score.backward()
                rule.step(1)
            assert (table.weight.grad().stype == "default") == (kind == "dense")
            found[spec.name, spec.momentum, kind] = table.weight.data().asnumpy().ravel()
        np.testing.assert_allclose(
            found[spec.name, spec.momentum, "sparse"], found[spec.name, spec.momentum, "dense"], 1e-6
        )
    np.testing.assert_allclose(found["sgd", 0.0, "lazy"], found["sgd", 0.0, "dense"], 1e-6)
    for name, momentum, moved in (("sgd", 0.9, 0.8), ("adam", 0.0, 0.9)):
        np.testing.assert_allclose(found[name, momentum, "lazy"][1], moved, rtol=1e-5)
        assert found[name, momentum, "dense"][1] < moved - 0.04, found

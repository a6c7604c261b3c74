"""What the PyTorch adapter relies on: gradients of embeddings."""

import numpy as np
import torch

from checks.pytorch.shared import KNOBS
from steelyard_worker.case import Optimizer, Settings
from steelyard_worker.frameworks.pytorch import layers, optimizers
from steelyard_worker.frameworks.pytorch import settings as process


def check_repeated_and_absent_embedding_rows_are_updated_once():
    p = torch.nn.Parameter(torch.ones(3, 1))
    update = optimizers.update_rule(Optimizer("adam", 0.1, epsilon=1e-8), {"p": p})
    torch.nn.functional.embedding(torch.tensor([1, 1]), p).sum().backward()
    update.step()
    np.testing.assert_allclose(p.detach().numpy().ravel(), (1.0, 0.9, 1.0), rtol=1e-6)


def check_sparse_gradients_give_the_dense_update_of_sgd_and_the_update_of_rows_of_adam():
    """One word twice, then another one: with momentum, Adam moves the first word again, and SparseAdam does not."""
    found = {}
    for name, kind in (("sgd", "dense"), ("sgd", "sparse"), ("adam", "dense"), ("adam", "lazy")):
        table = process.placed(torch.nn.Embedding(3, 1), Settings("eager", knobs=KNOBS | {"embedding": kind}))
        torch.nn.init.ones_(table.weight)
        rule = optimizers.update_rule(Optimizer(name, 0.1), {"p": table.weight}, sparse=layers.sparse_tensors(table))
        for word in (1, 2):
            rule.zero_grad(set_to_none=True)
            table(torch.tensor([word, word])).sum().backward()
            rule.step()
        found[name, kind] = table.weight.detach().numpy().ravel()
        assert process.read_back(Settings("eager", knobs=KNOBS | {"embedding": kind}))["embedding"] == kind
    np.testing.assert_allclose(found["sgd", "sparse"], (1, 0.8, 0.8), rtol=1e-6)
    np.testing.assert_allclose(found["sgd", "sparse"], found["sgd", "dense"], rtol=1e-6)
    np.testing.assert_allclose(found["adam", "lazy"][:2], (1, 0.9), rtol=1e-5)
    assert found["adam", "dense"][1] < 0.85, found

"""One dense layer in NumPy, computed by einsum, for the dummy framework."""

import numpy as np


def forward(parameters, batch):
    """Return logits (N, classes)."""
    return {"logits": np.einsum("nf,cf->nc", batch["point"], parameters["head.weight"]) + parameters["head.bias"]}


def backward(parameters, batch, outputs):
    """Return the mean cross-entropy and the gradient of every tensor."""
    exponent = np.exp(outputs["logits"] - outputs["logits"].max(axis=1, keepdims=True))
    probability = exponent / exponent.sum(axis=1, keepdims=True)
    truth = np.eye(probability.shape[1], dtype=probability.dtype)[batch["label"]]
    loss = -np.log((probability * truth).sum(axis=1)).mean()
    slope = (probability - truth) / len(truth)
    return loss, {"head.weight": np.einsum("nc,nf->cf", slope, batch["point"]), "head.bias": np.einsum("nc->c", slope)}

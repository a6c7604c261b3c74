"""The weights of one small network, as PyTorch has them."""

import numpy as np

DRAW = np.random.default_rng(0)
W = {
    "conv.weight": DRAW.normal(size=(6, 3, 3, 3)) * 0.3,
    "conv.bias": DRAW.normal(size=6) * 0.1,
    "bn.weight": DRAW.uniform(0.5, 1.5, 6),
    "bn.bias": DRAW.normal(size=6) * 0.1,
    "bn.mean": DRAW.normal(size=6) * 0.1,
    "bn.var": DRAW.uniform(0.5, 2, 6),
    "up.weight": DRAW.normal(size=(16, 6)) * 0.3,
    "up.bias": DRAW.normal(size=16) * 0.1,
    "norm.weight": DRAW.uniform(0.5, 1.5, 16),
    "norm.bias": DRAW.normal(size=16) * 0.1,
    "down.weight": DRAW.normal(size=(5, 16)) * 0.3,
    "down.bias": DRAW.normal(size=5) * 0.1,
}
W = {name: array.astype("float32") for name, array in W.items()}

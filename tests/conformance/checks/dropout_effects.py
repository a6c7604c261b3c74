"""What dropout has to do, in numbers: in a layer, and in the networks that were published with it."""

from pathlib import Path

import numpy as np

import steelyard_worker
from checks.drawn import random_weights
from steelyard_worker import network
from steelyard_worker.case import Optimizer

WORKLOADS = Path(steelyard_worker.__file__).parent / "workloads"
RATES = (0.2, 0.5, 0.7)
UNITS = 200_000
NETWORKS = {
    "vgg16": {
        "channels": 3,
        "image": 32,
        "width": 4,
        "dense": 32,
        "batch_norm": False,
        "freeze_backbone": False,
        "classes": 10,
        "batch": 4,
    },
    "vgg16:convolutions": {
        "channels": 3,
        "image": 32,
        "width": 4,
        "dense": 0,
        "batch_norm": True,
        "conv_dropout": True,
        "freeze_backbone": False,
        "classes": 10,
        "batch": 4,
    },
    "googlenet": {
        "channels": 3,
        "image": 32,
        "width": 8,
        "five_by_five": False,
        "aux": True,
        "beta": 2.0,
        "classes": 10,
        "batch": 4,
    },
    "inceptionv3": {"channels": 3, "image": 75, "width": 4, "aux": False, "beta": 2.0, "classes": 10, "batch": 2},
}


def check_layer(dropped):
    """`dropped(ones, rate)` is what a layer makes of ones in training: the right share is zero, the rest has grown."""
    for rate in RATES:
        found = np.asarray(dropped(np.ones((200, UNITS // 200), np.float32), rate))
        # Five standard deviations of a share of that many units.
        assert abs(np.mean(found == 0) - rate) < 5 * np.sqrt(rate * (1 - rate) / UNITS), rate
        np.testing.assert_allclose(found[found != 0], 1 / (1 - rate), rtol=1e-6)
        again = np.asarray(dropped(np.ones((200, UNITS // 200), np.float32), rate))
        assert np.mean((again == 0) == (found == 0)) < 0.9, "the mask does not change from call to call"


def check_networks(framework, off, on, names=("vgg16", "vgg16:convolutions", "googlenet")):
    """`off` and `on` are adapters: in training their outputs differ, and those of `on` from step to step; in inference they do not."""
    for name in names:
        sizes, workload = NETWORKS[name], name.partition(":")[0]
        described = network.describe(WORKLOADS / workload, sizes)
        implementation = network.load_implementation(WORKLOADS / workload, workload, framework)
        weights, batch = random_weights(described), _batch(sizes)

        def built(adapter, rate=0.0, parts=(implementation, sizes, described, weights)):
            return adapter.trainer(*parts, Optimizer("sgd", rate))

        plain, trained = (_logits(each.gradients(each.put(batch))[0]) for each in (built(off), built(on)))
        for key in plain:
            assert _distance(trained[key], plain[key]) > 0.05, (name, key)
        still, moving = built(off), built(on)
        for key, expected in _logits(still.outputs(still.put(batch))).items():
            np.testing.assert_allclose(moving.outputs(moving.put(batch))[key], expected, rtol=1e-4, atol=1e-6)
        losses = moving.losses([moving.step(moving.put(batch)) for _ in range(2)])
        assert losses[0] != losses[1], (name, "equal weights and batches have equal losses, so the masks are equal")


def _logits(outputs):
    return {name: np.asarray(array) for name, array in outputs.items()}


def _distance(found, expected):
    return np.linalg.norm(found - expected) / np.linalg.norm(expected)


def _batch(sizes):
    draw = np.random.default_rng(2)
    image = draw.normal(size=(sizes["batch"], sizes["channels"], sizes["image"], sizes["image"])).astype(np.float32)
    return {"image": image, "label": np.arange(sizes["batch"], dtype=np.int32)}

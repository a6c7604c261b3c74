"""What the JAX adapter relies on: training on shares of a batch, on as many devices as this process has, which is one."""

from unittest import mock

import jax
import numpy as np

from checks.jax.shared import WORDS, WORKLOADS, draw, trainer
from steelyard_worker import network
from steelyard_worker.case import Optimizer
from steelyard_worker.frameworks.jax import sharding
from steelyard_worker.frameworks.jax.layers import Choices

IMAGES = {"channels": 3, "image": 32, "width": 8, "stem": "seed", "classes": 10, "batch": 4}
DROPPED = {
    "channels": 3,
    "image": 32,
    "width": 4,
    "dense": 32,
    "batch_norm": False,
    "freeze_backbone": False,
    "classes": 10,
    "batch": 4,
}


def by_share(workload, sizes, rate=0.1, *, dropout=False):
    """Return a trainer by shares, with the same random weights as `trainer` of `checks.jax.shared`."""
    described = network.describe(WORKLOADS / workload, sizes)
    weights = {p.name: (0.1 * draw(*p.shape)).astype("f4") for p in described.parameters}
    weights |= {p.name: np.ones(p.shape, "f4") for p in described.parameters if p.kind == "running_var"}
    kind = sharding.trainer(jax.devices()[:1], 1, by_share=True)
    implementation, rule = network.load(WORKLOADS / workload, "jax"), Optimizer("sgd", rate, momentum=0.9)
    return kind(implementation, sizes, described, weights, rule, "float32", Choices(dropout=dropout))


# (bytes of a bucket, bytes of a tensor that is exchanged by itself): every tensor by itself, few in a bucket, small ones in one
# bucket, and all in one. ResNet-18, which has tensors of four dimensions, is compiled for half a minute for all of them.
SIZES = ((1, sharding.LARGE), (300, sharding.LARGE), (sharding.BUCKET, 300), (sharding.BUCKET, 2**20))
EXCHANGED = (("lstm-imdb", WORDS, SIZES), ("resnet18", IMAGES, SIZES[1:3]))


def check_tensors_are_put_together_again_after_their_exchange():
    for workload, sizes, bytes_exchanged in EXCHANGED:
        _, plain, batch = trainer(workload, sizes)
        expected = plain.losses([plain.step(plain.put(batch)) for _ in range(3)])
        for most, large in bytes_exchanged:
            with mock.patch.object(sharding, "BUCKET", most), mock.patch.object(sharding, "LARGE", large):
                built = by_share(workload, sizes)
                losses = built.losses([built.step(built.put(batch)) for _ in range(3)])
            np.testing.assert_allclose(losses, expected, rtol=1e-5)
            state = plain.state()
            for name, found in built.state().items():
                np.testing.assert_allclose(
                    found, state[name], rtol=1e-3, atol=1e-5, err_msg=f"{name}, {most} and {large} bytes"
                )


def check_few_tensors_are_exchanged_at_a_time():
    tensors = {name: np.zeros(size, "f4") for name, size in zip("abcdefg", (3, 2, 1, 9, 4, 1, 5), strict=True)}
    with mock.patch.object(sharding, "BUCKET", 6 * 4):
        found = ["".join(each) for each in sharding._buckets(tensors)]
    assert found == ["abc", "d", "ef", "g"], found
    with mock.patch.object(sharding, "BUCKET", 10 * 4), mock.patch.object(sharding, "LARGE", 9 * 4):
        found = ["".join(each) for each in sharding._buckets(tensors)]
    assert found == ["abce", "d", "fg"], found


def check_every_step_draws_other_masks():
    built = by_share("vgg16", DROPPED, rate=0.0, dropout=True)
    image = draw(4, 3, 32, 32).astype("f4")
    placed = built.put({"image": image, "label": np.arange(4, dtype="i4")})
    losses = built.losses([built.step(placed) for _ in range(3)])
    assert len(set(losses.tolist())) == len(losses), losses

"""What the JAX adapter relies on: when work is done, what is compiled, and which batch comes next."""

import jax
import numpy as np

from checks.jax.shared import WORDS, trainer
from steelyard_worker.batches import Source, Split

IMAGES = {"channels": 3, "image": 32, "width": 8, "stem": "seed", "classes": 10, "batch": 4}


def check_synchronise_waits_for_every_buffer():
    """A step returns before its work is done; after `synchronise` every buffer is ready."""
    _, built, batch = trainer("resnet18", {**IMAGES, "width": 32, "batch": 16})
    placed, early = built.put(batch), 0
    for _ in range(5):
        built.step(placed)
        early += not built.loss.is_ready()
        built.synchronise()
        assert all(leaf.is_ready() for leaf in jax.tree.leaves((built.carry, built.loss)))
    assert early, "Every step had finished when its call returned: JAX is no longer asynchronous here."


def check_a_step_donates_its_buffers_and_keeps_the_batch():
    _, built, batch = trainer()
    placed, before = built.put(batch), built.carry
    built.step(placed)
    assert all(leaf.is_deleted() for leaf in jax.tree.leaves(before))
    assert not any(leaf.is_deleted() for leaf in placed.values())


def check_nothing_is_compiled_after_the_first_steps():
    for mode in ("jit", "no-jit"):
        adapter, built, batch = trainer(mode=mode)
        placed = built.put(batch)
        assert np.isfinite(built.losses([built.step(placed) for _ in range(2)])).all()
        first = adapter.compilations()
        handles = [built.step(placed) for _ in range(3)]
        built.synchronise()
        built.losses(handles)
        assert adapter.compilations() == first > 0, (mode, first, adapter.compilations())


def check_repeated_runs_are_bit_identical():
    runs = []
    for _ in range(2):
        _, built, batch = trainer("resnet18", IMAGES, deterministic=True)
        placed = built.put(batch)
        runs.append(built.losses([built.step(placed) for _ in range(5)]))
    assert np.array_equal(runs[0], runs[1])


def check_the_pipeline_keeps_the_order_of_the_run():
    adapter, built, _ = trainer()
    tokens = np.repeat(np.arange(20, dtype="i4")[:, None], WORDS["length"], axis=1)
    source = Source(Split({"tokens": tokens}, None), np.arange(20, dtype="i4").reshape(5, 4)[::-1])
    for workers in (0, 3):
        feed = adapter.pipeline(built, source, workers)
        found = [np.asarray(next(feed)["tokens"])[:, 0].tolist() for _ in range(12)]
        assert found == [source.batch(step)["tokens"][:, 0].tolist() for step in range(12)]
        feed.close()

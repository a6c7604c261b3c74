"""What the JAX adapter relies on: gradients of embeddings."""

import numpy as np

from checks.jax.shared import WORDS, trainer


def check_gradients_of_repeated_words_add_up_and_momentum_moves_absent_ones():
    """P-29, in float64: central differences for a word that occurs twice in every review; momentum updates it in later steps."""
    _, built, batch = trainer(precision="float64")
    batch["tokens"][:, 1] = batch["tokens"][:, 4] = 7
    placed = built.put(batch)
    _, _, gradients = built.gradients(placed)
    trained, fixed, _ = built.carry
    table, losses = trained["embedding.weight"], []
    for shift in (1e-5, -1e-5):
        shifted = {**trained, "embedding.weight": table.at[7, 2].add(shift)}
        losses.append(float(built._objective(shifted, fixed, placed)[0]))
    np.testing.assert_allclose(gradients["embedding.weight"][7, 2], (losses[0] - losses[1]) / 2e-5, rtol=1e-6)
    built.step(placed)
    before = built.state()["embedding.weight"]
    built.step(built.put({**batch, "tokens": np.where(batch["tokens"] == 7, 8, batch["tokens"])}))
    moved = built.state()["embedding.weight"][7] - before[7]
    np.testing.assert_allclose(moved, -0.1 * 0.9 * gradients["embedding.weight"][7], rtol=1e-9)


def check_a_frozen_embedding_is_unchanged_and_has_no_gradient():
    _, built, batch = trainer(sizes={**WORDS, "train_embedding": False})
    before = built.state()["embedding.weight"]
    built.step(built.put(batch))
    assert np.array_equal(built.state()["embedding.weight"], before)
    assert "embedding.weight" not in built.gradients(built.put(batch))[2]

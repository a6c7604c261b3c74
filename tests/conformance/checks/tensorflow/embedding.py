"""What the TensorFlow adapter relies on: gradients of embeddings."""

import numpy as np

from checks.tensorflow.shared import embedding_trainer
from steelyard_worker.case import Optimizer


def check_repeated_and_absent_embedding_rows_are_updated_once():
    for kernel in ("fused", "keras"):
        for mode in ("graph", "eager"):
            trained = embedding_trainer(kernel, mode)
            batch = trained.put({"tokens": np.array([1, 1], "i4")})
            np.testing.assert_array_equal(trained.gradients(batch)[2]["table"].ravel(), (0, 2, 0))
            trained.step(batch)
            np.testing.assert_allclose(trained.state()["table"].ravel(), (1.0, 0.9, 1.0), rtol=1e-5)


def check_slices_give_the_dense_update_of_sgd():
    for mode in ("graph", "eager"):
        trained = embedding_trainer("fused", mode, Optimizer("sgd", 0.1), "sparse")
        batch = trained.put({"tokens": np.array([1, 1], "i4")})
        np.testing.assert_array_equal(trained.gradients(batch)[2]["table"].ravel(), (0, 2, 0))
        trained.step(batch)
        np.testing.assert_allclose(trained.state()["table"].ravel(), (1.0, 0.8, 1.0), rtol=1e-6)

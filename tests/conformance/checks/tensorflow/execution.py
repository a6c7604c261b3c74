"""What the TensorFlow adapter relies on: when work is done."""

import time

import tensorflow as tf

from checks.tensorflow.shared import embedding_trainer


def check_synchronise_waits_for_issued_work():
    @tf.function
    def work(x):
        for _ in tf.range(150):
            x = tf.matmul(x, x) * 1e-3
        return x

    trained, x = embedding_trainer("fused", "graph"), tf.ones((512, 512))
    work(x)
    tf.config.experimental.set_synchronous_execution(False)

    def intervals():
        began = time.perf_counter()
        found = work(x)
        issued = time.perf_counter()
        trained.synchronise()
        waited = time.perf_counter()
        found.numpy()
        return issued - began, waited - began, time.perf_counter() - waited

    try:
        # On a busy machine this thread may have to wait for a core, so one undisturbed attempt is enough.
        attempts = []
        for _ in range(5):
            issuing, both, reading = intervals()
            if issuing < both / 5 and reading < both / 5:
                return
            attempts.append((issuing, both, reading))
    finally:
        tf.config.experimental.set_synchronous_execution(True)
    raise AssertionError(attempts)

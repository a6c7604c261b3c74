"""What the TensorFlow adapter relies on: training in Keras's `fit`."""

import gc
import itertools
import time
import weakref
from unittest import mock

import numpy as np

from checks.tensorflow.shared import adapter_of, classifier
from steelyard_worker import batches, timing
from steelyard_worker.case import Optimizer


def fitting_adapter(mode="fit", **more):
    """Return an adapter whose training step is Keras's, in a loop or in `fit`."""
    return adapter_of(mode, **{"update": "keras", **more})


def losses_in_blocks(adapter, spec, blocks=(1, 5, 14)):
    """Return the losses of blocks of steps on the pipeline, and the trainer."""
    built, source = classifier(adapter, spec)
    feed = adapter.pipeline(built, source, 0)
    found = [timing.time_block(built, feed, steps, time.perf_counter_ns) for steps in blocks]
    assert [len(block.stamps_ns) for block in found] == list(blocks)
    return np.concatenate([built.losses(block.handles) for block in found]), built


def check_fit_has_the_losses_and_weights_of_the_loop_on_the_same_batches_across_blocks():
    for spec in (Optimizer("sgd", 0.1, momentum=0.9), Optimizer("adam", 0.01)):
        expected, loop = losses_in_blocks(fitting_adapter("graph"), spec)
        found, fitted = losses_in_blocks(fitting_adapter(), spec)
        np.testing.assert_allclose(found, expected, rtol=1e-6)
        for name, tensor in loop.state().items():
            np.testing.assert_allclose(fitted.state()[name], tensor, rtol=1e-6, atol=1e-7)


def check_one_call_of_fit_trains_through_all_blocks_and_epochs():
    import keras

    calls, adapter = [], fitting_adapter()
    kept = keras.Model.fit

    def counted(self, *arguments, **options):
        calls.append(options["steps_per_epoch"])
        return kept(self, *arguments, **options)

    with mock.patch.object(keras.Model, "fit", counted):
        _, built = losses_in_blocks(adapter, Optimizer("sgd", 0.1), (1, 19, 20, 5))
    assert (calls, built._call.epochs, adapter.compilations()) == ([20], 3, 1)


def check_fit_goes_on_with_another_feed_and_with_single_batches():
    adapter = fitting_adapter()
    spec = Optimizer("sgd", 0.1)
    fitted, source = classifier(adapter, spec)
    loop, _ = classifier(fitting_adapter("graph"), spec)
    pipeline, cached = adapter.pipeline(fitted, source, 0), itertools.repeat(fitted.put(source.batch(7)))
    found = [*fitted.run(pipeline, 3, lambda: None), *fitted.run(cached, 2, lambda: None)]
    in_turns = batches.Turns([fitted.put(source.batch(number)) for number in (5, 6, 8)])
    found += [*fitted.run(in_turns, 4, lambda: None), *fitted.run(in_turns, 1, lambda: None)]
    found += [fitted.step(fitted.put(source.batch(number))) for number in (9, 4)]
    expected = [loop.step(loop.put(source.batch(number))) for number in (0, 1, 2, 7, 7, 5, 6, 8, 5, 6, 9, 4)]
    np.testing.assert_allclose(fitted.losses(found), loop.losses(expected), rtol=1e-6)


def check_a_failure_inside_fit_is_raised_where_the_step_was_asked_for():
    adapter = fitting_adapter()
    fitted, source = classifier(adapter, Optimizer("sgd", 0.1))
    with mock.patch.object(fitted.model, "_loss_of", mock.Mock(side_effect=MemoryError("planted"))):
        for _ in range(2):
            try:
                fitted.run(adapter.pipeline(fitted, source, 0), 1, lambda: None)
            except MemoryError as error:
                assert "planted" in str(error)
            else:
                raise AssertionError


def check_the_thread_of_fit_ends_with_its_trainer():
    adapter = fitting_adapter()
    fitted, source = classifier(adapter, Optimizer("sgd", 0.1))
    fitted.step(fitted.put(source.batch(0)))
    thread, gone = fitted._call._thread, weakref.ref(fitted)
    assert thread.is_alive()
    del fitted
    gc.collect()
    thread.join(10)
    assert gone() is None
    assert not thread.is_alive()


def check_training_without_fit_is_reported():
    """A loop over `train_on_batch` computes the same steps, but it is not what `fit` does."""
    import keras

    adapter = fitting_adapter(update="auto")
    found = adapter.applied()
    assert (found["mode"], found["update"]) == ("fit", "auto"), found

    def without_epochs(self, dataset, callbacks, **_):
        (hold,) = callbacks
        hold.set_model(self)
        for batch in dataset:
            self.train_on_batch(batch)
            hold.on_train_batch_end(0)
            if self.stop_training:
                break

    with mock.patch.object(keras.Model, "fit", without_epochs):
        assert adapter.applied()["mode"] == "unknown"

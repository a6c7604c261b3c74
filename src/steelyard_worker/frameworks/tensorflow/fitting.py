"""Training that Keras drives: `Model.compile`, and one call of `Model.fit` for each input.

`fit` does not return before its last epoch, but a process is measured in blocks of steps. So `fit` runs in a thread of its own. A
callback holds it after the last step of a block until the next block begins. What `fit` does once, such as building its iterator,
is part of the first step. What it does between two epochs is part of the block in which the next epoch begins.
"""

from __future__ import annotations

import functools
import itertools
import queue
import threading
import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import keras
import tensorflow as tf

from steelyard_worker.batches import Turns
from steelyard_worker.frameworks.tensorflow import optimizers
from steelyard_worker.frameworks.tensorflow.trainer import Learner

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from types import ModuleType

    from steelyard_worker.case import Optimizer
    from steelyard_worker.frameworks.base import Array
    from steelyard_worker.frameworks.tensorflow.layers import Variables
    from steelyard_worker.frameworks.tensorflow.predictor import Tensors, Wrap
    from steelyard_worker.network import Network

    Stamp = Callable[[], None]

# `fit` is asked for more epochs than any process trains.
EPOCHS = 10**9


@dataclass(frozen=True)
class Feed:
    """An endless data set, and the number of steps after which `fit` begins a new epoch; None: there is one epoch only."""

    dataset: tf.data.Dataset
    steps_per_epoch: int | None

    def __iter__(self) -> Iterator[Tensors]:
        return iter(self.dataset)


class FitTrainer(Learner):
    """A network that `Model.fit` trains with an optimizer of `keras.optimizers`."""

    def __init__(
        self,
        wrap: Wrap,
        variables: Variables,
        implementation: ModuleType,
        sizes: dict[str, Any],
        network: Network,
        weights: Mapping[str, Array],
        optimizer: Optimizer,
        rates: Array | None = None,
    ) -> None:
        super().__init__(wrap, variables, implementation, sizes, network, weights)
        # The model must not hold this trainer: the thread of `fit` keeps the model alive until this trainer is deleted.
        forward, inputs = self._forward, self.inputs

        def outputs(batch: Tensors) -> Tensors:
            found: Tensors = forward(*(batch[name] for name in inputs), training=True)
            return found

        self.model = Model(outputs, self._loss, list(self._trained.values()), variables.dtype)
        self.model.compile(optimizers.keras_optimizer(optimizer, self._trained, rates), jit_compile=False)
        self._call: FitCall | None = None
        self._feed: Any = None
        self._given: queue.SimpleQueue[Tensors | None] = queue.SimpleQueue()

    def run(self, feed: Any, steps: int, stamp: Stamp) -> list[tf.Tensor]:
        """Let `fit` do the next steps on a feed, and call `stamp` after each; returns their losses.

        Another feed than that of the last call ends the call of `fit`, and a new one begins.
        """
        if feed is not self._feed or self._call is None:
            self._feed, self._call = feed, self._begin(_feed(feed))
        return self._call.run(steps, stamp)

    def step(self, batch: Tensors) -> tf.Tensor:
        """Let `fit` do one step on a batch: all batches that are given in this way are the data set of one call."""
        if self._feed is not self._given or self._call is None:
            signature = {name: tf.TensorSpec(tensor.shape, tensor.dtype) for name, tensor in batch.items()}
            taken = self._given
            dataset = tf.data.Dataset.from_generator(lambda: iter(taken.get, None), output_signature=signature)
            self._feed, self._call = self._given, self._begin(Feed(dataset, None))
        self._given.put(batch)
        (loss,) = self._call.run(1, lambda: None)
        return loss

    def restart(self, weights: Mapping[str, Array]) -> None:
        """Assign weights and the first state of the optimizer to the variables that the function of `fit` uses.

        Between two calls of `run` or `step`, `fit` waits after a step, and computes nothing.
        """
        self._load(weights)
        optimizers.forget_by_keras(self.model.optimizer)

    def _begin(self, feed: Feed) -> FitCall:
        if self._call is not None:
            self._call.end()
        call = FitCall(self.model, feed)
        weakref.finalize(self, _end, call, self._given)
        return call


def _end(call: FitCall, given: queue.SimpleQueue[Tensors | None]) -> None:
    given.put(None)
    call.end()


def _feed(feed: Any) -> Feed:
    """Return a feed for `fit`: batches that are used again and again stay on their device."""
    if isinstance(feed, Turns):
        taking_turns = [tf.data.Dataset.from_tensors(batch) for batch in feed.placed]
        return Feed(functools.reduce(tf.data.Dataset.concatenate, taking_turns).repeat(), None)
    if isinstance(feed, itertools.repeat):
        return Feed(tf.data.Dataset.from_tensors(next(feed)).repeat(), None)
    found: Feed = feed
    return found


class Model(keras.Model):
    """A Keras model around a network whose variables are its own. `last`: the loss of the last step."""

    def __init__(
        self,
        outputs: Callable[[Tensors], Tensors],
        loss: Callable[[Tensors, Tensors], tf.Tensor],
        trained: list[tf.Variable],
        dtype: tf.DType,
    ) -> None:
        super().__init__(dtype=dtype.name)
        self._outputs_of, self._loss_of, self._trained = outputs, loss, (lambda: trained)
        self.last = tf.Variable(tf.zeros((), dtype), trainable=False)
        self.traces = 0
        self.built = True

    @property
    def trainable_weights(self) -> list[tf.Variable]:
        """The variables that the optimizer updates."""
        return self._trained()

    @property
    def trainable_variables(self) -> list[tf.Variable]:
        """The same, by the name that optimizers use."""
        return self._trained()

    def call(self, batch: Tensors, training: bool = False) -> Tensors:
        """Run the network in training mode, which is all that `fit` does here."""
        del training
        return self._outputs_of(batch)

    def compute_loss(
        self, x: Any = None, y: Any = None, y_pred: Any = None, sample_weight: Any = None, training: bool = True
    ) -> tf.Tensor:
        """Return the network's loss, and keep it: `fit` reports the mean over the epoch so far."""
        del y, sample_weight, training
        self.traces += 1
        loss = self._loss_of(y_pred, x)
        self.last.assign(loss)
        return loss

    def experimental_get_tracing_count(self) -> int:
        """Return how often the training step was traced, as a `tf.function` does."""
        return self.traces


class FitCall:
    """One call of `Model.fit` in a thread, which works only while `run` waits for it."""

    def __init__(self, model: Model, feed: Feed) -> None:
        self._go, self._done, self._ended = threading.Semaphore(0), threading.Semaphore(0), False
        self._error: BaseException | None = None
        self._hold = Hold(self._pause)
        self._thread = threading.Thread(target=self._fit, args=(model, feed), daemon=True)

    def run(self, steps: int, stamp: Stamp) -> list[tf.Tensor]:
        """Do some steps; returns their losses. An exception of `fit` is raised here."""
        self._hold.begin(steps, stamp)
        if self._thread.ident is None:
            self._thread.start()
            self._done.acquire()
        elif self._error is None:
            self._go.release()
            self._done.acquire()
        if self._error is not None:
            raise self._error
        return self._hold.losses

    def end(self) -> None:
        """Let `fit` return, and wait for that.

        Two calls of `fit` on one model would undo each other's `stop_training`, and a thread that still computes when the
        interpreter ends aborts the process.
        """
        self._ended = True
        self._go.release()
        if self._thread.ident is not None and self._thread is not threading.current_thread():
            self._thread.join()

    @property
    def epochs(self) -> int:
        """The number of epochs that `fit` has begun."""
        return self._hold.epochs

    def _fit(self, model: Model, feed: Feed) -> None:
        try:
            model.fit(
                feed.dataset,
                epochs=EPOCHS,
                steps_per_epoch=feed.steps_per_epoch,
                verbose=0,
                shuffle=False,
                callbacks=[self._hold],
            )
        except BaseException as error:  # raised again in the thread that waits
            self._error = error
        self._done.release()

    def _pause(self) -> bool:
        """Wait until the next block begins; returns whether `fit` has to stop."""
        self._done.release()
        self._go.acquire()
        return self._ended


class Hold(keras.callbacks.Callback):
    """Stamps every step, keeps its loss, and calls `pause` after the last step of a block."""

    def __init__(self, pause: Callable[[], bool]) -> None:
        super().__init__()
        self._pause, self._left, self.losses, self.epochs = pause, 0, list[tf.Tensor](), 0
        self._stamp: Stamp = lambda: None

    def begin(self, steps: int, stamp: Stamp) -> None:
        """Begin a block."""
        self._left, self._stamp, self.losses = steps, stamp, []

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Count the epochs."""
        del epoch, logs
        self.epochs += 1

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """End a step."""
        del batch, logs
        self.losses.append(self.model.last.read_value())
        self._stamp()
        self._left -= 1
        if not self._left and self._pause():
            self.model.stop_training = True


def observed_mode(dtype: tf.DType) -> str:
    """Return "fit" if a small model is trained by `Model.fit` in a graph, as the network is; otherwise "unknown"."""
    eager, weight = list[bool](), tf.Variable(tf.zeros((), dtype))

    def outputs(batch: Tensors) -> Tensors:
        eager.append(tf.executing_eagerly())
        return {"y": weight * batch["x"]}

    model = Model(outputs, lambda found, batch: tf.reduce_sum(found["y"] - batch["x"]), [weight], dtype)
    model.compile(keras.optimizers.SGD(0.1), jit_compile=False)
    call = FitCall(model, Feed(tf.data.Dataset.from_tensors({"x": tf.ones(1, dtype)}).repeat(), None))
    call.run(1, lambda: None)
    call.end()
    return "fit" if call.epochs == 1 and eager == [False] and not model.jit_compile else "unknown"

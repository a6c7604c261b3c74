"""Checks that every adapter must pass, whatever it drives: each writes one event with its result.

The checks examine effects, not what the adapter reports about itself. `steelyard doctor --adapter NAME` runs them.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard_worker import batches, timing
from steelyard_worker.frames import place_in
from steelyard_worker.protocol import ERROR_KINDS, Refusal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from steelyard_worker.batches import Batch
    from steelyard_worker.case import Optimizer
    from steelyard_worker.frameworks.base import Adapter, Array, Predictor, Trainer
    from steelyard_worker.network import Network
    from steelyard_worker.protocol import EventWriter, Job

    Build = Callable[[Optimizer], Trainer]

STEPS = 4
# The steps before `synchronise` take about this long, so that reading a few numbers is short beside them.
SYNCHRONISED_S, FEWEST, MOST = 0.3, 10, 200
LONGEST_WAIT = 0.25  # share of the whole time that may pass in reading results after `synchronise`
LOSS_TOLERANCE = 1e-3  # between losses of the same batches, where other batches differ by far more
STATE_TOLERANCE = 1e-2  # share of what four steps change; momentum that is left in place changes it by as much again
OUTPUT_TOLERANCE = 1e-4  # relative; by rounding, the outputs of two compiled programs differ by far less
UNKNOWN_RULE = "no-such-rule"


class Failed(Exception):
    """A check failed; the message is one sentence."""


@dataclass
class Subject:
    """The subject of the checks. `build` makes a new trainer with the initial weights, `predict` a predictor."""

    job: Job
    network: Network
    adapter: Adapter
    build: Build
    predict: Callable[[], Predictor]
    weights: Mapping[str, Array]
    batch: Batch

    @property
    def dtype(self) -> np.dtype[Any]:
        """The precision of the run."""
        return np.dtype(self.job.case.settings.precision)

    def trainer(self) -> Trainer:
        """Return a new trainer with the optimizer of the case."""
        return self.build(self.job.case.optimizer)


def check(
    job: Job,
    network: Network,
    adapter: Adapter,
    weights: Mapping[str, Array],
    build: Build,
    predict: Callable[[], Predictor],
    events: EventWriter,
) -> None:
    """Run every check; one that ends in an exception has failed, and the others still run."""
    subject = Subject(job, network, adapter, build, predict, weights, batches.synthetic_batch(job.data))
    for name, run in _checks(subject).items():
        try:
            run(subject)
        except Failed as failure:
            events.write("check", name=name, passed=False, message=str(failure))
        except Exception as error:  # any fault of an adapter fails the check in which it shows
            events.write(
                "check",
                name=name,
                passed=False,
                message=f"{type(error).__name__}: {error}{place_in(error, job.adapter_folder)}",
            )
        else:
            events.write("check", name=name, passed=True, message="")


def _checks(subject: Subject) -> dict[str, Callable[[Subject], None]]:
    found: dict[str, Callable[[Subject], None]] = {
        "weights": weights_are_loaded_exactly,
        "outputs": outputs_have_the_precision,
        "gradients": gradients_are_complete,
        "update": a_step_updates,
        "put copies": put_copies,
        "synchronise waits": synchronise_waits,
        "pipeline": pipeline_keeps_the_order,
        "inference": a_predictor_has_the_outputs_of_a_trainer,
        "inference waits": inference_waits,
        "restart": a_restart_is_a_new_beginning,
        "refusals": refusals_are_known,
    }
    if subject.job.case.settings.deterministic:
        found["determinism"] = equal_runs_are_equal
    return found | {"read back": settings_are_read_back}  # last, because it changes the settings of the process


def settings_are_read_back(subject: Subject) -> None:
    """Two adapters of one process report the same threads and determinism: a framework has these once for all.

    An adapter that returns what it was asked for reports two different values. Where a framework takes its settings only once,
    the second adapter cannot be made, and nothing is shown.
    """
    given = subject.job.case.settings
    other = replace(given, threads=given.threads + 1, deterministic=not given.deterministic)
    try:
        second = type(subject.adapter)(other)  # type: ignore[call-arg]  # the protocol says nothing of how adapters are made
        reports = subject.adapter.applied(), second.applied()
    except Exception:  # whatever it is, the framework did not take the settings
        return
    for name in ("threads", "deterministic"):
        asked = getattr(given, name), getattr(other, name)
        if tuple(each.get(name) for each in reports) == asked:
            raise Failed(
                f"applied() reports {name} = {asked[0]!r} of one adapter and {asked[1]!r} of another in the same process, as "
                "was asked of each: the request is returned, not read back."
            )


def weights_are_loaded_exactly(subject: Subject) -> None:
    """The state of a new trainer is the weights that it was given, bit by bit."""
    shapes = {parameter.name: parameter.shape for parameter in subject.network.parameters}
    state = subject.trainer().state()
    _same_names("state()", state, shapes)
    for name, shape in shapes.items():
        _check_array(f"state() of {name}", state[name], shape, subject.dtype)
        if not np.array_equal(state[name], np.asarray(subject.weights[name], subject.dtype)):
            raise Failed(f"state() returns other values for {name} than trainer() was given.")


def outputs_have_the_precision(subject: Subject) -> None:
    """Floating outputs are finite arrays in the precision of the run; in float64, with its accuracy."""
    trainer = subject.trainer()
    outputs = trainer.outputs(trainer.put(subject.batch))
    floating = {name: array for name, array in outputs.items() if np.issubdtype(np.asarray(array).dtype, np.floating)}
    for name, array in floating.items():
        _check_array(f"output {name}", array, np.shape(array), subject.dtype)
    if not floating:
        raise Failed("outputs() returns no floating array.")
    rounded = (np.array_equal(array, array.astype(np.float32)) for array in floating.values())
    if subject.dtype == np.float64 and all(rounded):
        raise Failed("Outputs in float64 have only the accuracy of float32.")


def gradients_are_complete(subject: Subject) -> None:
    """There is a gradient of every trainable tensor and of no other, in the tensor's shape."""
    shapes = {parameter.name: parameter.shape for parameter in subject.network.parameters if parameter.trainable}
    trainer = subject.trainer()
    _, loss, gradients = trainer.gradients(trainer.put(subject.batch))
    if not isinstance(loss, float) or not np.isfinite(loss):
        raise Failed(f"The loss that gradients() returns must be a finite float, but it is {loss!r}.")
    _same_names("gradients()", gradients, shapes)
    for name, shape in shapes.items():
        _check_array(f"gradient of {name}", gradients[name], shape, subject.dtype)


def a_step_updates(subject: Subject) -> None:
    """A step changes trainable tensors, and its loss can be read."""
    trainer = subject.trainer()
    handles = [trainer.step(trainer.put(subject.batch)) for _ in range(2)]
    trainer.synchronise()
    losses = trainer.losses(handles)
    _check_array("losses()", losses, (2,), np.dtype(np.float32))
    state = trainer.state()
    trained = [parameter.name for parameter in subject.network.parameters if parameter.trainable]
    if all(np.array_equal(state[name], np.asarray(subject.weights[name], subject.dtype)) for name in trained):
        raise Failed("No trainable tensor changes in a step.")
    if losses[0] == losses[1]:
        raise Failed("Two steps on one batch have the same loss.")


def put_copies(subject: Subject) -> None:
    """A placed batch does not change with the arrays that it was made from."""
    source = {name: np.array(array) for name, array in subject.batch.items()}
    trainer, other = subject.trainer(), subject.trainer()
    placed = trainer.put(source)
    for array in source.values():
        array[...] = 0
    found = trainer.gradients(placed)[1]
    expected = other.gradients(other.put(subject.batch))[1]
    if abs(found - expected) > LOSS_TOLERANCE * abs(expected):
        raise Failed("A batch that was placed changes when the caller's arrays change: put() must copy.")


def synchronise_waits(subject: Subject) -> None:
    """After `synchronise`, losses and tensors are read in no more time than it takes to read them again."""
    trainer = subject.trainer()
    batch = trainer.put(subject.batch)
    _timed(trainer, batch, FEWEST)  # compilations
    took = _timed(trainer, batch, FEWEST)
    steps = int(min(MOST, max(FEWEST, FEWEST * SYNCHRONISED_S / max(took[0], 1e-6))))
    shares = [waiting / whole for whole, waiting in (_timed(trainer, batch, steps) for _ in range(4))][1:]
    if sorted(shares)[1] > LONGEST_WAIT:
        raise Failed(
            f"Reading results after synchronise() took {sorted(shares)[1]:.0%} of the time of {steps} steps: "
            "synchronise() returns before the steps have finished."
        )


def _timed(trainer: Trainer, batch: Any, steps: int) -> tuple[float, float]:
    """Return the seconds of steps and reading, and how many of them were spent on the first reading beyond the second."""
    began = timing.monotonic()
    handles = [trainer.step(batch) for _ in range(steps)]
    trainer.synchronise()
    marks = [timing.monotonic()]
    for _ in range(2):
        trainer.losses(handles)
        trainer.state()
        marks.append(timing.monotonic())
    first, second = marks[1] - marks[0], marks[2] - marks[1]
    return (marks[1] - began) / 1e9, max(0, first - second) / 1e9


def pipeline_keeps_the_order(subject: Subject) -> None:
    """Training through the pipeline gives the losses of training on batches 0, 1, 2, ... of the source."""
    source = _source(subject)
    direct, fed = subject.trainer(), subject.trainer()
    feed = subject.adapter.pipeline(fed, source, 0)
    expected = direct.losses([direct.step(direct.put(source.batch(step))) for step in range(STEPS)])
    handles = [fed.step(batch) for batch in itertools.islice(feed, STEPS)]
    if len(handles) < STEPS:
        raise Failed(f"The pipeline ends after {len(handles)} batches; it must go on without end.")
    found = fed.losses(handles)
    wrong = np.abs(found - expected) > LOSS_TOLERANCE * np.abs(expected)
    if wrong.any():
        raise Failed(f"Batch {int(wrong.argmax())} of the pipeline is not that batch of the source, counted from 0.")


def _source(subject: Subject) -> batches.Source:
    """Return a source of different batches, each drawn from the samples of the synthetic batch."""
    samples = len(next(iter(subject.batch.values())))
    order = np.random.Generator(np.random.PCG64(1)).integers(0, samples, (2 * STEPS, samples), np.int32)
    return batches.Source(batches.Split(subject.batch, None), order)


def a_predictor_has_the_outputs_of_a_trainer(subject: Subject) -> None:
    """A predictor with the same weights has the same outputs, and the weights that it was given."""
    trainer, predictor = subject.trainer(), subject.predict()
    expected = trainer.outputs(trainer.put(subject.batch))
    found = predictor.outputs(predictor.put(subject.batch))
    _same_names("outputs() of the predictor", found, expected)
    for name, array in expected.items():
        _check_array(f"output {name} of the predictor", found[name], np.shape(array), subject.dtype)
        if np.linalg.norm(found[name] - array) > OUTPUT_TOLERANCE * np.linalg.norm(array):
            raise Failed(f"The output {name} of the predictor is not that of the trainer.")
    for name, array in predictor.state().items():
        if not np.array_equal(array, np.asarray(subject.weights[name], subject.dtype)):
            raise Failed(f"state() of the predictor returns other values for {name} than predictor() was given.")


def inference_waits(subject: Subject) -> None:
    """After `synchronise` of a predictor, the next pass with its outputs takes no longer than usual."""
    predictor = subject.predict()
    batch = predictor.put(subject.batch)
    alone = [_one_pass(predictor, batch) for _ in range(FEWEST)]
    usual = sorted(alone)[FEWEST // 2]
    count = int(min(MOST, max(FEWEST, SYNCHRONISED_S / max(usual, 1e-6))))
    for _ in range(3):  # the best of three: a busy machine may delay any of them
        began = timing.monotonic()
        for _ in range(count):
            predictor.infer(batch)
        predictor.synchronise()
        issued = (timing.monotonic() - began) / 1e9
        after = _one_pass(predictor, batch)
        if after - usual <= LONGEST_WAIT * issued:
            return
    raise Failed(
        f"After synchronise(), the outputs of one more forward pass took {after:.3f} s instead of {usual:.3f} s: synchronise() "
        f"returns before {count} passes have finished."
    )


def _one_pass(predictor: Predictor, batch: Any) -> float:
    """Return the seconds of a forward pass whose outputs are read."""
    began = timing.monotonic()
    predictor.outputs(batch)
    return (timing.monotonic() - began) / 1e9


def a_restart_is_a_new_beginning(subject: Subject) -> None:
    """After `restart`, losses and tensors are those of a new trainer, and nothing is compiled; an adapter may lack the method."""
    fresh, used = subject.trainer(), subject.trainer()
    if not hasattr(used, "restart"):
        return
    source = _source(subject)
    batches_of = [[each.put(source.batch(step)) for step in range(2 * STEPS)] for each in (fresh, used)]
    used.losses([used.step(batch) for batch in batches_of[1][STEPS:]])
    compiled = subject.adapter.compilations()
    try:
        used.restart(subject.weights)
    except Refusal as refusal:
        if refusal.kind != "unsupported":
            raise
        return
    found = used.losses([used.step(batch) for batch in batches_of[1][:STEPS]])
    if subject.adapter.compilations() != compiled:
        raise Failed("Something is compiled again after restart().")
    expected = fresh.losses([fresh.step(batch) for batch in batches_of[0][:STEPS]])
    exact = subject.job.case.settings.deterministic
    limit = 0.0 if exact else LOSS_TOLERANCE
    wrong = ~(np.abs(found - expected) <= limit * np.abs(expected))
    if wrong.any():
        raise Failed(f"Loss {int(wrong.argmax())} after restart() is not that of a new trainer, counted from 0.")
    _same_change(subject, used.state(), fresh.state(), exact)


def _same_change(subject: Subject, found: Mapping[str, Array], expected: Mapping[str, Array], exact: bool) -> None:
    """Compare what steps have made of all trainable tensors together, and of all others.

    Together, because rounding alone may decide the change of a tensor whose gradient almost vanishes.
    """
    for trainable, what in ((True, "trainable tensors"), (False, "statistics")):
        names = [each.name for each in subject.network.parameters if each.trainable is trainable]
        first = {name: np.asarray(subject.weights[name], np.float64) for name in names}
        moved = sum(float(np.square(expected[name] - first[name]).sum()) for name in names) ** 0.5
        apart = sum(float(np.square(found[name] - expected[name], dtype=np.float64).sum()) for name in names) ** 0.5
        if not apart <= (0.0 if exact else STATE_TOLERANCE * moved):
            raise Failed(f"After restart() and {STEPS} steps, the {what} are not those of a new trainer.")


def refusals_are_known(subject: Subject) -> None:
    """An optimizer that does not exist is refused with a `Refusal` of a known kind."""
    try:
        subject.build(replace(subject.job.case.optimizer, name=UNKNOWN_RULE))
    except Refusal as refusal:
        if refusal.kind not in ERROR_KINDS:
            raise Failed(f"A refusal has the unknown kind {refusal.kind!r}.") from None
    except Exception as error:  # whatever it is, it is not a refusal
        raise Failed(
            f"An unknown optimizer must be refused with Refusal, not {type(error).__name__}: {error}"
        ) from None
    else:
        raise Failed(f"The optimizer '{UNKNOWN_RULE}' does not exist, but trainer() accepts it.")


def equal_runs_are_equal(subject: Subject) -> None:
    """Two runs from the same weights on the same batches end in the same bits."""
    states = []
    for _ in range(2):
        trainer = subject.trainer()
        batch = trainer.put(subject.batch)
        for _ in range(STEPS):
            trainer.step(batch)
        trainer.synchronise()
        states.append(trainer.state())
    for name, array in states[0].items():
        if not np.array_equal(array, states[1][name]):
            raise Failed(f"Two equal runs with 'deterministic' end in different values of {name}.")


def _same_names(what: str, found: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    for name in sorted(found.keys() ^ expected.keys()):
        raise Failed(f"{what} {'lacks' if name in expected else 'has the superfluous tensor'} {name}.")


def _check_array(what: str, array: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    if not isinstance(array, np.ndarray):
        raise Failed(f"The {what} must be a NumPy array, but it is {type(array).__name__}.")
    if array.shape != shape or array.dtype != dtype:
        raise Failed(f"The {what} must be {dtype} {shape}, but it is {array.dtype} {array.shape}.")
    if not np.isfinite(array).all():
        raise Failed(f"The {what} has values that are not finite.")

"""The interface between the worker and a framework, implemented by the class `Adapter` in `frameworks/<name>/adapter.py`.

An adapter raises `Refusal("unsupported", ...)` for what its framework cannot do; it never ignores a setting.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from steelyard_worker import frameworks

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping
    from types import ModuleType

    import numpy as np

    from steelyard_worker.batches import Batch, Source
    from steelyard_worker.case import Optimizer, Settings
    from steelyard_worker.communication import AllReduce
    from steelyard_worker.graphs import Stage
    from steelyard_worker.network import Network
    from steelyard_worker.profiling import Profiler
    from steelyard_worker.ranks import Ranks

    Array = np.ndarray[Any, Any]


class Predictor(Protocol):
    """One network with its weights for inference, in the framework's own tensors; no gradients and no optimizer.

    Inputs and results are canonical NumPy arrays, except that `infer` leaves the outputs where the framework computes them.
    """

    def put(self, batch: Batch) -> Any:
        """Copy a canonical batch to the device, as a trainer does."""

    def infer(self, batch: Any) -> Any:
        """Start one forward pass in inference mode, as the framework's users do; return the outputs on the device."""

    def synchronise(self) -> None:
        """Wait until every forward pass started so far has finished."""

    def outputs(self, batch: Any) -> dict[str, Array]:
        """Run the very function of `infer`, and copy its outputs to the host."""

    def state(self) -> dict[str, Array]:
        """Return every tensor that the network names, statistics included, canonical."""

    def inner(self, batch: Any, names: Collection[str]) -> dict[str, Array]:
        """Run forward in inference mode; return the inner tensors as a trainer's does. An adapter may lack this method."""


class Trainer(Protocol):
    """One network with its weights and its optimizer, in the framework's own tensors.

    Inputs and results are canonical NumPy arrays; nothing is read back to the host between `put` and `losses`.

    Where ranks share batches, `put` gets this rank's share; `step`, `losses` and `outputs` are those of the share; `gradients`
    returns its outputs and its loss with the gradients of the whole batch; `state` has the whole network. Where ranks
    share the network, every rank gets whole batches and returns the tensors that it has; a rank without a loss returns none. All
    ranks call the methods in the same order, so each may wait for the others. A process that drives all devices by itself gets
    whole batches and divides them.

    Where a loop of the framework's own drives the training, a trainer also has `run(feed, steps, stamp)`: that loop does the next
    steps on the feed, which is what `pipeline` returned, `itertools.repeat(batch)` or `batches.Turns`, calls `stamp()` after
    each, and the losses are returned as handles. It is timed in place of `step`.
    """

    def put(self, batch: Batch) -> Any:
        """Copy a canonical batch to the device, in the framework's own layout and index types.

        A later change of the arrays must not change what was placed.
        """

    def step(self, batch: Any) -> Any:
        """Do one optimizer step (forward in training mode, backward, update, statistics); return the loss as a handle."""

    def synchronise(self) -> None:
        """Wait until every step issued so far has finished, its updated parameters included."""

    def losses(self, handles: list[Any]) -> Array:
        """Read losses returned by `step` back to the host: float32 (steps,)."""

    def gradients(self, batch: Any) -> tuple[dict[str, Array], float, dict[str, Array]]:
        """Run forward in training mode and backward without an update: (outputs, loss, gradient of every trainable tensor).

        The trainer is not used afterwards, so statistics may change.
        """

    def outputs(self, batch: Any) -> dict[str, Array]:
        """Run forward in inference mode."""

    def state(self) -> dict[str, Array]:
        """Return every tensor that the network names, statistics included, canonical."""

    def inner(self, batch: Any, names: Collection[str]) -> dict[str, Array]:
        """Run forward in training mode; return the inner tensors that have these names, in any layout (see `probes`).

        Those are what the implementation passes to `probe` and, where a network is made of modules, outputs of modules. The
        trainer is not used afterwards.
        """

    def restart(self, weights: Mapping[str, Array]) -> None:
        """Restore these weights in the trained network, and reset the update rule: moments, step count, place in the schedule.
        The same compiled step is used afterwards. An adapter may lack this method.
        """


class CountingTrainer(Trainer, Protocol):
    """A trainer that trains asynchronously, and says how stale its gradients were."""

    def staleness(self) -> Array:
        """Return how many updates of others were applied to the weights between reading them and the update with their gradients.

        int64, one for each update of this rank since the last call; a rank that only works for another one has none.
        """


class Adapter(Protocol):
    """One framework in this process. The constructor sets environment variables, imports the framework and applies settings.

    `settings.knobs` has a value for every knob in the framework's `framework.toml`; defaults are filled in before.
    """

    def __init__(self, settings: Settings, ranks: Ranks) -> None:
        """`ranks` is only passed where the case has a strategy, so an adapter without strategies does not take it.

        Such an adapter joins the ranks here, by the framework's own means (see `strategy.Spread`).
        """

    def applied(self) -> dict[str, Any]:
        """Read every setting back: mode, device, threads, precision, deterministic, each knob; with a strategy, `strategy`.

        The last is the strategy's name and the number of parts that the framework itself reports, such as "ddp:2". `threads` may
        be missing where no thread of the host computes.

        Values come from the framework and from small objects built like the network and its step, not from the request, so that
        a setting without effect is noticed.
        """

    def arithmetic(self) -> dict[str, Any]:
        """Return what decides how precisely products are computed, and on how many threads, as the framework has it now.

        Read before the network is built, after that, and at the end of the process, and compared: an implementation that changes
        it does not compute what was requested. So it only asks the framework, for values that JSON can hold: it builds nothing,
        compiles nothing, and takes no time worth counting. Only settings that matter on the device of this process. An adapter
        may lack this method.
        """

    def libraries(self) -> dict[str, Any]:
        """Return the software that does the work: versions of framework and NumPy, BLAS or oneDNN build, CPU features, CUDA."""

    def trainer(
        self,
        implementation: ModuleType,
        sizes: dict[str, Any],
        network: Network,
        weights: Mapping[str, Array],
        optimizer: Optimizer,
        rates: Array | None = None,
    ) -> Trainer:
        """Build the network of `workloads/<workload>/<framework>.py` and load the canonical weights into it.

        rates: float32 (steps,), the learning rate of every step in place of the optimizer's; the last one stays for further
        steps. None: a constant rate. Nothing may be compiled again because the rate changes. An adapter without this parameter
        gets constant rates only.
        """

    def predictor(
        self, implementation: ModuleType, sizes: dict[str, Any], network: Network, weights: Mapping[str, Array]
    ) -> Predictor:
        """Build the network for inference and load the canonical weights into it."""

    def checkpoint(
        self, implementation: ModuleType, sizes: dict[str, Any], network: Network, path: Path
    ) -> dict[str, Array]:
        """Build the network as it is, load a file into it by the framework's own means, and return every tensor, canonical.

        No code in the file may run. Refusal("checkpoint", ...) where it is no such file or does not fit (`checkpoints` helps).
        An adapter may lack this method; `[checkpoints]` in its `framework.toml` lists the endings of such files.
        """

    def pipeline(self, trainer: Any, source: Source, workers: int) -> Iterator[Any]:
        """Yield batches 0, 1, 2, ... of the source, as the trainer or predictor places them, from its own input pipeline.

        For a trainer with `run` it may be any iterable that `run` understands.
        """

    def profiler(self, folder: Path, timed: Any, batch: Any) -> Profiler:
        """Return the framework's own profiler, whose files go into the folder.

        `timed` is the trainer or predictor whose steps on batches such as `batch`, a placed one, will be recorded. An adapter
        without this method cannot be profiled.
        """

    def graphs(self, timed: Any, batch: Any) -> Iterable[Stage]:
        """Yield what the graph of a training step on a placed batch consists of, first as it was traced, last as it is run.

        `timed` is the trainer. The process is not used for anything else. Refusal: the mode makes no graph. An adapter may lack
        this method.
        """

    def counting_trainer(
        self,
        implementation: ModuleType,
        sizes: dict[str, Any],
        network: Network,
        weights: Mapping[str, Array],
        optimizer: Optimizer,
        rates: Array | None = None,
    ) -> CountingTrainer:
        """Return a trainer of an asynchronous strategy that also counts the updates of all ranks.

        Called only in a job of its own. An adapter may lack this method.
        """

    def all_reduce(self, array: Array) -> AllReduce:
        """Return the all-reduce of an array (float32, one axis) over all ranks, by the collective that the strategy uses.

        Called on all ranks at once, in a job of its own that builds no network. Refusal: the strategy has no such exchange. An
        adapter may lack this method.
        """

    def compilations(self) -> int:
        """Count compilations, traces and retraces so far; none may happen in a counted block."""

    def peak_bytes(self) -> int | None:
        """Return the peak device memory in bytes by the framework's own counter; None if it has none (CPU).

        An adapter may also have `reset_peak_bytes() -> bool`: begin that peak again, and return whether that was possible.
        """


def load(name: str, settings: Settings, folder: str = "", ranks: Ranks | None = None) -> Adapter:
    """Import the adapter of a framework and construct it; `ranks`: of a case with a strategy.

    `folder` is that of a framework of the user's own. It becomes the package `steelyard_worker.frameworks.<name>`, so its
    files import each other in the same way as those of a built-in framework; built-in packages are found first.
    """
    offered = _module(name, "adapter", folder).Adapter
    adapter: Adapter = offered(settings, ranks) if ranks and ranks.spread else offered(settings)
    return adapter


def serve(name: str, folder: str, role: str, ranks: Ranks) -> None:
    """Do the work of a process beside the ranks, such as a parameter server, until it is ended.

    That is `serve(role, ranks)` of the framework's module `servers`; `ranks.rank` is 0 there.
    """
    _module(name, "servers", folder).serve(role, ranks)


def _module(name: str, module: str, folder: str) -> ModuleType:
    if folder and str(Path(folder).parent) not in frameworks.__path__:
        frameworks.__path__.append(str(Path(folder).parent))
    return importlib.import_module(f"{frameworks.__name__}.{name}.{module}")

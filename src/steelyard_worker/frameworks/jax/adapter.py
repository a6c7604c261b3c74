"""JAX: settings of the process and input pipeline; `trainer` has the training step."""

from __future__ import annotations

import os
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import jaxlib
import numpy as np
import optax

from steelyard_worker import accumulation, dropout
from steelyard_worker.frameworks.jax import spreading, traced
from steelyard_worker.frameworks.jax.layers import Choices
from steelyard_worker.frameworks.jax.predictor import Predictor
from steelyard_worker.frameworks.jax.recurrence import Recurrence, unroll_shown, unrolled
from steelyard_worker.protocol import Refusal
from steelyard_worker.ranks import Ranks

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from types import ModuleType

    from steelyard_worker.batches import Source
    from steelyard_worker.case import Optimizer, Settings
    from steelyard_worker.communication import AllReduce
    from steelyard_worker.frameworks.base import Array
    from steelyard_worker.frameworks.jax.trainer import Trainer
    from steelyard_worker.graphs import Stage
    from steelyard_worker.network import Network

COMPILATION = "/jax/core/compile/"
DETERMINISTIC = "--xla_gpu_deterministic_ops=true"
# Name that XLA gives to the threads of its CPU client's pool.
BLOCKS = "blocks"
POOL_THREAD = "tf_XLAEigen"
ALONE = Ranks()


class Adapter:
    """One process of JAX. XLA reads its environment variables when the first array is created, in `_start`."""

    def __init__(self, settings: Settings, ranks: Ranks = ALONE) -> None:
        if settings.mode not in ("jit", "no-jit"):
            raise Refusal("unsupported", f"JAX has no mode {settings.mode!r}; modes: jit, no-jit.")
        self._settings, self._ranks, self._compilations = settings, ranks, 0
        knobs = settings.knobs
        if knobs["tf32"] and settings.device == "cpu":
            raise Refusal("unsupported", "JAX computes in TensorFloat-32 on CUDA devices only.")
        recurrence = Recurrence(knobs["recurrence"], unrolled(knobs["unroll"], settings.device))
        dropped, again = knobs["dropout"] == dropout.ON, knobs["recomputation"] == BLOCKS
        parts = accumulation.parts_of(settings)
        self._choices = Choices(knobs["convolution"], recurrence, dropped, again, knobs["lstm"], parts)
        if settings.threads:
            spreading.set_threads(settings.threads, ranks)
        if settings.deterministic:
            os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {DETERMINISTIC}".strip()
        jax.config.update("jax_platforms", settings.device)
        jax.config.update("jax_enable_x64", settings.precision == "float64")
        jax.config.update("jax_disable_jit", settings.mode == "no-jit")
        if settings.device != "cpu" and not knobs["tf32"]:
            jax.config.update("jax_default_matmul_precision", "highest")
        jax.monitoring.register_event_duration_secs_listener(self._count)
        spreading.prepare(settings, ranks)
        self._start()

    def _start(self) -> None:
        try:
            jnp.zeros(()).block_until_ready()
        except RuntimeError as error:
            raise Refusal("unsupported", f"JAX cannot use {self._settings.device} here: {error}") from error

    def _count(self, event: str, duration_s: float, **_: Any) -> None:
        del duration_s
        self._compilations += event.startswith(COMPILATION)

    def applied(self) -> dict[str, Any]:
        """Read the settings back; the formulations of layers are found by tracing them."""
        platform = jax.default_backend()
        on_gpu = platform in ("gpu", "cuda")
        threads = spreading.threads_of_each(_pool_threads(), self._ranks)
        strategy = {"strategy": spreading.reported(self._ranks)} if self._ranks.spread else {}
        device, formulations = "cuda" if on_gpu else platform, traced.choices(self._choices)
        return {
            "mode": "no-jit" if jax.config.jax_disable_jit else "jit",
            "device": device,
            "precision": str(jnp.zeros((), self._settings.precision).dtype),
            "deterministic": DETERMINISTIC in os.environ.get("XLA_FLAGS", ""),
            "tf32": on_gpu and jax.config.jax_default_matmul_precision != "highest",
            **({"threads": threads} if threads else {}),
            **strategy,
            # The trainer of a pipeline is made with this number.
            "micro_batches": self._settings.knobs["micro_batches"],
            **accumulation.applied(self._settings),
            **formulations,
            "unroll": unroll_shown(formulations["unroll"], self._settings.knobs["unroll"], device),
        }

    def arithmetic(self) -> dict[str, Any]:
        """Return precision and modes as JAX has them now; XLA has its threads since it started."""
        config = jax.config
        return {
            "matmul_precision": config.jax_default_matmul_precision,
            "float64": config.jax_enable_x64,
            "dtype_promotion": config.jax_numpy_dtype_promotion,
            "jit": not config.jax_disable_jit,
            "platform": jax.default_backend(),
        }

    def libraries(self) -> dict[str, Any]:
        """Return the versions that do the arithmetic, and the flags that XLA gets from the environment."""
        return {
            "jax": jax.__version__,
            "jaxlib": jaxlib.__version__,
            "optax": optax.__version__,
            "numpy": np.__version__,
            "device": jax.local_devices()[0].device_kind,
            "xla_flags": os.environ.get("XLA_FLAGS", ""),
        }

    def trainer(
        self,
        implementation: ModuleType,
        sizes: dict[str, Any],
        network: Network,
        weights: Mapping[str, Array],
        optimizer: Optimizer,
        rates: Array | None = None,
    ) -> Trainer:
        """Load the canonical weights and jit the training step over them."""
        trainer = spreading.trainer_of(self._ranks, self._settings.knobs["micro_batches"])
        return trainer(
            implementation, sizes, network, weights, optimizer, self._settings.precision, self._choices, rates
        )

    def predictor(
        self, implementation: ModuleType, sizes: dict[str, Any], network: Network, weights: Mapping[str, Array]
    ) -> Predictor:
        """Load the canonical weights and jit the forward pass over them."""
        return Predictor(implementation, sizes, network, weights, self._settings.precision, self._choices)

    def pipeline(self, trainer: Predictor, source: Source, workers: int) -> Iterator[Any]:
        """Yield NumPy batches, placed ahead of use by `workers` threads (0: one thread); JAX has no loader of its own."""
        ahead = max(1, workers)
        with ThreadPoolExecutor(ahead) as pool:
            steps = count()
            placed = deque(pool.submit(_place, trainer, source, next(steps)) for _ in range(ahead))
            while True:
                batch = placed.popleft().result()
                placed.append(pool.submit(_place, trainer, source, next(steps)))
                yield batch

    def profiler(self, folder: Path, timed: Any, batch: Any) -> Any:
        """Return JAX's profiler."""
        from steelyard_worker.frameworks.jax.profiling import Profiler

        return Profiler(folder, None if jax.config.jax_disable_jit else lambda: timed.program(batch))

    def graphs(self, timed: Any, batch: Any) -> Iterator[Stage]:
        """Return the stages of the training step's program."""
        if self._settings.mode != "jit":
            raise Refusal("unsupported", "JAX makes no program of a whole step without jit.")
        from steelyard_worker.frameworks.jax import graphs

        return graphs.stages(timed.lowered(batch))

    def all_reduce(self, array: Array) -> AllReduce:
        """Return the all-reduce of all devices."""
        from steelyard_worker.frameworks.jax.communication import Psum

        return Psum(array, spreading.devices(self._ranks))

    def compilations(self) -> int:
        """Count the traces, lowerings and compilations that JAX has reported to its monitoring listeners."""
        return self._compilations

    def peak_bytes(self) -> int | None:
        """Return the peak of the device's allocator, bytes; JAX has none for CPU."""
        return spreading.peak_bytes(self._ranks)


def _place(trainer: Predictor, source: Source, step: int) -> Any:
    return trainer.put(source.batch(step))


def _pool_threads() -> int:
    """Count XLA's compute threads in this process; 0 where the system has no thread names."""
    names = (path.read_text().strip() for path in Path("/proc/self/task").glob("*/comm"))
    return sum(name == POOL_THREAD for name in names)

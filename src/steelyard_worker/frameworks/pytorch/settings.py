"""Settings of the PyTorch process: how they are applied, and what PyTorch makes of them."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from steelyard_worker import accumulation, dropout
from steelyard_worker.frameworks.pytorch import layers, recomputation, recurrent
from steelyard_worker.protocol import Refusal

if TYPE_CHECKING:
    from collections.abc import Callable

    from steelyard_worker.case import Settings

MODES = ("eager", "compiled")
DTYPES = {"float32": torch.float32, "float64": torch.float64}
# Function that an LSTM calls -> value of the knob `lstm`.
FUNCTIONS = {"lstm": "fused", "lstm_cell": "cell"}
# Value of the knob `shapes` -> the argument `dynamic` of torch.compile.
SHAPES = {"automatic": None, "static": False, "dynamic": True}
# More shapes than any run has. Beyond this number of compilations of one function, PyTorch runs it eagerly.
MANY = 10**6
# What records the compiled kernels of a step as CUDA graphs, and fails where it cannot instead of running them without.
CUDA_GRAPHS, STRICT = "triton.cudagraphs", "triton.cudagraph_or_error"
LAYOUTS = {"channels-last": torch.channels_last, "channels-first": torch.contiguous_format}
# cuBLAS repeats its results only with work spaces of a fixed size; PyTorch refuses deterministic products without it (its page
# "Reproducibility"). The process must have the variable before it uses the GPU.
WORKSPACE, FIXED_WORKSPACE = "CUBLAS_WORKSPACE_CONFIG", ":4096:8"


# More elements than PyTorch leaves to one thread (its grain size is 32,768).
SPLIT = 2**20


def apply(settings: Settings) -> None:
    """Set threads, TensorFloat-32, determinism and libraries; refuse a device or a mode that PyTorch does not have here."""
    if settings.device == "cuda" and not torch.cuda.is_available():
        raise Refusal(
            "unsupported", "PyTorch finds no CUDA device on this machine (torch.cuda.is_available() is False)."
        )
    if settings.mode not in MODES:
        raise Refusal("unsupported", f"PyTorch has no mode {settings.mode!r}; modes: {', '.join(MODES)}.")
    if settings.threads:
        torch.set_num_threads(settings.threads)
    tf32 = bool(settings.knobs["tf32"])
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = tf32
    torch.backends.mkldnn.enabled = bool(settings.knobs["onednn"])
    # P-57. A setting of the calling thread; threads that are started later have it too, and nothing was computed before.
    torch.set_flush_denormal(settings.knobs["subnormals"] == "flushed")
    torch.backends.cudnn.benchmark = bool(settings.knobs["cudnn_search"])
    if settings.knobs["dropout"] == dropout.ON:
        torch.manual_seed(dropout.SEED)
    if settings.deterministic and settings.device == "cuda":
        os.environ.setdefault(WORKSPACE, FIXED_WORKSPACE)
    # Only when it changes something: the call imports the settings of PyTorch's compiler, which takes as long as PyTorch itself.
    if settings.deterministic != torch.are_deterministic_algorithms_enabled():
        torch.use_deterministic_algorithms(settings.deterministic)


def placed(module: nn.Module, settings: Settings) -> nn.Module:
    """Move a module to the device, in the precision, the memory format and with the LSTMs and embeddings of the run.

    A module that compiles a part of itself does it with `dynamic_shapes` as the argument `dynamic`.
    """
    recurrent.choose(module, settings.knobs["lstm"], settings.mode == "compiled")
    layers.choose_gradients(module, settings.knobs["embedding"])
    if hasattr(module, "dynamic_shapes"):
        module.dynamic_shapes = SHAPES[settings.knobs["shapes"]]
    module = module.to(torch.device(settings.device), DTYPES[settings.precision])
    return module.to(memory_format=LAYOUTS[settings.knobs["layout"]])


def wrapped(function: Callable[..., Any], settings: Settings) -> Callable[..., Any]:
    """Return the function as the mode runs it; no shape of its arguments is left to eager PyTorch."""
    if settings.mode != "compiled":
        return function
    compiler = torch._dynamo.config  # noqa: SLF001 - the documented place of these settings
    compiler.recompile_limit = compiler.accumulated_recompile_limit = MANY
    compiler.fail_on_recompile_limit_hit = True
    options = {CUDA_GRAPHS: True, STRICT: True} if settings.knobs["cuda_graphs"] else None
    return torch.compile(function, dynamic=SHAPES[settings.knobs["shapes"]], options=options)


def read_back(settings: Settings) -> dict[str, Any]:
    """Return the settings as PyTorch has them.

    Device, precision and memory format are those of a convolution's weight and the mode is that of a function, both made as
    the network and its training step are. An LSTM is known by the functions that a small layer calls.
    """
    weight = placed(nn.Conv2d(2, 2, 3, bias=False), settings).weight
    channels_last = weight.is_contiguous(memory_format=torch.channels_last)
    return {
        "mode": _mode(settings),
        "device": weight.device.type,
        "threads": torch.get_num_threads(),
        "interop_threads": torch.get_num_interop_threads(),
        "precision": str(weight.dtype).removeprefix("torch."),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "tf32": torch.backends.cudnn.allow_tf32 or torch.backends.cuda.matmul.allow_tf32,
        "layout": "channels-last" if channels_last else "channels-first",
        "lstm": _lstm(settings),
        "embedding": _embedding(settings),
        "shapes": _shapes(settings),
        "cuda_graphs": _cuda_graphs(settings),
        "dropout": _dropout(settings),
        "recomputation": recomputation.observed(settings),
        # A schedule of pipelines gets the number when it is made, and has no other.
        "micro_batches": settings.knobs["micro_batches"],
        **accumulation.applied(settings),
        "onednn": _onednn(),
        "subnormals": _subnormals(),
        "cudnn_search": torch.backends.cudnn.benchmark,
    }


def _mode(settings: Settings) -> str:
    """Ask within a function whether it is being compiled; it holds no operation, so nothing is generated for it."""
    return "compiled" if wrapped(lambda: torch.compiler.is_compiling(), settings)() else "eager"


def _shapes(settings: Settings) -> str:
    """Count how often TorchDynamo compiles a function for vectors of three lengths; eager PyTorch has nothing to compile.

    The compiled code is what the function does eagerly, so nothing is generated for it.
    """
    if settings.mode != "compiled":
        return "automatic"
    graphs: list[Any] = []

    def collect(graph: Any, example: Any) -> Any:
        del example
        graphs.append(graph)
        return graph.forward

    torch.compiler.reset()  # which lengths it has seen before
    function = torch.compile(lambda x: x + 1, backend=collect, dynamic=SHAPES[settings.knobs["shapes"]])
    for length in (2, 3, 4):
        function(torch.zeros(length))
    return {1: "dynamic", 2: "automatic", 3: "static"}.get(len(graphs), "unknown")


def _cuda_graphs(settings: Settings) -> bool:
    """Ask a compiled function for the configuration of its compiler; one that is not compiled has none."""
    ask = getattr(wrapped(lambda: None, settings), "get_compiler_config", None)
    return bool(ask and ask()[CUDA_GRAPHS])


def _embedding(settings: Settings) -> str:
    """Look at the gradient of one row; what an optimizer makes of a sparse one is decided when it is built."""
    table, requested = placed(nn.Embedding(1, 1), settings), str(settings.knobs["embedding"])
    table(torch.zeros(1, dtype=torch.int64, device=table.weight.device)).sum().backward()
    if not table.weight.grad.is_sparse:
        return "dense"
    return "lazy" if requested == "lazy" else "sparse"


def _dropout(settings: Settings) -> str:
    """Count the zeros that a layer of a network in training makes of ones."""
    with dropout.built_as(settings.knobs["dropout"]):
        found = layers.dropout(0.5).train()(torch.ones(64))
    return dropout.ON if (found == 0).any() else dropout.OFF


def _onednn() -> bool:
    """Ask which library PyTorch selects for a convolution on the CPU."""
    image, kernel = torch.zeros(2, 1, 4, 4), torch.zeros(1, 1, 3, 3)
    chosen = torch._C._select_conv_backend(image, kernel, None, (1, 1), (1, 1), (1, 1), False, (0, 0), 1)  # noqa: SLF001
    return bool(chosen == torch._C._ConvBackend.Mkldnn)  # noqa: SLF001 - there is no public function


def _subnormals() -> str:
    """Halve a subnormal number in an array so large that all threads have a part of it."""
    kept = torch.full((SPLIT,), 1e-40).mul(0.5) != 0
    return "kept" if kept.all() else "partly flushed" if kept.any() else "flushed"


class _Called(TorchFunctionMode):
    """Collects the names of the functions of `torch` that are called."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()

    def __torch_function__(self, function: Any, types: Any, arguments: Any = (), options: Any = None) -> Any:
        self.names.add(function.__name__)
        return function(*arguments, **(options or {}))


def _lstm(settings: Settings) -> str:
    """Run a layer of one unit; its steps are not compiled, which would take seconds."""
    layer = placed(recurrent.Lstm(1, 1), replace(settings, mode="eager"))
    with torch.no_grad(), _Called() as called:
        layer(layer.weight_ih_l0.new_zeros(1, 1, 1))
    return next((value for name, value in FUNCTIONS.items() if name in called.names), "loop")

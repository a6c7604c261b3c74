"""How precisely PyTorch multiplies float32 matrices now, and on how many threads.

PyTorch has a setting for all matrix products, one for each library and operator, and types that it converts to by itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Callable

# Name -> attributes of torch.backends. "none" stands for what the more general setting says.
OF_CPU = {
    "onednn_precision": "mkldnn.fp32_precision",
    "onednn_matmul_precision": "mkldnn.matmul.fp32_precision",
    "onednn_conv_precision": "mkldnn.conv.fp32_precision",
    "onednn_rnn_precision": "mkldnn.rnn.fp32_precision",
    "onednn": "mkldnn.enabled",
}
OF_CUDA = {
    "cuda_matmul_precision": "cuda.matmul.fp32_precision",
    "cudnn_precision": "cudnn.fp32_precision",
    "cudnn_conv_precision": "cudnn.conv.fp32_precision",
    "cudnn_rnn_precision": "cudnn.rnn.fp32_precision",
    "cuda_matmul_tf32": "cuda.matmul.allow_tf32",
    "cudnn_tf32": "cudnn.allow_tf32",
    "float16_sums": "cuda.matmul.allow_fp16_reduced_precision_reduction",
    "bfloat16_sums": "cuda.matmul.allow_bf16_reduced_precision_reduction",
    "cudnn_search": "cudnn.benchmark",
}
CONFLICTING = "set in two ways"


def now(device: str) -> dict[str, Any]:
    """Return every setting that decides the precision of products on the device ("cpu" or "cuda"), and the threads."""
    backends = OF_CUDA if device == "cuda" else OF_CPU
    return {
        "matmul_precision": _asked(torch.get_float32_matmul_precision),
        "precision": _asked(lambda: _of_backends("fp32_precision")),
        **{name: _asked(lambda path=path: _of_backends(path)) for name, path in backends.items()},
        "autocast": torch.is_autocast_enabled(device),
        "default_dtype": str(torch.get_default_dtype()).removeprefix("torch."),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "threads": torch.get_num_threads(),
        "interop_threads": torch.get_num_interop_threads(),
    }


def _of_backends(path: str) -> Any:
    """Return an attribute of torch.backends; None where this version of PyTorch does not have it."""
    found: Any = torch.backends
    for name in path.split("."):
        found = getattr(found, name, None)
    return found


def _asked(ask: Callable[[], Any]) -> Any:
    """Return the answer; PyTorch raises an error where older and newer settings of one kind contradict each other."""
    try:
        return ask()
    except RuntimeError:
        return CONFLICTING

"""Layers of several modules or kernels, such as attention and LSTMs: their tensors in one layout, whoever wrote them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from steelyard.ports.names import COLLECTIONS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from steelyard.ports.given_inputs import Array
    from steelyard.ports.passes import Call

PROJECTIONS = ("query", "key", "value")
OF_ONE_LAYER = {"weight_ih_l0": "input kernel", "weight_hh_l0": "hidden kernel", "bias_ih_l0": "first bias"}
OF_ONE_LAYER |= {"bias_hh_l0": "second bias"}
"""Names of PyTorch."""
GATES = "ifgo"
"""The letters of Flax for the gates, in PyTorch's order."""


def below(path: str, names: Iterable[str]) -> dict[str, str]:
    """Return the tensors of a module and of all modules in it: the rest of the name, with slashes -> name."""
    found = {}
    for name in names:
        plain = re.sub(COLLECTIONS, "", name)
        if plain.startswith(path) and plain[len(path) : len(path) + 1] in (".", "/"):
            found[plain[len(path) + 1 :].replace(".", "/")] = name
    return found


def tensors_of(call: Call, names: Iterable[str]) -> dict[str, str]:
    """Return all tensors of a call's module by their names inside it."""
    return below(call.path, names) | {role.replace(".", "/"): name for role, name in call.tensors.items()}


def attention(tensors: Mapping[str, Array]) -> dict[str, Array]:
    """Return kernels as (outputs, inputs) and biases of self-attention; empty if these are not its tensors."""
    if "in_proj_weight" in tensors:
        found = _thirds(tensors, "in_proj_weight", "kernel") | _thirds(tensors, "in_proj_bias", "bias")
        names = {"out kernel": "out_proj/weight", "out bias": "out_proj/bias"}
        return found | {role: tensors[name] for role, name in names.items() if name in tensors}
    found = {}
    for name in PROJECTIONS:
        kernel = tensors.get(f"{name}/kernel")
        if kernel is None:
            return {}
        found[f"{name} kernel"] = kernel.reshape(kernel.shape[0], -1).T
        if (bias := tensors.get(f"{name}/bias")) is not None:
            found[f"{name} bias"] = bias.reshape(-1)
    for name in ("out", "attention_output"):
        if (kernel := tensors.get(f"{name}/kernel")) is not None:
            found["out kernel"] = kernel.reshape(-1, kernel.shape[-1]).T
            if (bias := tensors.get(f"{name}/bias")) is not None:
                found["out bias"] = bias
    return found


def lstm(tensors: Mapping[str, Array]) -> dict[str, Array]:
    """Return the kernels of an LSTM of one layer as (four gates, inputs), and its biases; empty if these are not its tensors."""
    if "weight_ih_l0" in tensors:
        is_one = not any(name.endswith(("_l1", "_reverse")) for name in tensors)
        return {role: tensors[name] for name, role in OF_ONE_LAYER.items() if name in tensors} if is_one else {}
    last = {name.rpartition("/")[2]: array for name, array in tensors.items()}
    if "recurrent_kernel" in last:
        found = {"input kernel": last["kernel"].T, "hidden kernel": last["recurrent_kernel"].T}
        return found | ({"first bias": last["bias"]} if "bias" in last else {})
    return _gates({"/".join(name.split("/")[-2:]): array for name, array in tensors.items()})


def _gates(tensors: Mapping[str, Array]) -> dict[str, Array]:
    """Return one kernel of those of Flax, which has one for each gate, with biases in those of the hidden state."""
    if any(f"{kind}{gate}/kernel" not in tensors for kind in "ih" for gate in GATES):
        return {}
    found = {
        word: np.concatenate([tensors[f"{kind}{gate}/kernel"].T for gate in GATES])
        for kind, word in (("i", "input kernel"), ("h", "hidden kernel"))
    }
    if all(f"h{gate}/bias" in tensors for gate in GATES):
        found["first bias"] = np.concatenate([tensors[f"h{gate}/bias"] for gate in GATES])
    return found


def _thirds(tensors: Mapping[str, Array], name: str, role: str) -> dict[str, Array]:
    if name not in tensors:
        return {}
    return {f"{one} {role}": part for one, part in zip(PROJECTIONS, np.split(tensors[name], 3), strict=True)}

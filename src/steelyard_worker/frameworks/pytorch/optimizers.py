"""Update rules: PyTorch's own fused ones, and the canonical formulas written out."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch

from steelyard_worker.protocol import WRITTEN_OUT, Optimizer, Refusal

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor


def update_rule(spec: Optimizer, named: dict[str, Tensor]) -> Any:
    """Return an object with `zero_grad(set_to_none)` and `step()` over the trainable tensors."""
    if spec.implementation == "reference":
        return Strict(spec, named)
    rule = _native(spec, named)
    return Clipped(rule, spec.clip, list(named.values())) if spec.clip else rule


class Clipped:
    """Scales all gradients together before the rule sees them, by PyTorch's own `clip_grads_with_norm_`.

    That adds 1e-6 to the norm it divides by (P-44): a relative difference of at most 1e-6 over the limit. The norm is one of the
    norms of rows: PyTorch's own on CPU adds all squares of a tensor in float32 one after the other (its issue 169237), which
    for BERT's embedding is off by 3e-3.
    """

    def __init__(self, rule: Any, limit: float, tensors: list[Tensor]) -> None:
        self._rule, self._limit, self._tensors = rule, limit, tensors
        self.zero_grad = rule.zero_grad

    def step(self) -> None:
        """Clip, then update."""
        gradients = [tensor.grad for tensor in self._tensors]
        rows = [torch.linalg.vector_norm(g.flatten(1) if g.ndim > 1 else g[None], dim=1) for g in gradients]
        norm = torch.cat(rows).square().sum().sqrt()
        torch.nn.utils.clip_grads_with_norm_(self._tensors, self._limit, norm)
        self._rule.step()


def _native(spec: Optimizer, named: dict[str, Tensor]) -> torch.optim.Optimizer:
    decayed = [tensor for name, tensor in named.items() if name in spec.decay]
    others = [tensor for name, tensor in named.items() if name not in spec.decay]
    groups: list[dict[str, Any]] = [{"params": others, "weight_decay": 0.0}]
    if decayed:
        groups.append({"params": decayed, "weight_decay": spec.weight_decay})
    makers: dict[str, Callable[..., torch.optim.Optimizer]] = {
        "sgd": lambda g: torch.optim.SGD(g, spec.learning_rate, spec.momentum, nesterov=spec.nesterov, fused=True),
        "adam": lambda g: torch.optim.Adam(g, spec.learning_rate, (spec.beta1, spec.beta2), spec.epsilon, fused=True),
        "adamw": lambda g: torch.optim.AdamW(g, spec.learning_rate, (spec.beta1, spec.beta2), spec.epsilon, fused=True),
    }
    if spec.name not in makers:
        raise Refusal(
            "unsupported", f"No native {spec.name} is known for PyTorch; known: {', '.join(makers)}. {WRITTEN_OUT}"
        )
    return makers[spec.name](groups)


class Strict:
    """The canonical formulas of every optimizer, tensor by tensor; scalars are computed on the host."""

    def __init__(self, spec: Optimizer, named: dict[str, Tensor]) -> None:
        self._spec, self._named, self._t = spec, named, 0
        self._first = {name: torch.zeros_like(tensor) for name, tensor in named.items()}
        self._second = {name: torch.zeros_like(tensor) for name, tensor in named.items()}

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients."""
        for tensor in self._named.values():
            tensor.grad = None if set_to_none else torch.zeros_like(tensor)

    @torch.no_grad()
    def step(self) -> None:
        """Apply one update."""
        self._t += 1
        if self._spec.clip:
            self._clip([tensor.grad for tensor in self._named.values()])
        rule = {"sgd": self._sgd, "lamb": self._lamb}.get(self._spec.name, self._adam)
        for name, tensor in self._named.items():
            rule(name, tensor, self._spec.weight_decay if name in self._spec.decay else 0.0)

    def _clip(self, gradients: list[Tensor]) -> None:
        norm = math.sqrt(sum(float(g.square().sum()) for g in gradients))
        for g in gradients if norm > self._spec.clip else ():
            g.mul_(self._spec.clip / norm)

    def _sgd(self, name: str, p: Tensor, decay: float) -> None:
        spec, u = self._spec, self._first[name]
        g = p.grad + decay * p if decay else p.grad
        u.mul_(spec.momentum).add_(g)
        p.sub_(spec.learning_rate * (g + spec.momentum * u if spec.nesterov else u))

    def _adam(self, name: str, p: Tensor, decay: float) -> None:
        spec, m, v, g = self._spec, self._first[name], self._second[name], p.grad
        if decay and spec.name == "adamw":
            p.mul_(1 - spec.learning_rate * decay)
        elif decay:
            g = g + decay * p
        self._remember(m, v, g)
        first, second = spec.corrections(self._t)
        if spec.form == "canonical":
            p.sub_(spec.learning_rate * (m / first) / ((v / second).sqrt() + spec.epsilon))
        else:
            p.sub_((spec.learning_rate * math.sqrt(second) / first) * m / (v.sqrt() + spec.epsilon))

    def _lamb(self, name: str, p: Tensor, decay: float) -> None:
        spec, m, v = self._spec, self._first[name], self._second[name]
        self._remember(m, v, p.grad)
        first, second = spec.corrections(self._t)
        change = (m / first) / ((v / second).sqrt() + spec.epsilon) + decay * p
        ours, theirs = torch.linalg.vector_norm(p), torch.linalg.vector_norm(change)
        ratio = torch.where((ours > 0) & (theirs > 0), ours / theirs, 1.0)
        p.sub_(spec.learning_rate * ratio * change)

    def _remember(self, m: Tensor, v: Tensor, g: Tensor) -> None:
        spec = self._spec
        m.mul_(spec.beta1).add_((1 - spec.beta1) * g)
        v.mul_(spec.beta2).add_((1 - spec.beta2) * g * g)

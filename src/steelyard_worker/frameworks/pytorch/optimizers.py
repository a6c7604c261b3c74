"""Update rules: PyTorch's own fused optimizers, and reference implementations of the canonical formulas."""

from __future__ import annotations

import math
from copy import deepcopy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch

from steelyard_worker.frameworks import update_scalars
from steelyard_worker.protocol import WRITTEN_OUT, Refusal

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from torch import Tensor

    from steelyard_worker.case import Optimizer
    from steelyard_worker.frameworks.base import Array


def update_rule(
    spec: Optimizer,
    named: dict[str, Tensor],
    rates: Array | None = None,
    sparse: Collection[int] = (),
    clipping: Any = None,
) -> Any:
    """Return an object with `zero_grad(set_to_none)` and `step()` over the trainable tensors.

    `rates`: of every step. `sparse`: identities of the tensors whose gradients are sparse. `clipping`: `Clipped`, or what takes
    its place where ranks have different gradients.
    """
    if spec.implementation == "reference":
        if spec.clip and clipping not in (None, Clipped):
            raise Refusal(
                "unsupported", "The reference implementation of an optimizer clips no gradients of several ranks."
            )
        return Reference(spec, named, rates)
    rows = [tensor for tensor in named.values() if id(tensor) in sparse]
    if rows:
        if rates is not None:
            raise Refusal("unsupported", "Learning rates that change were not built for sparse gradients.")
        dense = {name: tensor for name, tensor in named.items() if id(tensor) not in sparse}
        return Both(_native(spec, dense), _of_rows(spec, rows))
    rule: Any = (
        _native(spec, named) if rates is None else Scheduled(_native(update_scalars.per_unit(spec), named), rates)
    )
    return (clipping or Clipped)(rule, spec.clip, list(named.values())) if spec.clip else rule


def forget(rule: Any) -> None:
    """Set a rule that `update_rule` returned back to its first step, with the same tensors."""
    if isinstance(rule, torch.optim.Optimizer):
        rule.state.clear()  # PyTorch makes it when it first updates a tensor: moments, and the number of the step
    else:
        rule.forget()


class Scheduled:
    """Gives a rule, whose learning rate is 1, the rate of each step with `LambdaLR`, which is called after a step (P-46)."""

    def __init__(self, rule: torch.optim.Optimizer, rates: Array) -> None:
        self._rule, self.zero_grad = rule, rule.zero_grad
        self._next = torch.optim.lr_scheduler.LambdaLR(rule, lambda step: update_scalars.rate_at(rates, step))
        self._first = deepcopy(self._next.state_dict())

    def step(self) -> None:
        """Update, then set the rate of the next step."""
        self._rule.step()
        self._next.step()

    def forget(self) -> None:
        """Begin again with the rate of the first step, which a scheduler that loads its place does not set by itself."""
        forget(self._rule)
        self._next.load_state_dict(deepcopy(self._first))
        for group, rate in zip(self._rule.param_groups, self._next.get_last_lr(), strict=True):
            group["lr"] = rate


class Clipped:
    """Clips the global norm of all gradients with PyTorch's `clip_grads_with_norm_`, then applies a rule.

    That function divides by the norm plus 1e-6 (P-44), a relative difference of at most 1e-6 over the limit. On the CPU the norm
    is computed from the norms of rows: PyTorch's own adds all squares of a tensor one after the other in float32 (its issue
    169237); for BERT's embedding its result is wrong by 3e-3. On a GPU, which adds them in a tree, its own norm is used.
    """

    def __init__(self, rule: Any, limit: float, tensors: list[Tensor]) -> None:
        self._rule, self._limit, self._tensors = rule, limit, tensors
        self.zero_grad = rule.zero_grad

    def step(self) -> None:
        """Clip, then update."""
        gradients = [tensor.grad for tensor in self._tensors]
        if gradients[0].is_cuda:
            torch.nn.utils.clip_grad_norm_(self._tensors, self._limit)
        else:
            rows = [torch.linalg.vector_norm(g.flatten(1) if g.ndim > 1 else g[None], dim=1) for g in gradients]
            norm = torch.cat(rows).square().sum().sqrt()
            torch.nn.utils.clip_grads_with_norm_(self._tensors, self._limit, norm)
        self._rule.step()

    def forget(self) -> None:
        """Make the rule begin again."""
        forget(self._rule)


class Both:
    """Applies one rule to the tensors with dense gradients and another one to those with sparse gradients."""

    def __init__(self, *rules: torch.optim.Optimizer) -> None:
        self._rules = rules

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Discard the gradients."""
        for rule in self._rules:
            rule.zero_grad(set_to_none)

    def step(self) -> None:
        """Apply one update."""
        for rule in self._rules:
            rule.step()

    def forget(self) -> None:
        """Make both rules begin again."""
        for rule in self._rules:
            forget(rule)


def _of_rows(spec: Optimizer, rows: list[Tensor]) -> torch.optim.Optimizer:
    """Return the rule that updates the rows with a gradient; without momentum, plain SGD is the same rule as for all rows."""
    if spec.name == "adam":
        return torch.optim.SparseAdam(rows, spec.learning_rate, (spec.beta1, spec.beta2), spec.epsilon)
    if spec.name != "sgd" or spec.momentum or spec.weight_decay or spec.clip:
        raise Refusal(
            "unsupported",
            "PyTorch updates sparse gradients by Adam, and by SGD without momentum, weight decay and clipping.",
        )
    return torch.optim.SGD(rows, spec.learning_rate)


def _native(spec: Optimizer, named: dict[str, Tensor]) -> torch.optim.Optimizer:
    groups: list[dict[str, Any]] = [
        {
            "params": [named[name] for name in part.names],
            "lr": part.rule.learning_rate,
            "weight_decay": part.rule.weight_decay,
        }
        for part in update_scalars.parts(spec, named)
    ] or [{"params": []}]
    divided = any(
        hasattr(tensor, "placements") for tensor in named.values()
    )  # among ranks, for which fused SGD is missing
    kernel = {"foreach": True} if divided else {"fused": True}
    rules: dict[str, Callable[..., torch.optim.Optimizer]] = {
        "sgd": lambda g: torch.optim.SGD(g, spec.learning_rate, spec.momentum, nesterov=spec.nesterov, **kernel),
        "adam": lambda g: torch.optim.Adam(g, spec.learning_rate, (spec.beta1, spec.beta2), spec.epsilon, fused=True),
        "adamw": lambda g: torch.optim.AdamW(g, spec.learning_rate, (spec.beta1, spec.beta2), spec.epsilon, fused=True),
    }
    if spec.name not in rules:
        raise Refusal(
            "unsupported", f"PyTorch has no native {spec.name} here; available: {', '.join(rules)}. {WRITTEN_OUT}"
        )
    return rules[spec.name](groups)


class Reference:
    """The formula of every optimizer in its declared form, tensor by tensor; scalars are computed on the host."""

    def __init__(self, spec: Optimizer, named: dict[str, Tensor], rates: Array | None = None) -> None:
        self._spec, self._named, self._rates, self._t = spec, named, rates, 0
        self._first = {name: torch.zeros_like(tensor) for name, tensor in named.items()}
        self._second = {name: torch.zeros_like(tensor) for name, tensor in named.items()}

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Discard the gradients."""
        for tensor in self._named.values():
            tensor.grad = None if set_to_none else torch.zeros_like(tensor)

    @torch.no_grad()
    def step(self) -> None:
        """Apply one update."""
        if self._rates is not None:
            self._spec = replace(self._spec, learning_rate=update_scalars.rate_at(self._rates, self._t))
        self._t += 1
        if self._spec.clip:
            self._clip([tensor.grad for tensor in self._named.values()])
        rule = {"sgd": self._sgd, "lamb": self._lamb}.get(self._spec.name, self._adam)
        for name, tensor in self._named.items():
            rule(self._spec.of_tensor(name), name, tensor)

    def forget(self) -> None:
        """Begin again with moments of zero."""
        self._t = 0
        for moment in (*self._first.values(), *self._second.values()):
            moment.zero_()

    def _clip(self, gradients: list[Tensor]) -> None:
        norm = math.sqrt(sum(float(g.square().sum()) for g in gradients))
        for g in gradients if norm > self._spec.clip else ():
            g.mul_(self._spec.clip / norm)

    def _sgd(self, spec: Optimizer, name: str, p: Tensor) -> None:
        u, decay = self._first[name], spec.decay_of(name)
        g = p.grad + decay * p if decay else p.grad
        inner, outer = update_scalars.rates_of(spec)
        u.mul_(spec.momentum).add_(inner * g)
        p.sub_(outer * (inner * g + spec.momentum * u if spec.nesterov else u))

    def _adam(self, spec: Optimizer, name: str, p: Tensor) -> None:
        m, v, g, decay = self._first[name], self._second[name], p.grad, spec.decay_of(name)
        if decay and spec.name == "adamw":
            p.mul_(1 - spec.learning_rate * decay)
        elif decay:
            g = g + decay * p
        self._update_moments(m, v, g)
        first, second, rate = update_scalars.of_step(spec, self._t)
        if spec.form == "canonical":
            p.sub_(spec.learning_rate * (m / first) / ((v / second).sqrt() + spec.epsilon))
        else:
            p.sub_(rate * m / (v.sqrt() + spec.epsilon))

    def _lamb(self, spec: Optimizer, name: str, p: Tensor) -> None:
        m, v, decay = self._first[name], self._second[name], spec.decay_of(name)
        self._update_moments(m, v, p.grad)
        first, second = spec.corrections(self._t)
        change = (m / first) / ((v / second).sqrt() + spec.epsilon) + decay * p
        norm, change_norm = torch.linalg.vector_norm(p), torch.linalg.vector_norm(change)
        ratio = torch.where((norm > 0) & (change_norm > 0), norm / change_norm, 1.0)
        p.sub_(spec.learning_rate * ratio * change)

    def _update_moments(self, m: Tensor, v: Tensor, g: Tensor) -> None:
        spec = self._spec
        m.mul_(spec.beta1).add_((1 - spec.beta1) * g)
        v.mul_(spec.beta2).add_((1 - spec.beta2) * g * g)

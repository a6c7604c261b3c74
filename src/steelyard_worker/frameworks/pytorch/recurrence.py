"""Products in custom loops over time whose matrices get their gradients after the loop, as inside `nn.LSTM`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from torch import Tensor


class Deferred:
    """Step t of a loop is value (N, in) -> added[t] + value @ weight.T, (N, out); `added` is (T, N, out), `weight` (out, in).

    Autograd would compute a product for the weight's gradient at every step and add it to the sum: with many units and few
    samples that is most of the work of the loop. Here it is one product over all steps. Call it once per step, in order.
    """

    def __init__(self, weight: Tensor, added: Tensor) -> None:
        self._factors: list[Tensor] = []
        self._matrix = weight.detach().t()
        self._added = iter(_Gradient.apply(weight, added, self._factors).unbind())

    def __call__(self, value: Tensor) -> Tensor:
        if torch.is_grad_enabled():
            self._factors.append(value.detach())
        return torch.addmm(next(self._added), value, self._matrix)


class _Gradient(torch.autograd.Function):
    """Passes `added` on. Its gradient is that of the products; with the recorded factors it gives the weight's gradient."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, added: Tensor, factors: list[Tensor]) -> Tensor:
        del weight
        ctx.factors = factors
        return added.view_as(added)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None]:
        (of_products,) = gradients
        values = torch.cat(ctx.factors)
        return of_products.flatten(0, 1).t() @ values, of_products, None

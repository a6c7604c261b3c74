"""PyTorch: any torch.nn.Module; its modules are followed by hooks."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn

from steelyard_worker.port import kinds
from steelyard_worker.port.calling import called
from steelyard_worker.port.errors import SideError
from steelyard_worker.port.observed import Bridge, Call

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from steelyard_worker.port.observed import Observer


def _array(tensor: torch.Tensor) -> np.ndarray:
    tensor = tensor.detach().cpu()
    return (tensor.float() if tensor.dtype in (torch.bfloat16, torch.float16) else tensor).contiguous().numpy()


def _like(array: np.ndarray, example: torch.Tensor) -> torch.Tensor:
    return torch.from_numpy(np.ascontiguousarray(array)).to(device=example.device, dtype=example.dtype)


class TorchModule:
    """A torch.nn.Module."""

    kind = "torch.nn.Module"
    without_randomness = True

    def __init__(self, module: nn.Module) -> None:
        self._module = module
        self.bridge = Bridge(lambda value: isinstance(value, torch.Tensor), _array, _like)

    def tensors(self) -> Iterator[tuple[str, Any, bool]]:
        """Yield parameters, then buffers that belong to a checkpoint."""
        saved = self._module.state_dict(keep_vars=True)
        for name, tensor in saved.items():
            if isinstance(tensor, torch.Tensor):
                yield name, tensor, isinstance(tensor, nn.Parameter) and tensor.requires_grad

    @torch.no_grad()
    def load(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Copy arrays into the tensors."""
        saved = self._module.state_dict(keep_vars=True)
        for name, array in arrays.items():
            saved[name].data.copy_(torch.from_numpy(np.ascontiguousarray(array)).reshape(saved[name].shape))

    def double(self) -> bool:
        """Convert all tensors to float64."""
        self._module = self._module.double()
        return True

    def place(self, arrays: Mapping[str, np.ndarray]) -> dict[str, Any]:
        """Return tensors on the device of the module; floats in the dtype of its first parameter, integers as int64."""
        example = next((each for each in self._module.parameters() if each.is_floating_point()), torch.zeros(1))
        placed = {}
        for name, array in arrays.items():
            tensor = torch.from_numpy(np.ascontiguousarray(array)).to(example.device)
            if tensor.is_floating_point():
                tensor = tensor.to(example.dtype)
            elif tensor.dtype != torch.bool:
                tensor = tensor.long()
            placed[name] = tensor
        return placed

    def forward(self, arguments: Any, observer: Observer, training: bool) -> Any:
        """Call the module; hooks report to the observer."""
        self._module.train(training)
        hooks: list[Any] = []
        try:
            for path, module in self._module.named_modules():
                if path:
                    hooks += _followed(path, module, observer)
            with torch.no_grad(), _no_dropout():
                return called(self._module, arguments, self._module.forward)
        finally:
            for hook in hooks:
                hook.remove()

    def gradients(self, objective: Callable[[Callable[[Any], Any]], Any]) -> tuple[Any, dict[str, Any]]:
        """Run a backward pass in evaluation mode. A tensor that the loss does not depend on has a gradient of zeros."""
        self._module.train(False)
        self._module.zero_grad(set_to_none=True)
        loss = objective(lambda arguments: called(self._module, arguments, self._module.forward))
        if not loss.requires_grad:
            raise SideError("The loss depends on no parameter: it was detached, or computed without gradients.")
        loss.backward()
        trained = {name: tensor for name, tensor, is_trained in self.tensors() if is_trained}
        return loss, {
            name: torch.zeros_like(each) if each.grad is None else each.grad for name, each in trained.items()
        }

    def predictor(self) -> Callable[[Any], Any]:
        """Return the forward pass in evaluation mode and without gradients, operator by operator."""
        module = self._module.eval()

        @torch.inference_mode()
        def run(arguments: Any) -> Any:
            return called(module, arguments, module.forward)

        return run

    def updater(self, made: Callable[[Any], Any]) -> TorchUpdater:
        """Return an optimizer of torch.optim, or one with its schedule."""
        return TorchUpdater(self, made(self._module))


class TorchUpdater:
    """An optimizer, alone or as (optimizer, schedule)."""

    def __init__(self, model: TorchModule, made: Any) -> None:
        self._model = model
        self._optimizer, self._schedule = made if isinstance(made, tuple) else (made, None)
        if not hasattr(self._optimizer, "param_groups"):
            raise SideError(
                f"optimizer() returned a {type(made).__name__}. Return an optimizer of torch.optim, or (optimizer, schedule)."
            )
        groups = self._optimizer.param_groups
        self.settings: dict[str, list[Any]] = {"rule": [type(self._optimizer).__name__]}
        for name, keys in _SETTINGS.items():
            values = [group[keys] for group in groups if group.get(keys) is not None]
            self.settings |= {name: list(dict.fromkeys(values))} if values else {}
        betas = [group["betas"] for group in groups if "betas" in group]
        for place, name in enumerate(("beta1", "beta2")):
            self.settings |= {name: list(dict.fromkeys(float(each[place]) for each in betas))} if betas else {}

    def apply(self, gradients: Mapping[str, np.ndarray]) -> None:
        """Set the gradients, and do one step."""
        self._optimizer.zero_grad()
        named = {name: tensor for name, tensor, _ in self._model.tensors()}
        for name, array in gradients.items():
            named[name].grad = _like(array.reshape(named[name].shape), named[name])
        self._optimizer.step()
        if self._schedule is not None:
            self._schedule.step()


# Words that all frameworks share -> keys of a group of parameters.
_SETTINGS = {
    "learning rate": "lr",
    "momentum": "momentum",
    "epsilon": "eps",
    "weight decay": "weight_decay",
    "nesterov": "nesterov",
    "dampening": "dampening",
}
_RANDOM = ("dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout")


@contextlib.contextmanager
def _no_dropout() -> Iterator[None]:
    """Let every form of dropout return what it gets, also the one inside attention. In evaluation mode it does so anyway."""
    functional = nn.functional
    known = {name: getattr(functional, name) for name in _RANDOM}
    attention = functional.scaled_dot_product_attention

    def plain(
        query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: float = 0.0, *rest: Any, **named: Any
    ) -> Any:
        del dropout_p
        return attention(query, key, value, attn_mask, 0.0, *rest, **named)

    try:
        for name in known:
            setattr(functional, name, lambda value, *_, **__: value)
        functional.scaled_dot_product_attention = plain
        yield
    finally:
        for name, function in known.items():
            setattr(functional, name, function)
        functional.scaled_dot_product_attention = attention


def _followed(path: str, module: nn.Module, observer: Observer) -> list[Any]:
    def before(
        _: nn.Module, arguments: tuple[Any, ...], named: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        call = Call("", path, type(module).__name__, *described(module), tensors=_own(path, module))
        changed: tuple[tuple[Any, ...], dict[str, Any]] = observer.entered(call, (arguments, named))
        return changed

    def after(_: nn.Module, arguments: tuple[Any, ...], named: dict[str, Any], result: Any) -> Any:
        del arguments, named
        return observer.left(result)

    return [
        module.register_forward_pre_hook(before, with_kwargs=True),
        module.register_forward_hook(after, with_kwargs=True),
    ]


def _own(path: str, module: nn.Module) -> dict[str, str]:
    own = [*module.named_parameters(recurse=False), *module.named_buffers(recurse=False)]
    return {role: f"{path}.{role}" for role, _ in own}


def described(module: nn.Module) -> tuple[str, dict[str, Any]]:
    """Return what a module computes and its constants, in words that all frameworks share."""
    known = kinds.described(module, _KINDS)
    if known[0]:
        return known
    epsilon = getattr(module, "variance_epsilon", getattr(module, "eps", None))
    if "RMSNorm" in type(module).__name__ and isinstance(epsilon, float):
        return "rms_norm", {"epsilon": epsilon}
    if "GELU" in type(module).__name__:  # such as the classes of transformers
        return "gelu", {}
    return "", {}


def _convolution(module: Any) -> dict[str, Any]:
    padding = module.padding if isinstance(module.padding, str) else list(module.padding)
    return {
        "stride": list(module.stride),
        "padding": padding,
        "dilation": list(module.dilation),
        "groups": module.groups,
    }


def _pooling(module: Any) -> dict[str, Any]:
    is_max = isinstance(module, nn.modules.pooling._MaxPoolNd)
    found = {
        "kind": "maximum" if is_max else "mean",
        "window": module.kernel_size,
        "stride": module.stride,
        "padding": module.padding,
        "size": "up" if module.ceil_mode else "down",
    }
    if not is_max:
        found["mean over"] = "the window" if module.count_include_pad else "the places that are there"
    return {name: list(value) if isinstance(value, tuple) else value for name, value in found.items()}


# Classes, kind, and the settings that a module of it has.
_KINDS: list[tuple[Any, str, Callable[[Any], dict[str, Any]]]] = [
    (nn.LayerNorm, "layer_norm", lambda m: {"epsilon": m.eps}),
    (nn.GroupNorm, "group_norm", lambda m: {"epsilon": m.eps, "groups": m.num_groups}),
    (nn.modules.batchnorm._BatchNorm, "batch_norm", lambda m: {"epsilon": m.eps, "momentum": m.momentum}),
    ((nn.modules.pooling._MaxPoolNd, nn.AvgPool1d, nn.AvgPool2d, nn.AvgPool3d), "pooling", _pooling),
    (nn.Linear, "dense", lambda _: {}),
    (nn.modules.conv._ConvNd, "convolution", _convolution),
    (nn.Embedding, "embedding", lambda m: {"padding": m.padding_idx}),
    (nn.GELU, "gelu", lambda m: {"approximate": m.approximate}),
    (nn.MultiheadAttention, "attention", lambda _: {}),
    (nn.LSTM, "lstm", lambda _: {}),
    (nn.GRU, "gru", lambda _: {}),
]
if hasattr(nn, "RMSNorm"):
    _KINDS.append((nn.RMSNorm, "rms_norm", lambda m: {"epsilon": m.eps}))

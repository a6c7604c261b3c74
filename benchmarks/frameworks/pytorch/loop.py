"""PyTorch as a user would write it by hand: a bare loop around our objects, and training of a reference implementation.

A reference file has `model(sizes)`, `inputs(batch)` (tensors by name from canonical arrays) and `loss(model, batch)`.
"""

import importlib.util
import sys

import torch
from torch import nn


def bare_loop(trainer, batch, steps):
    """The training loop of PyTorch's own tutorials, with the trainer's objects."""
    forward, rule = trainer._forward, trainer._rule
    for _ in range(steps):
        rule.zero_grad(set_to_none=True)
        _, loss = forward(batch)
        loss.backward()
        rule.step()


def reference(module, sizes, optimizer, batch):
    """Return (step, synchronise, count) of a reference: eager, channels-last, fused update, as in PyTorch's tuning guide."""
    _declare_operators()
    device = torch.get_default_device()
    torch.manual_seed(0)
    model = module.model(sizes).to(device, memory_format=torch.channels_last).train()
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    rule, clip = _rule(model, optimizer), optimizer["clip"]
    placed = {name: _placed(tensor, device) for name, tensor in module.inputs(batch).items()}

    def step():
        rule.zero_grad(set_to_none=True)
        loss = module.loss(model, placed)
        loss.backward()
        if clip:
            nn.utils.clip_grad_norm_(trained, clip)
        rule.step()
        return loss.detach()

    synchronise = torch.cuda.synchronize if device.type == "cuda" else _nothing
    return step, synchronise, sum(parameter.numel() for parameter in trained)


def _nothing():
    """On CPU every call has finished when it returns."""


def _placed(tensor, device):
    return tensor.to(device, memory_format=torch.channels_last) if tensor.dim() == 4 else tensor.to(device)


def _rule(model, optimizer):
    """PyTorch's fused optimizer; matrices, biases, and scales and shifts decay if our specification says so."""
    endings = {name.rpartition(".")[2] for name in optimizer["decay"]}
    decayed = {
        "matrix": bool(endings & {"weight", "w_ih", "w_hh"}),
        "norm": "gamma" in endings,
        "bias": bool(endings & {"bias", "b"}),
    }
    groups = {True: [], False: []}
    for part in model.modules():
        norm = isinstance(part, (nn.modules.batchnorm._BatchNorm, nn.LayerNorm))
        for parameter in part.parameters(recurse=False):
            kind = "norm" if norm else "matrix" if parameter.dim() > 1 else "bias"
            found = groups[decayed[kind]]
            if parameter.requires_grad and all(parameter is not known for known in found):  # embeddings may be tied
                found.append(parameter)
    parameters = [
        {"params": found, "weight_decay": optimizer["weight_decay"] if decays else 0.0}
        for decays, found in groups.items()
        if found
    ]
    rate = optimizer["learning_rate"]
    if optimizer["name"] == "sgd":
        momentum, nesterov = optimizer["momentum"], optimizer["nesterov"]
        return torch.optim.SGD(parameters, rate, momentum=momentum, nesterov=nesterov, fused=True)
    kind = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[optimizer["name"]]
    betas = (optimizer["beta1"], optimizer["beta2"])
    return kind(parameters, rate, betas, optimizer["epsilon"], fused=True)


def _declare_operators():
    """Make torchvision importable with PyTorch's CPU build.

    The published torchvision is compiled for CUDA, so its operators do not load there. Only object detection uses them, but
    the import of the package (and of transformers, which imports it) fails unless two of them are declared.
    """
    if importlib.util.find_spec("torchvision") is None:
        return
    try:
        import torchvision  # noqa: F401
    except RuntimeError:
        for name in [name for name in sys.modules if name.partition(".")[0] == "torchvision"]:
            del sys.modules[name]
        for name in ("nms", "qnms"):
            torch.library.define(f"torchvision::{name}", "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")

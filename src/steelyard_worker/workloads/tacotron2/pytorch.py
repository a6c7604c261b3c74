"""Tacotron 2 in PyTorch: the decoder's loop computes only what depends on the previous frame."""

from __future__ import annotations

from functools import cache, partial
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from steelyard_worker.frameworks.pytorch.recurrence import Deferred
from steelyard_worker.frameworks.pytorch.recurrent import Bidirectional, named_by_module_and_direction
from steelyard_worker.probes import probe

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Tensors = tuple[Tensor, ...]


class Convolutions(nn.Module):
    """Convolutions of width 5, each with batch norm and activation: (N, C, T) -> (N, out, T)."""

    def __init__(self, widths: tuple[int, ...], activations: tuple[nn.Module, ...]) -> None:
        super().__init__()
        self.count = len(activations)
        for number in range(self.count):
            self.add_module(f"conv{number}", nn.Conv1d(widths[number], widths[number + 1], 5, padding=2, bias=False))
            self.add_module(f"bn{number}", nn.BatchNorm1d(widths[number + 1], eps=1e-5, momentum=0.1))
            self.add_module(f"activation{number}", activations[number])

    def forward(self, x: Tensor) -> Tensor:
        for number in range(self.count):
            for part in ("conv", "bn", "activation"):
                x = getattr(self, f"{part}{number}")(x)
        return x


class Encoder(Convolutions):
    """Embedded text (N, embedding, L) and lengths -> memory (N, L, embedding), zero after the lengths."""

    def __init__(self, width: int) -> None:
        super().__init__((width,) * 4, (nn.ReLU(),) * 3)
        self.lstm = Bidirectional(width, width // 2)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        return torch.cat(self.lstm(super().forward(x).permute(2, 0, 1), lengths), 2).transpose(0, 1).contiguous()


class Prenet(nn.Module):
    """Frames (T, N, mels) -> (T, N, width)."""

    def __init__(self, mels: int, width: int) -> None:
        super().__init__()
        self.dense0, self.dense1 = nn.Linear(mels, width, bias=False), nn.Linear(width, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.dense1(F.relu(self.dense0(x))))


class Cell(nn.Module):
    """Weights of an LSTM with one bias."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.w_ih = nn.Parameter(torch.empty(4 * hidden, width))
        self.w_hh = nn.Parameter(torch.empty(4 * hidden, hidden))
        self.b = nn.Parameter(torch.empty(4 * hidden))


class Decoder(nn.Module):
    """The two LSTMs of the loop."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.lstm1, self.lstm2 = Cell(width, hidden), Cell(hidden, hidden)


class Attention(nn.Module):
    """Location-sensitive attention; `prepare` computes what is the same for all frames."""

    def __init__(self, sizes: dict[str, Any]) -> None:
        super().__init__()
        units = sizes["attention"]
        self.query = nn.Linear(sizes["lstm"], units, bias=False)
        self.memory = nn.Linear(sizes["embedding"], units, bias=False)
        self.location_conv = nn.Conv1d(1, sizes["filters"], sizes["window"], padding=sizes["window"] // 2, bias=False)
        self.location_dense = nn.Linear(sizes["filters"], units, bias=False)
        self.v = nn.Linear(units, 1, bias=False)

    def prepare(self, memory: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return keys (N, L, units), the location kernel (window, units), and the mask (N, L) as a summand."""
        # The location convolution and its dense layer are both linear, so their product is one narrow convolution.
        kernel = self.location_dense.weight @ self.location_conv.weight[:, 0]
        outside = torch.arange(memory.shape[1], device=memory.device) >= lengths[:, None]
        return self.memory(memory), kernel.t(), outside.to(memory.dtype) * -1e9


class Network(nn.Module):
    """Text (N, L), its lengths, mel (N, M, T) -> mel, mel_post (N, M, T), gate (N, T)."""

    dynamic_shapes: bool | None = None

    def __init__(self, sizes: dict[str, Any]) -> None:
        super().__init__()
        width, prenet, hidden, mels = sizes["embedding"], sizes["prenet"], sizes["lstm"], sizes["mels"]
        self.embedding = nn.Embedding(sizes["symbols"], width)
        self.encoder = Encoder(width)
        self.prenet = Prenet(mels, prenet)
        self.decoder = Decoder(prenet + width, hidden)
        self.attention = Attention(sizes)
        self.frame, self.gate = nn.Linear(hidden + width, mels), nn.Linear(hidden + width, 1)
        self.postnet = Convolutions((mels, *(sizes["postnet"],) * 4, mels), (*(nn.Tanh(),) * 4, nn.Identity()))

    def forward(self, text: Tensor, text_length: Tensor, mel: Tensor) -> dict[str, Tensor]:
        memory = probe("encoded", self.encoder(self.embedding(text).mT, text_length))
        read = probe("decoded", self._decode(self._projected(mel), memory, text_length))
        frames = self.frame(read).permute(1, 2, 0)
        return {"mel": frames, "mel_post": frames + self.postnet(frames), "gate": self.gate(read)[..., 0].t()}

    def _projected(self, mel: Tensor) -> Tensor:
        """Return the part of LSTM 1's gates that comes from the previous frame, with its bias: (T, N, 4H)."""
        x = self.prenet(F.pad(mel[..., :-1], (1, 0)).permute(2, 0, 1))
        return F.linear(x, self.decoder.lstm1.w_ih[:, : x.shape[2]], self.decoder.lstm1.b)

    def _decode(self, projected: Tensor, memory: Tensor, lengths: Tensor) -> Tensor:
        """Run the loop over frames: (T, N, H + embedding), the second LSTM's states concatenated with the contexts."""
        attention, lstm1, lstm2 = self.attention, self.decoder.lstm1, self.decoder.lstm2
        keys, kernel, mask = attention.prepare(memory, lengths)
        weights = {
            "lstm1": torch.cat((lstm1.w_ih[:, -memory.shape[2] :], lstm1.w_hh), 1),
            "lstm2": torch.cat((lstm2.w_ih, lstm2.w_hh), 1),
            "query": attention.query.weight,
        }
        zero = projected.new_zeros(memory.shape[0], lstm1.w_hh.shape[1])
        state = (zero, zero, zero, zero, memory.new_zeros(memory.shape[0], memory.shape[2]), torch.zeros_like(mask))
        shared = (memory, keys, mask, kernel, attention.v.weight[0])
        return _loop(torch.compiler.is_compiling(), self.dynamic_shapes, projected, lstm2.b, state, weights, shared)


# The compiler would unroll the loop, which takes hours at full length, so it is disabled here and compiles one frame instead.
@torch.compiler.disable
def _loop(
    compiled: bool,
    dynamic: bool | None,
    projected: Tensor,
    b2: Tensor,
    state: Tensors,
    weights: dict[str, Tensor],
    shared: Tensors,
) -> Tensor:
    """Run the frames over (T, N, 4H): the second LSTM's states concatenated with the contexts, (T, N, H + embedding)."""
    frames, read = projected.shape[0], []
    if compiled:
        step = _compiled_step(dynamic)
        for at in projected.unbind():
            state = step(at, b2, state, weights, shared)
            read += [state[2], state[4]]
    else:
        added = {"lstm1": projected, "lstm2": b2.expand(*projected.shape[:2], -1)}
        added["query"] = b2.new_zeros(1).expand(*projected.shape[:2], len(weights["query"]))
        products = {name: Deferred(weight, added[name]) for name, weight in weights.items()}
        for _ in range(frames):
            state = _frame(state, products, shared)
            read += [state[2], state[4]]
    return torch.cat(read, 1).view(projected.shape[1], frames, -1).transpose(0, 1)


@cache
def _compiled_step(dynamic: bool | None) -> Callable[..., Tensors]:
    return torch.compile(_step, dynamic=dynamic)


def _step(at: Tensor, b2: Tensor, state: Tensors, weights: dict[str, Tensor], shared: Tensors) -> Tensors:
    """One frame with products that autograd differentiates: LSTM 1 adds `at` (N, 4H), LSTM 2 its bias."""
    biases = {"lstm1": at, "lstm2": b2, "query": at.new_zeros(())}
    return _frame(state, {name: partial(_affine, weight, biases[name]) for name, weight in weights.items()}, shared)


def _affine(weight: Tensor, added: Tensor, value: Tensor) -> Tensor:
    return F.linear(value, weight) + added


def _frame(state: Tensors, products: Mapping[str, Callable[[Tensor], Tensor]], shared: Tensors) -> Tensors:
    """Map the state (h1, c1, h2, c2, context, cumulative weights) to the next one."""
    h1, c1, h2, c2, context, cumulative = state
    memory, keys, mask, kernel, v = shared
    h1, c1 = _lstm(products["lstm1"](torch.cat((context, h1), 1)), c1)
    h2, c2 = _lstm(products["lstm2"](torch.cat((h1, h2), 1)), c2)
    half = kernel.shape[0] // 2
    location = F.pad(cumulative, (half, half)).unfold(1, kernel.shape[0], 1) @ kernel
    energy = torch.tanh(products["query"](h2)[:, None] + keys + location) @ v
    share = torch.softmax(energy + mask, dim=1)
    return h1, c1, h2, c2, (share[:, None] @ memory)[:, 0], cumulative + share


def _lstm(gates: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    """Gates (N, 4H) and the cell state -> hidden and cell state."""
    if gates.is_cuda:
        # What LSTMCell runs on a GPU; there is no public function for products that are computed elsewhere.
        return torch.ops.aten._thnn_fused_lstm_cell(gates, torch.zeros_like(gates), c)[:2]  # noqa: SLF001
    i, f, g, o = gates.chunk(4, 1)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(c), c


INPUTS = ("text", "text_length", "mel")


def build(sizes: dict[str, Any]) -> nn.Module:
    """Return the network; its weights are loaded later."""
    return Network(sizes)


def variables(network: nn.Module) -> dict[str, Tensor]:
    """Map canonical names to tensors."""
    return named_by_module_and_direction(network)


def loss(outputs: dict[str, Tensor], batch: dict[str, Tensor]) -> Tensor:
    """Squared errors of both spectrograms and the gate's cross-entropy, plain means that include padding."""
    target, gate = batch["mel"], outputs["gate"]
    ended = torch.arange(gate.shape[1], device=gate.device) >= batch["mel_length"][:, None] - 1
    squared = F.mse_loss(outputs["mel"], target) + F.mse_loss(outputs["mel_post"], target)
    return squared + F.binary_cross_entropy_with_logits(gate, ended.to(gate.dtype))

"""A port check of a model of the size of BERT-base: seconds to map its tensors, of the whole check, and memory of a side.

Both sides are in PyTorch, with equal weights under other names, and query, key and value apart on one side only.
"""

from __future__ import annotations

import tempfile
import threading
import time
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from benchmarks.rows import Row
from steelyard.console import Screen
from steelyard.ports import check, definition, interpreters
from steelyard.results.port_record import Side

if TYPE_CHECKING:
    from collections.abc import Iterator

MAPPED_S, WHOLE_S, COPIES = 5.0, 60.0, 3.0
POLL_S = 0.05
MODEL = '''
import torch
from torch import nn

WIDTH, HEADS, LAYERS, WORDS, LONGEST = 768, 12, 12, 30522, 512


class Layer(nn.Module):
    def __init__(self, fused):
        super().__init__()
        self.fused = fused
        if fused:
            self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        else:
            self.query, self.key, self.value = (nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.mixed, self.norm = nn.Linear(WIDTH, WIDTH), nn.LayerNorm(WIDTH)
        self.up, self.down, self.last = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH), nn.LayerNorm(WIDTH)

    def forward(self, x):
        parts = self.qkv(x).chunk(3, -1) if self.fused else (self.query(x), self.key(x), self.value(x))
        q, k, v = (each.unflatten(-1, (HEADS, -1)).transpose(1, 2) for each in parts)
        a = nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
        x = self.norm(x + self.mixed(a))
        return self.last(x + self.down(nn.functional.gelu(self.up(x))))


class Encoder(nn.Module):
    def __init__(self, fused):
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, WIDTH), nn.Embedding(LONGEST, WIDTH)
        self.norm, self.layers = nn.LayerNorm(WIDTH), nn.ModuleList(Layer(fused) for _ in range(LAYERS))
        self.pooled = nn.Linear(WIDTH, WIDTH)

    def forward(self, tokens):
        x = self.norm(self.words(tokens) + self.places(torch.arange(tokens.shape[1])))
        for layer in self.layers:
            x = layer(x)
        return torch.tanh(self.pooled(x[:, 0]))


def separate():
    torch.manual_seed(0)
    return Encoder(False)


def fused():
    """The same model: its kernels for query, key and value are one."""
    values, model = separate().state_dict(), Encoder(True)
    for number in range(LAYERS):
        for kind in ("weight", "bias"):
            names = [f"layers.{number}.{part}.{kind}" for part in ("query", "key", "value")]
            values[f"layers.{number}.qkv.{kind}"] = torch.cat([values.pop(name) for name in names])
    model.load_state_dict(values)
    return model
'''
TOML = """
[sides.separate]
framework = "pytorch"
[sides.fused]
framework = "pytorch"
[inputs.tokens]
shape = [2, 32]
dtype = "int64"
low = 0
high = 30522
"""


def measure() -> list[Row]:
    """Return the rows. The start of both processes, which import PyTorch and make the models, is not counted."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "port.toml").write_text(TOML, encoding="utf-8")
        (folder / "encoder.py").write_text(MODEL, encoding="utf-8")
        for side in ("separate", "fused"):
            (folder / f"{side}.py").write_text(f"from encoder import {side} as model\n", encoding="utf-8")
        port = definition.read(folder)
        with closing(Screen()) as screen:
            pythons = interpreters.of(port, screen)
        said: list[tuple[str, float]] = []
        with _peak() as peak:
            record = check.check(port, pythons, lambda text: said.append((text, time.monotonic())), 600.0)
            end = time.monotonic()
    assert not record.differences, record.differences
    begin = {text.split()[0]: at for text, at in reversed(said)}
    mapping = next(place for place, (text, _) in enumerate(said) if text.startswith("Mapping"))
    size = 4 * _largest(record.left, record.right)
    detail = (
        f"{record.left.tensors} and {record.right.tensors} tensors, {record.left.parameters / 1e6:.0f} million values"
    )
    return [
        Row("port: seconds to map the tensors", said[mapping + 1][1] - said[mapping][1], MAPPED_S, "at most", detail),
        Row(
            "port: seconds of the check without its start", end - begin["Mapping"], WHOLE_S, "at most", record.precision
        ),
        Row(
            "port: peak memory of a side / its float32 weights",
            peak[0] / size,
            COPIES,
            "at most",
            "with PyTorch itself",
        ),
    ]


def _largest(*sides: Side) -> int:
    return max(side.parameters for side in sides)


@contextmanager
def _peak() -> Iterator[list[int]]:
    """Yield the largest resident memory of a child process so far, in bytes."""
    peak, ended = [0], threading.Event()

    def follow() -> None:
        while not ended.wait(POLL_S):
            for child in psutil.Process().children(recursive=True):
                try:
                    peak[0] = max(peak[0], child.memory_info().rss)
                except psutil.Error:
                    continue

    thread = threading.Thread(target=follow)
    thread.start()
    try:
        yield peak
    finally:
        ended.set()
        thread.join()

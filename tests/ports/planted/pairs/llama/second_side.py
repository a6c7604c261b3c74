"""The same Llama with PyTorch's own scaled dot-product attention."""

from __future__ import annotations

from pathlib import Path

from transformers import LlamaModel


def build(**changed):
    return LlamaModel.from_pretrained(Path(__file__).parent / "checkpoint", attn_implementation="sdpa", **changed)


def outputs(result):
    return result.last_hidden_state

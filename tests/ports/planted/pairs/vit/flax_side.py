"""ViT of transformers in Flax, with the checkpoint that the PyTorch side has saved."""

from __future__ import annotations

from pathlib import Path

from transformers import FlaxViTModel


def build(**changed):
    return FlaxViTModel.from_pretrained(Path(__file__).parent / "checkpoint", add_pooling_layer=False, **changed)


def outputs(result):
    return result.last_hidden_state

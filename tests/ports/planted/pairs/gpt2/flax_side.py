"""GPT-2 of transformers in Flax, with the checkpoint that the PyTorch side has saved."""

from __future__ import annotations

from pathlib import Path

from transformers import FlaxGPT2Model


def build(**changed):
    return FlaxGPT2Model.from_pretrained(Path(__file__).parent / "checkpoint", **changed)


def outputs(result):
    return result.last_hidden_state

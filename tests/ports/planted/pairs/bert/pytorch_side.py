"""BERT of transformers in PyTorch, small, with random weights, which it saves for the other side."""

from __future__ import annotations

from pathlib import Path

import torch
from transformers import BertConfig, BertModel

SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
SIZES |= {"vocab_size": 60, "max_position_embeddings": 24}


def build():
    torch.manual_seed(0)
    model = BertModel(BertConfig(**SIZES), add_pooling_layer=False)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.1 * torch.randn_like(parameter)
    model.save_pretrained(Path(__file__).parent / "checkpoint")
    return model


def outputs(result):
    return result.last_hidden_state

"""Hugging Face's BERT for pre-training, its two heads applied to the masked positions and to the first token only."""

import sys

import torch
from torch.nn import functional as F

SOURCE = "transformers.BertForPreTraining 5.23.0 (scaled_dot_product_attention), its heads applied to the masked positions only"
DIFFERS = ""


def model(sizes):
    """Return the network without dropout."""
    # transformers imports torchaudio if it is installed; the published torchaudio does not load with PyTorch's CPU build.
    sys.modules.setdefault("torchaudio", None)
    from transformers import BertConfig, BertForPreTraining

    return BertForPreTraining(
        BertConfig(
            vocab_size=sizes["vocabulary"],
            hidden_size=sizes["hidden"],
            num_hidden_layers=sizes["layers"],
            num_attention_heads=sizes["heads"],
            intermediate_size=sizes["intermediate"],
            hidden_act="gelu_new" if sizes["gelu"] == "tanh" else "gelu",
            max_position_embeddings=sizes["positions"],
            initializer_range=sizes["initial"],
            layer_norm_eps=1e-12,
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
            attn_implementation="sdpa",
        )
    )


def inputs(batch):
    """Convert integers to PyTorch's index type; the weights of masked positions are unchanged."""
    found = {name: torch.from_numpy(array) for name, array in batch.items()}
    return {name: tensor if tensor.is_floating_point() else tensor.long() for name, tensor in found.items()}


def loss(model, batch):
    """Weighted mean over the masked words of the batch, plus the mean over its next sentences."""
    states, pooled = model.bert(
        batch["input_ids"], batch["input_mask"], token_type_ids=batch["segment_ids"], return_dict=False
    )[:2]
    places = batch["masked_lm_positions"][..., None].expand(-1, -1, states.shape[2])
    words, following = model.cls(states.gather(1, places), pooled)
    each = F.cross_entropy(words.flatten(0, 1), batch["masked_lm_ids"].flatten(), reduction="none")
    weights = batch["masked_lm_weights"].flatten()
    return (each * weights).sum() / (weights.sum() + 1e-5) + F.cross_entropy(following, batch["next_sentence_label"])

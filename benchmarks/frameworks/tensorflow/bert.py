"""BERT pre-training from KerasHub: backbone, masked-word head, and a dense layer for next sentences."""

import keras
import keras_hub
import tensorflow as tf

SOURCE = "keras_hub 0.32.0, models.BertBackbone with layers.MaskedLMHead, with the preset's form of GELU"
DIFFERS = ""


def model(sizes):
    """Return the network; all sizes are arguments except the form of GELU, an attribute that the layers read at every call."""
    approximate = sizes["gelu"] == "tanh"

    def gelu(x):
        return keras.activations.gelu(x, approximate=approximate)

    backbone = keras_hub.models.BertBackbone(
        vocabulary_size=sizes["vocabulary"],
        num_layers=sizes["layers"],
        num_heads=sizes["heads"],
        hidden_dim=sizes["hidden"],
        intermediate_dim=sizes["intermediate"],
        dropout=0.0,
        max_sequence_length=sizes["positions"],
    )
    for layer in backbone.transformer_layers:
        layer._feedforward_intermediate_dense.activation = gelu
    head = keras_hub.layers.MaskedLMHead(
        token_embedding=backbone.token_embedding, intermediate_activation=gelu, layer_norm_epsilon=1e-12
    )
    places = keras.Input((None,), dtype="int32", name="mask_positions")
    found = backbone(backbone.input)
    outputs = {
        "words": head(found["sequence_output"], places),
        "next": keras.layers.Dense(2)(found["pooled_output"]),
    }
    return keras.Model({**backbone.input, "mask_positions": places}, outputs)


def inputs(batch):
    """Canonical names -> keras_hub's."""
    names = {
        "token_ids": "input_ids",
        "padding_mask": "input_mask",
        "segment_ids": "segment_ids",
        "mask_positions": "masked_lm_positions",
    }
    return {theirs: batch[ours] for theirs, ours in names.items()}


def loss(outputs, batch):
    """Weighted mean over all masked words of the batch, plus the mean over its next sentences."""
    cross_entropy = tf.nn.sparse_softmax_cross_entropy_with_logits
    weights = batch["masked_lm_weights"]
    words = cross_entropy(batch["masked_lm_ids"], outputs["words"])
    following = tf.reduce_mean(cross_entropy(batch["next_sentence_label"], outputs["next"]))
    return tf.reduce_sum(words * weights) / (tf.reduce_sum(weights) + 1e-5) + following

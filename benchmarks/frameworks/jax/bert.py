"""Hugging Face's BERT for pre-training in Flax, its heads applied to the masked positions and to the first token only."""

import jax.numpy as jnp
import optax
from flax import linen, nnx

SOURCE = "transformers.FlaxBertForPreTraining 4.57.6, the last release with Flax, its heads applied to the masked positions only"
DIFFERS = ""


def model(sizes, inputs):
    """Return the network without dropout."""
    from transformers import BertConfig
    from transformers.models.bert.modeling_flax_bert import FlaxBertModule, FlaxBertPreTrainingHeads

    config = BertConfig(
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
    )

    class PreTraining(linen.Module):
        """The package's body and heads, connected as in its `FlaxBertForPreTraining`."""

        def setup(self):
            self.bert, self.cls = FlaxBertModule(config), FlaxBertPreTrainingHeads(config)

        def __call__(self, ids, mask, segments, places):
            positions = jnp.broadcast_to(jnp.arange(ids.shape[1]), ids.shape)
            states, pooled = self.bert(ids, mask, segments, positions, None, deterministic=True, return_dict=False)[:2]
            words = self.bert.variables["params"]["embeddings"]["word_embeddings"]["embedding"]
            return self.cls(jnp.take_along_axis(states, places[..., None], 1), pooled, shared_embedding=words)

    return nnx.bridge.ToNNX(PreTraining(), rngs=nnx.Rngs(0)).lazy_init(*_given(inputs))


def inputs(batch):
    """Return all arrays unchanged."""
    return dict(batch)


def _given(inputs):
    return tuple(inputs[name] for name in ("input_ids", "input_mask", "segment_ids", "masked_lm_positions"))


def loss(model, inputs):
    """Weighted mean over the masked words of the batch, plus the mean over its next sentences."""
    words, following = model(*_given(inputs))
    weights = inputs["masked_lm_weights"]
    each = optax.softmax_cross_entropy_with_integer_labels(words, inputs["masked_lm_ids"])
    following = optax.softmax_cross_entropy_with_integer_labels(following, inputs["next_sentence_label"])
    return (each * weights).sum() / (weights.sum() + 1e-5) + following.mean()

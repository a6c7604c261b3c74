"""BERT pre-training from GluonNLP."""

import gluonnlp
from mxnet import gluon

SOURCE = (
    "gluonnlp 0.10.0, model.BERTModel on model.BERTEncoder, with its masked-word decoder and its next-sentence "
    "classifier"
)
DIFFERS = ""


def model(sizes):
    """Return the network; all sizes are arguments, its GELU is exact."""
    if sizes["gelu"] != "erf":
        raise SystemExit("GluonNLP's BERT has the exact GELU only.")
    encoder = gluonnlp.model.BERTEncoder(
        num_layers=sizes["layers"],
        units=sizes["hidden"],
        hidden_size=sizes["intermediate"],
        max_length=sizes["positions"],
        num_heads=sizes["heads"],
        dropout=0.0,
    )
    return gluonnlp.model.BERTModel(
        encoder,
        vocab_size=sizes["vocabulary"],
        token_type_vocab_size=2,
        units=sizes["hidden"],
        embed_size=sizes["hidden"],
    )


def inputs(batch):
    """Words, segments, lengths, masked positions."""
    return batch["input_ids"], batch["segment_ids"], batch["input_mask"].sum(axis=1), batch["masked_lm_positions"]


def targets(batch):
    """Masked words with their weights, and next sentences."""
    return batch["masked_lm_ids"], batch["masked_lm_weights"], batch["next_sentence_label"]


class Loss(gluon.HybridBlock):
    """Weighted mean over all masked words of the batch, plus the mean over its next sentences, as in GluonNLP's pre-training."""

    def __init__(self):
        super().__init__()
        self.words, self.following = gluon.loss.SoftmaxCELoss(), gluon.loss.SoftmaxCELoss()

    def hybrid_forward(self, F, encoded, pooled, following, words, ids, weights, label):
        """Outputs of the model and targets -> scalar loss."""
        each = self.words(F.reshape(words, (-3, 0)), F.reshape(ids, (-1,)), F.reshape(weights, (-1, 1)))
        return F.broadcast_div(F.sum(each), F.sum(weights) + 1e-5) + F.mean(self.following(following, label))


def loss():
    """Return the loss of both tasks."""
    return Loss()

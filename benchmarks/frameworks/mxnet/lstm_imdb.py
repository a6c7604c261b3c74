"""Sentiment classification by Gluon's fused LSTM."""

from mxnet import gluon
from mxnet.gluon import nn

SOURCE = (
    "written by hand from mxnet 1.9.1's gluon.nn.Embedding, gluon.rnn.LSTM and gluon.nn.Dense, as in GluonNLP's "
    "sentiment analysis"
)
DIFFERS = "a second trainable bias in every LSTM"
MORE = 512


class Sentiment(gluon.HybridBlock):
    """Embedding, fused LSTM, dense layer on the last step, or on the first and the last."""

    def __init__(self, sizes):
        super().__init__()
        self.both_ends = sizes["readout"] == "first+last"
        width = sizes["hidden"] * (2 if sizes["bidirectional"] else 1)
        with self.name_scope():
            self.embedding = nn.Embedding(sizes["vocabulary"], sizes["embedding"])
            self.lstm = gluon.rnn.LSTM(
                sizes["hidden"], sizes["layers"], input_size=sizes["embedding"], bidirectional=sizes["bidirectional"]
            )
            self.head = nn.Dense(sizes["classes"], in_units=width * (2 if self.both_ends else 1))
        if not sizes["train_embedding"]:
            self.embedding.weight.grad_req = "null"

    def hybrid_forward(self, F, tokens):
        """Indices (N, T) -> logits."""
        steps = self.lstm(self.embedding(F.transpose(tokens)))
        ends = F.squeeze(F.slice_axis(steps, axis=0, begin=-1, end=None), axis=0)
        if self.both_ends:
            ends = F.concat(F.squeeze(F.slice_axis(steps, axis=0, begin=0, end=1), axis=0), ends, dim=1)
        return self.head(ends)


def model(sizes):
    """Return the network."""
    return Sentiment(sizes)


def inputs(batch):
    """Word indices."""
    return (batch["tokens"],)


def targets(batch):
    """Labels."""
    return (batch["label"],)


def loss():
    """Softmax cross-entropy of each sample."""
    return gluon.loss.SoftmaxCrossEntropyLoss()

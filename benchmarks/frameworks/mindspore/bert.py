"""BERT pre-training by MindSpore's transformer layers."""

import mindspore
from mindspore import Parameter, nn, ops

SOURCE = (
    "written by hand from mindspore 2.10.0's nn.TransformerEncoderLayer, nn.Embedding and nn.LayerNorm; mindnlp 0.5 "
    "patches Hugging Face transformers, which needs PyTorch's interface and thirty packages"
)
DIFFERS = ""


class Bert(nn.Cell):
    """Tokens of two sentences -> scores of the masked words, and of the next sentence."""

    def __init__(self, sizes):
        super().__init__()
        hidden = sizes["hidden"]
        self.words = nn.Embedding(sizes["vocabulary"], hidden)
        self.positions = nn.Embedding(sizes["positions"], hidden)
        self.segments = nn.Embedding(2, hidden)
        self.norm = nn.LayerNorm((hidden,), epsilon=1e-12)
        layers = [
            nn.TransformerEncoderLayer(
                hidden, sizes["heads"], sizes["intermediate"], dropout=0.0, activation="gelu", layer_norm_eps=1e-12,
                batch_first=True,
            )
            for _ in range(sizes["layers"])
        ]  # fmt: skip
        self.layers = nn.CellList(layers)
        self.pooler = nn.Dense(hidden, hidden, activation="tanh")
        self.transform = nn.Dense(hidden, hidden)
        self.words_norm = nn.LayerNorm((hidden,), epsilon=1e-12)
        self.words_bias = Parameter(ops.zeros(sizes["vocabulary"], mindspore.float32))
        self.next = nn.Dense(hidden, 2)

    def construct(self, ids, mask, segments, places):
        """Ids, mask and segments (N, T), masked places (N, M)."""
        x = self.words(ids) + self.positions.embedding_table[: ids.shape[1]] + self.segments(segments)
        x = self.norm(x)
        outside = mask == 0
        for layer in self.layers:
            x = layer(x, None, outside)
        chosen = ops.gather(x, places, 1, 1)
        chosen = self.words_norm(ops.gelu(self.transform(chosen)))
        words = ops.matmul(chosen, self.words.embedding_table.T) + self.words_bias
        return words, self.next(self.pooler(x[:, 0]))


def model(sizes):
    """Its GELU is exact."""
    if sizes["gelu"] != "erf":
        raise SystemExit("This reference has the exact GELU only.")
    return Bert(sizes)


def inputs(batch):
    """Words, mask, segments, masked places."""
    return tuple(batch[name] for name in ("input_ids", "input_mask", "segment_ids", "masked_lm_positions"))


def targets(batch):
    """Masked words with their weights, and next sentences."""
    return tuple(batch[name] for name in ("masked_lm_ids", "masked_lm_weights", "next_sentence_label"))


class Loss(nn.Cell):
    """Weighted mean over all masked words of the batch, plus the mean over its next sentences."""

    def __init__(self):
        super().__init__()
        self.each = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="none")

    def construct(self, words, following, ids, weights, label):
        """Outputs and targets -> one number."""
        surprise, weights = self.each(words.reshape(-1, words.shape[2]), ids.reshape(-1)), weights.reshape(-1)
        return ops.sum(surprise * weights) / (ops.sum(weights) + 1e-5) + ops.mean(self.each(following, label))


def loss():
    """The loss of both tasks."""
    return Loss()

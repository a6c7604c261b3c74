"""GNMT v2 after NVIDIA's PyTorch program, from `nn.LSTM`: packed first layer, attention over the whole target at once."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

SOURCE = "written by hand after NVIDIA DeepLearningExamples' GNMT v2, from torch.nn.LSTM: no package has this network"
DIFFERS = "nn.LSTM trains a second bias in every direction"
MORE = 36_864


class Encoder(nn.Module):
    """A bidirectional layer on packed sequences, then unidirectional ones with residuals: (S, N, H) -> (S, N, H)."""

    def __init__(self, hidden, layers):
        super().__init__()
        self.first = nn.LSTM(hidden, hidden, bidirectional=True)
        widths = [2 * hidden] + [hidden] * (layers - 2)
        self.rest = nn.ModuleList(nn.LSTM(width, hidden) for width in widths)

    def forward(self, x, lengths):
        """Run all layers; padding is zero after the first."""
        packed = pack_padded_sequence(x, lengths, enforce_sorted=False)
        x, _ = pad_packed_sequence(self.first(packed)[0], total_length=len(x))
        x, _ = self.rest[0](x)
        for lstm in self.rest[1:]:
            x = lstm(x)[0] + x
        return x


class Attention(nn.Module):
    """Bahdanau's attention with a normalised vector: queries (T, N, H), keys (S, N, H) -> contexts (T, N, H)."""

    def __init__(self, hidden):
        super().__init__()
        self.query, self.key = nn.Linear(hidden, hidden, bias=False), nn.Linear(hidden, hidden, bias=False)
        self.vector = nn.Parameter(torch.empty(hidden).uniform_(-0.1, 0.1))
        self.bias, self.scale = nn.Parameter(torch.zeros(hidden)), nn.Parameter(torch.tensor([hidden**-0.5]))

    def forward(self, queries, keys, beyond):
        """Score every pair, mask the padding, average."""
        keys, queries = keys.transpose(0, 1), queries.transpose(0, 1)
        pairs = self.query(queries)[:, :, None] + self.key(keys)[:, None] + self.bias
        scores = torch.tanh(pairs) @ (self.vector / self.vector.norm() * self.scale)
        shares = F.softmax(scores.masked_fill(beyond[:, None], -65504.0), dim=-1)
        return torch.bmm(shares, keys).transpose(0, 1)


class GNMT(nn.Module):
    """Source and target (N, length) -> logits (T - 1, N, vocabulary)."""

    def __init__(self, sizes):
        super().__init__()
        hidden, layers = sizes["hidden"], sizes["layers"]
        self.embedding = nn.Embedding(sizes["vocabulary"], hidden, padding_idx=0)
        self.encoder, self.attention = Encoder(hidden, layers), Attention(hidden)
        self.first = nn.LSTM(hidden, hidden)
        self.rest = nn.ModuleList(nn.LSTM(2 * hidden, hidden) for _ in range(layers - 1))
        self.classifier = nn.Linear(hidden, sizes["vocabulary"])
        nn.init.uniform_(self.embedding.weight, -0.1, 0.1)

    def forward(self, source, lengths, beyond, target):
        """Encode, then decode all words, each after the correct words before it (teacher forcing)."""
        keys = self.encoder(self.embedding(source.t()), lengths)
        x, _ = self.first(self.embedding(target[:, :-1].t()))
        context = self.attention(x, keys, beyond)
        x, _ = self.rest[0](torch.cat((x, context), 2))
        for lstm in self.rest[1:]:
            x = lstm(torch.cat((x, context), 2))[0] + x
        return self.classifier(x)


def model(sizes):
    """Return the network."""
    return GNMT(sizes)


def inputs(batch):
    """Indices, and the mask of a source's padding."""
    source, lengths, target = (torch.from_numpy(batch[name]).long() for name in ("source", "source_length", "target"))
    beyond = torch.arange(source.shape[1]) >= lengths[:, None]
    return {"source": source, "lengths": lengths, "beyond": beyond, "target": target}


def loss(model, batch):
    """Cross-entropy with labels smoothed by 0.1, summed over words and divided by the number of sentences."""
    logits = model(batch["source"], batch["lengths"].cpu(), batch["beyond"], batch["target"])
    labels = batch["target"][:, 1:].t()
    summed = F.cross_entropy(
        logits.flatten(0, 1), labels.flatten(), ignore_index=0, reduction="sum", label_smoothing=0.1
    )
    return summed / labels.shape[1]

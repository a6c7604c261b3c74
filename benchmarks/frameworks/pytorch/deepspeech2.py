"""Deep Speech 2 after SeanNaren's deepspeech.pytorch: masked convolutions, packed bidirectional `nn.LSTM`, CTC."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

SOURCE = (
    "written by hand after SeanNaren/deepspeech.pytorch, from torch.nn.LSTM: torchaudio has only the first Deep Speech"
)
DIFFERS = "nn.LSTM trains a second bias in every direction"
MORE = 40_960


class Masked(nn.Module):
    """Convolution, batch norm, clip; after each, frames beyond the end are set to zero."""

    def __init__(self, channels, out, kernel, stride, padding):
        super().__init__()
        self.conv = nn.Conv2d(channels, out, kernel, stride, padding, bias=False)
        self.norm, self.clip = nn.BatchNorm2d(out), nn.Hardtanh(0.0, 20.0, inplace=True)

    def forward(self, x, beyond):
        """(N, C, F, T) and the mask of padding (N, 1, 1, T') -> (N, out, F', T')."""
        return self.clip(self.norm(self.conv(x))).masked_fill(beyond, 0.0)


class Recurrent(nn.Module):
    """Batch norm over features, then an LSTM whose directions are summed: (T, N, width) -> (T, N, hidden)."""

    def __init__(self, width, hidden, normalise):
        super().__init__()
        self.norm = nn.BatchNorm1d(width) if normalise else nn.Identity()
        self.lstm = nn.LSTM(width, hidden, bidirectional=True)

    def forward(self, x, lengths):
        """Normalise, then run the LSTM on packed sequences."""
        x = self.norm(x.flatten(0, 1)).view_as(x)
        packed = pack_padded_sequence(x, lengths, enforce_sorted=False)
        x, _ = pad_packed_sequence(self.lstm(packed)[0], total_length=len(x))
        return x.unflatten(2, (2, -1)).sum(2)


class DeepSpeech2(nn.Module):
    """Spectrograms (N, 1, bins, T) and output lengths -> logits (T', N, classes)."""

    def __init__(self, sizes):
        super().__init__()
        channels, hidden, width = sizes["channels"], sizes["hidden"], sizes["channels"] * -(-sizes["bins"] // 4)
        self.first = Masked(1, channels, (41, 11), (2, 2), (20, 5))
        self.second = Masked(channels, channels, (21, 11), (2, 1), (10, 5))
        rest = [Recurrent(hidden, hidden, normalise=True) for _ in range(sizes["layers"] - 1)]
        self.recurrent = nn.ModuleList([Recurrent(width, hidden, normalise=False), *rest])
        self.head = nn.Sequential(nn.BatchNorm1d(hidden), nn.Linear(hidden, sizes["classes"], bias=False))

    def forward(self, spectrogram, beyond, lengths):
        """Run all layers."""
        x = self.second(self.first(spectrogram, beyond), beyond)
        x = x.permute(3, 0, 1, 2).flatten(2)
        for layer in self.recurrent:
            x = layer(x, lengths)
        return self.head(x.flatten(0, 1)).unflatten(0, x.shape[:2])


def model(sizes):
    """Return the network."""
    return DeepSpeech2(sizes)


def inputs(batch):
    """Spectrograms, output lengths, mask of padding, transcripts."""
    spectrogram, lengths = torch.from_numpy(batch["spectrogram"]), (torch.from_numpy(batch["frames"]).long() + 1) // 2
    beyond = torch.arange((spectrogram.shape[3] + 1) // 2) >= lengths[:, None, None, None]
    transcript, letters = (torch.from_numpy(batch[name]).long() for name in ("transcript", "transcript_length"))
    return {
        "spectrogram": spectrogram,
        "beyond": beyond,
        "lengths": lengths,
        "transcript": transcript,
        "letters": letters,
    }


def loss(model, batch):
    """CTC, blank 0, summed over the batch and divided by its size."""
    lengths = batch["lengths"].cpu()
    scores = F.log_softmax(model(batch["spectrogram"], batch["beyond"], lengths), dim=2)
    summed = F.ctc_loss(scores, batch["transcript"], lengths, batch["letters"], reduction="sum", zero_infinity=True)
    return summed / len(lengths)

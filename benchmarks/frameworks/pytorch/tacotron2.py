"""torchaudio's Tacotron 2, which is NVIDIA's; its dropouts are replaced, because their rates are not arguments."""

import importlib.util
from pathlib import Path
from types import SimpleNamespace

import torch
from torch.nn import functional as F

SOURCE = "torchaudio.models.Tacotron2 2.11.0 without dropout"
DIFFERS = (
    "the attention is between the two LSTMs and uses the previous weights as well as their sum; biases before batch norm; "
    "a second bias in every LSTM"
)
MORE = 2_112_048


def model(sizes):
    """Return the network; only its file is loaded, because the package's operators do not load in CPU builds of PyTorch."""
    package = Path(importlib.util.find_spec("torchaudio").origin).parent
    spec = importlib.util.spec_from_file_location("torchaudio_tacotron2", package / "models" / "tacotron2.py")
    tacotron2 = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tacotron2)
    tacotron2.F = SimpleNamespace(**{**vars(F), "dropout": lambda x, *_, **__: x})
    return tacotron2.Tacotron2(
        n_mels=sizes["mels"],
        n_symbol=sizes["symbols"],
        symbol_embedding_dim=sizes["embedding"],
        encoder_embedding_dim=sizes["embedding"],
        decoder_rnn_dim=sizes["lstm"],
        attention_rnn_dim=sizes["lstm"],
        attention_hidden_dim=sizes["attention"],
        attention_location_n_filter=sizes["filters"],
        attention_location_kernel_size=sizes["window"],
        prenet_dim=sizes["prenet"],
        postnet_embedding_dim=sizes["postnet"],
    )


def inputs(batch):
    """Utterances by decreasing length of their text, as the package requires; the gate's target is 1 from the last frame on."""
    order = (-batch["text_length"]).argsort(kind="stable")
    text, text_length, mel, mel_length = (
        torch.from_numpy(batch[name][order]) for name in ("text", "text_length", "mel", "mel_length")
    )
    ended = torch.arange(mel.shape[2]) >= mel_length[:, None] - 1
    return {
        "text": text.long(),
        "text_length": text_length.long(),
        "mel": mel,
        "mel_length": mel_length.long(),
        "gate": ended.to(mel.dtype),
    }


def loss(model, batch):
    """Squared errors of both spectrograms and the gate's cross-entropy; padding is included."""
    mel, post, gate, _ = model(batch["text"], batch["text_length"], batch["mel"], batch["mel_length"])
    squared = F.mse_loss(mel, batch["mel"]) + F.mse_loss(post, batch["mel"])
    return squared + F.binary_cross_entropy_with_logits(gate, batch["gate"])

"""English text -> ids of the 148 symbols that Tacotron 2's published implementations share: 0 pads.

One pad, the hyphen, ten marks (the space among them), 52 letters, and the 84 phones of ARPAbet, which plain text never uses.
"""

from __future__ import annotations

import unicodedata
from typing import Any

import numpy as np

MARKS = "_-!'(),.:;? "  # the first is the pad
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
PHONES = 84
COUNT = len(MARKS) + len(LETTERS) + PHONES
_IDS = {symbol: number for number, symbol in enumerate(MARKS + LETTERS) if number}
# What accents' removal leaves alone, as it is typed on a keyboard.
_TYPED = str.maketrans(
    {
        **dict.fromkeys("\u2018\u2019", "'"),
        **dict.fromkeys("\u2010\u2011\u2013\u2014", "-"),
        "\u00e6": "ae",
        "\u0153": "oe",
    }
)


def encode(text: str) -> np.ndarray[Any, np.dtype[np.int32]]:
    """Return the ids int32 (L,) of a text: lower case, without accents, one space for several; what has no symbol is left out.

    Numbers and abbreviations are expected in words, as the data's normalised text has them.
    """
    plain = unicodedata.normalize("NFKD", text.lower().translate(_TYPED))
    known = "".join(symbol for symbol in " ".join(plain.split()) if symbol in _IDS)
    return np.array([_IDS[symbol] for symbol in " ".join(known.split())], np.int32)

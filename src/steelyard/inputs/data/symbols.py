"""English text -> ids of the 148 symbols used by the published implementations of Tacotron 2; id 0 is padding.

The symbols are the padding, the hyphen, nine punctuation marks, the space, 52 letters, and the 84 phones of ARPAbet, which
plain text never uses.
"""

import unicodedata
from typing import Any

import numpy as np

PADDING_AND_PUNCTUATION = "_-!'(),.:;? "  # the first is the padding
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
PHONES = 84
COUNT = len(PADDING_AND_PUNCTUATION) + len(LETTERS) + PHONES
_IDS = {symbol: number for number, symbol in enumerate(PADDING_AND_PUNCTUATION + LETTERS) if number}
# Characters that Unicode normalisation does not simplify -> their ASCII form.
_ASCII_FORMS = str.maketrans(
    {
        **dict.fromkeys("\u2018\u2019", "'"),
        **dict.fromkeys("\u2010\u2011\u2013\u2014", "-"),
        "\u00e6": "ae",
        "\u0153": "oe",
    }
)


def encode(text: str) -> np.ndarray[Any, np.dtype[np.int32]]:
    """Return the ids int32 (L,) of a text in lower case, without accents and repeated spaces.

    Characters without a symbol are left out. Numbers and abbreviations must be spelled out, as in the normalised text of
    LJSpeech.
    """
    known = "".join(symbol for symbol in " ".join(_plain(text).split()) if symbol in _IDS)
    return np.array([_IDS[symbol] for symbol in " ".join(known.split())], np.int32)


def has_letters(ids: np.ndarray[Any, np.dtype[np.int32]]) -> bool:
    """Report whether ids (L,) of a text are more than punctuation."""
    return bool((ids >= len(PADDING_AND_PUNCTUATION)).any())


def without_symbol(text: str) -> str:
    """Return the characters that `encode` leaves out, other than accents and spaces."""
    return "".join(
        symbol
        for symbol in _plain(text)
        if symbol not in _IDS and not symbol.isspace() and not unicodedata.combining(symbol)
    )


def _plain(text: str) -> str:
    return unicodedata.normalize("NFKD", text.lower().translate(_ASCII_FORMS))

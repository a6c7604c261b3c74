"""WordPiece vocabularies of BERT's kind: the one that lies beside the data, or one learned from the training text.

The library is Hugging Face's `tokenizers`. Text is lowered and stripped of accents, and every Chinese character is a word.
"""

from __future__ import annotations

from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING
from unicodedata import category

from steelyard.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from tokenizers import Tokenizer

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
VOCABULARY = "vocab.txt"  # one piece a line, as BERT's vocabularies are published; looked for beside the data
# What characters may take of a learned vocabulary, standing first in a word, and further inside: Chinese fills the first share.
FIRST_SHARE, INSIDE_SHARE = 3 / 4, 1 / 8
LEAST_OCCURRENCES = 2


def tokenizer(pieces: list[str]) -> Tokenizer:
    """Return a tokenizer over these pieces; the id of a piece is its place."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

    made = Tokenizer(models.WordPiece({piece: place for place, piece in enumerate(pieces)}, unk_token="[UNK]"))
    made.normalizer = normalizers.BertNormalizer(lowercase=True)
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.add_special_tokens(list(SPECIAL))  # a "[UNK]" in the text is that piece, not three
    return made


def read_vocabulary(path: Path, size: int) -> list[str]:
    """Return the pieces of a vocabulary file; UserError when they are not `size`, or a special one is missing or twice."""
    try:
        pieces = path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is not UTF-8 text (byte {error.start:,}); convert it to UTF-8.") from error
    if len(pieces) != size:
        raise UserError(
            f"{path} has {len(pieces):,} word pieces, but this preset is made for {size:,}; put the vocabulary of that size "
            "there, or take the file away to have one learned."
        )
    wrong = [piece for piece in SPECIAL if piece not in pieces] or [
        piece for piece, n in Counter(pieces).items() if n > 1
    ]
    if wrong:
        raise UserError(
            f"{path} must hold every piece once, {', '.join(SPECIAL)} among them; '{wrong[0]}' breaks that."
        )
    return pieces


def learn_vocabulary(lines: Iterable[str], again: Iterable[str], size: int) -> list[str]:
    """Return at most `size` pieces learned from a text, which comes twice: for its characters, then for its words.

    The same text gives the same pieces: characters, first in a word and inside it, are handed over sorted, because the library
    numbers the latter in the order of a hash table otherwise, and breaks ties between pairs by these numbers.
    """
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

    normalizer = normalizers.BertNormalizer(lowercase=True)
    first, inside = _characters(map(normalizer.normalize_str, lines))
    alphabet = _most_frequent(first + inside, int(size * FIRST_SHARE))
    known = set(alphabet)
    continued = [f"##{each}" for each in _most_frequent(inside, int(size * INSIDE_SHARE)) if each in known]
    learner = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    learner.normalizer, learner.pre_tokenizer = normalizer, pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(
        vocab_size=size, min_frequency=LEAST_OCCURRENCES, special_tokens=[*SPECIAL, *continued], show_progress=False,
        initial_alphabet=alphabet, limit_alphabet=len(alphabet),
    )  # fmt: skip
    learner.train_from_iterator((line.replace("[UNK]", " ") for line in again), trainer)
    places = learner.get_vocab()
    return sorted(places, key=places.__getitem__)


def _characters(lines: Iterable[str]) -> tuple[Counter[str], Counter[str]]:
    """Count characters that begin a word, and those further inside; a mark is a word of its own."""
    words: Counter[str] = Counter()
    lines = iter(lines)
    while block := " ".join(islice(lines, 1000)):
        words.update(block.split())
    first: Counter[str] = Counter()
    inside: Counter[str] = Counter()
    for word, count in words.items():
        before = ""
        for character in word:
            alone = _is_mark(character) or not before or _is_mark(before)
            (first if alone else inside)[character] += count
            before = character
    return first, inside


def _is_mark(character: str) -> bool:
    return not character.isalnum() and (character.isascii() or category(character).startswith("P"))


def _most_frequent(counts: Counter[str], most: int) -> list[str]:
    """Return the most frequent ones, ties by code point, in the order of their code points."""
    return sorted(sorted(counts, key=lambda each: (-counts[each], each))[:most])

"""The one exception that reaches a person: a sentence, never a traceback."""


class UserError(Exception):
    """Something the user can mend. Its text says what is wrong, where, and what to do.

    The command line prints the text and exits with `exit_code`.
    """

    exit_code = 2


def nearest(word: str, known: list[str]) -> str:
    """Return ` Did you mean 'x'?` for the closest known word, or a list of what there is."""
    from difflib import get_close_matches

    close = get_close_matches(word, known, n=1, cutoff=0.5)
    if close:
        return f" Did you mean '{close[0]}'?"
    return f" Known: {', '.join(sorted(known))}." if known else ""

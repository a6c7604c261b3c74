"""Prices: what an hour of the machine, or a kilowatt-hour, costs. They are given where results are shown; no record has any."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from steelyard.errors import UserError

HOUR, KILOWATT_HOUR = "h", "kWh"
NANOSECONDS_PER_HOUR = 3.6e12
JOULES_PER_KILOWATT_HOUR = 3.6e6
UNITS = {"h": HOUR, "hour": HOUR, "kwh": KILOWATT_HOUR}
"""What may be typed after the bar -> what the price is for."""
MOST = 1e9
FORM = "an amount above 0 per hour or kilowatt-hour, such as 1.2/h, '$1.2/h' (a shell needs the quotes), 1.20EUR/h or 0.30/kWh"
# An amount begins with a digit: a shell that meets $1.2/h or $0.30/kWh without quotes leaves .2/h or bash.30/kWh.
PATTERN = re.compile(r"(?P<before>[^\d./]*)(?P<amount>[0-9]+(\.[0-9]+)?)(?P<after>[^\d./]*)/(?P<per>[a-zA-Z ]+)")
LONGEST_CURRENCY = 5


@dataclass(frozen=True)
class Price:
    """What an hour, or a kilowatt-hour, costs: `amount` of `currency`, which is empty where none was named.

    `per`: `HOUR` or `KILOWATT_HOUR`. `shown`: the amount with its currency, as it was typed.
    """

    amount: float
    currency: str
    per: str
    shown: str

    @property
    def of_energy(self) -> bool:
        """Whether it is the price of energy, so that a cost needs a meter."""
        return self.per == KILOWATT_HOUR

    @property
    def per_unit(self) -> float:
        """The cost of a nanosecond, or of a joule."""
        return self.amount / (JOULES_PER_KILOWATT_HOUR if self.of_energy else NANOSECONDS_PER_HOUR)

    def __str__(self) -> str:
        """Return the price in words: `1.20 EUR per hour`."""
        return f"{self.shown} per {'kilowatt-hour' if self.of_energy else 'hour'}"


def price(text: str) -> Price:
    """Read a price, such as `1.2/h`, `$1.2/h`, `1.20 EUR/h` or `0.30/kWh`. UserError: it is none, or not above 0."""
    found = PATTERN.fullmatch(text.strip())
    if found is None:
        raise _unreadable(text)
    before, after, per = (found[name].strip() for name in ("before", "after", "per"))
    amount, currency = float(found["amount"]), before or after
    is_known = per.lower() in UNITS and not (before and after) and all(map(_is_of_currency, currency))
    if not is_known or len(currency) > LONGEST_CURRENCY or not 0 < amount <= MOST:
        raise _unreadable(text)
    return Price(amount, currency, UNITS[per.lower()], _shown(before, found["amount"], after))


def _is_of_currency(sign: str) -> bool:
    return sign.isalpha() or unicodedata.category(sign) == "Sc"


def _shown(before: str, amount: str, after: str) -> str:
    """Return an amount with its currency; a code of letters stands apart from it, and so does what follows it."""
    return f"{before}{' ' if before[-1:].isalpha() else ''}{amount} {after}".strip()


def _unreadable(text: str) -> UserError:
    return UserError(f"A price must be {FORM}, not '{text}'.")

"""Prices as people type them: what is read, and one sentence for everything else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.errors import UserError
from steelyard.wording.prices import FORM, HOUR, KILOWATT_HOUR, price


@pytest.mark.parametrize(
    ("text", "amount", "currency", "per", "words"),
    [
        ("1.2/h", 1.2, "", HOUR, "1.2 per hour"),
        ("$1.2/h", 1.2, "$", HOUR, "$1.2 per hour"),
        ("US$3/hour", 3.0, "US$", HOUR, "US$3 per hour"),
        ("1.20EUR/h", 1.2, "EUR", HOUR, "1.20 EUR per hour"),
        (" 1.20 EUR / h ", 1.2, "EUR", HOUR, "1.20 EUR per hour"),
        ("CHF 12/h", 12.0, "CHF", HOUR, "CHF 12 per hour"),
        ("€0.5/h", 0.5, "€", HOUR, "€0.5 per hour"),
        ("7元/h", 7.0, "元", HOUR, "7 元 per hour"),
        ("0.30/kWh", 0.3, "", KILOWATT_HOUR, "0.30 per kilowatt-hour"),
        ("0.30EUR/kwh", 0.3, "EUR", KILOWATT_HOUR, "0.30 EUR per kilowatt-hour"),
    ],
)
def test_a_price_is_read_with_its_currency_on_either_side(text, amount, currency, per, words):
    found = price(text)
    assert (found.amount, found.currency, found.per, str(found)) == (amount, currency, per, words)
    assert found.of_energy == (per == KILOWATT_HOUR)


def test_a_price_is_that_of_a_nanosecond_or_of_a_joule():
    assert price("3.6/h").per_unit * 1e9 == pytest.approx(0.001)  # an hour has 3,600 seconds
    assert price("3.6/kWh").per_unit == pytest.approx(1e-6)  # a kilowatt-hour has 3.6 million joules


@pytest.mark.parametrize(
    "text",
    [
        *("", "h", "/h", "1.2", "1.2/", "1.2/d", "1,2/h", "1.2.3/h", "0/h", "0.00/h", "-1/h", "+1/h", "1e3/h", "inf/h"),
        *("$1.2EUR/h", "$ $1/h", "<b>1/h", "{step}1/h", "toolong1/h", "9999999999/h", "1/h/h", "1/h\n2/h", "१/h"),
        # What a shell leaves of $1.2/h and $0.30/kWh without quotes:
        *(".2/h", "bash.30/kWh", "/bin/bash.30/kWh"),
    ],
)
def test_what_is_no_price_gets_one_sentence(text):
    with pytest.raises(UserError) as error:
        price(text)
    assert str(error.value) == f"A price must be {FORM}, not '{text}'."


@given(st.text(max_size=12))
def test_any_text_is_a_price_or_gets_that_sentence(text):
    try:
        found = price(text)
    except UserError as error:
        assert str(error).startswith("A price must be ")
    else:
        assert found.amount > 0
        assert found.currency.isprintable()

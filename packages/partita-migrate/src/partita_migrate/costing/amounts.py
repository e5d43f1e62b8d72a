"""Formats figures for people."""

from __future__ import annotations

import math


def percent(share: float) -> str:
    """Formats a share; one above zero is never shown as 0%."""
    return "less than 1%" if 0 < share < 0.005 else f"{share:.0%}"


def amount(number: float, digits: int = 4) -> str:
    """Formats a number with as many digits as matter."""
    if number == 0 or abs(number) >= 10**digits:
        return f"{number:,.0f}"
    if abs(number) < 1:
        return f"{number:.{1 - math.floor(math.log10(abs(number)))}f}".rstrip("0")
    return f"{number:,.{digits}g}"


def money(amount: float, currency: str) -> str:
    """Formats an amount of money, in whole units where cents do not matter."""
    sign = "$" if currency == "USD" else f"{currency} "
    if amount == 0:
        return f"{sign}0"
    if abs(amount) < 0.005:
        return f"<{sign}0.01"
    minus = "-" if amount < 0 else ""
    decimals = 0 if abs(amount) >= 1000 else 2
    return f"{minus}{sign}{abs(amount):,.{decimals}f}"

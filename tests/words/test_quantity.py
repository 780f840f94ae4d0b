"""Quantities are read and written as Kubernetes does it.

The tables were checked against k8s.io/apimachinery v0.36.1, 300,000 generated texts with them; the property tests
compare with plain decimal arithmetic."""

from __future__ import annotations

from decimal import ROUND_UP, Context, Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from extender.api import quantity
from extender.api.errors import InvalidObject

EXACT = Context(prec=400, Emax=10**6, Emin=-(10**6))
SUFFIXES = {suffix: Decimal(10) ** power for suffix, power in zip(["n", "u", "m", "", *"kMGTPE"], range(-9, 19, 3), strict=True)}
SUFFIXES |= {f"{letter}i": Decimal(1024) ** (i + 1) for i, letter in enumerate("KMGTPE")}

number = st.one_of(
    st.from_regex(r"[0-9]{1,24}", fullmatch=True),
    st.from_regex(r"[0-9]{1,20}\.[0-9]{0,20}", fullmatch=True),
    st.from_regex(r"\.[0-9]{1,20}", fullmatch=True),
)
exponents = st.tuples(st.sampled_from("eE"), st.sampled_from(["", "+", "-"]), st.integers(0, 60))


def oracle(sign: str, digits: str, factor: Decimal, unit: Decimal) -> int:
    """Exact product, capped at int64, rounded away from zero to whole units of the size `unit`."""
    value = EXACT.multiply(Decimal("0" + digits), factor)
    nanos = min(EXACT.divide(value, Decimal("1e-9")).to_integral_value(ROUND_UP, EXACT), Decimal(quantity.MAX * quantity.NANO))
    steps = int(EXACT.divide(EXACT.multiply(nanos, Decimal("1e-9")), unit).to_integral_value(ROUND_UP, EXACT))
    return -min(steps, quantity.MAX) if sign == "-" else min(steps, quantity.MAX)


@settings(deadline=None, max_examples=400)
@given(sign=st.sampled_from(["", "+", "-"]), digits=number, suffix=st.sampled_from(sorted(SUFFIXES)))
def test_every_suffix_agrees_with_decimal_arithmetic(sign: str, digits: str, suffix: str) -> None:
    text = sign + digits + suffix
    assert quantity.milli(text) == oracle(sign, digits, SUFFIXES[suffix], Decimal("1e-3"))
    assert quantity.units(text) == oracle(sign, digits, SUFFIXES[suffix], Decimal(1))


@settings(deadline=None, max_examples=300)
@given(sign=st.sampled_from(["", "+", "-"]), digits=number, exponent=exponents)
def test_every_exponent_agrees_with_decimal_arithmetic(sign: str, digits: str, exponent: tuple[str, str, int]) -> None:
    letter, exponent_sign, power = exponent
    factor = EXACT.power(Decimal(10), Decimal(-power if exponent_sign == "-" else power))
    text = f"{sign}{digits}{letter}{exponent_sign}{power}"
    assert quantity.milli(text) == oracle(sign, digits, factor, Decimal("1e-3"))
    assert quantity.units(text) == oracle(sign, digits, factor, Decimal(1))


@settings(deadline=None, max_examples=300)
@given(amount=st.integers(-quantity.MAX, quantity.MAX), binary=st.booleans())
def test_what_is_written_is_read_back(amount: int, binary: bool) -> None:
    assert quantity.nanos(quantity.format_nanos(amount, binary=binary)) == amount


@settings(deadline=None, max_examples=300)
@given(sign=st.sampled_from(["", "+", "-"]), digits=number, suffix=st.sampled_from(sorted(SUFFIXES)))
def test_the_canonical_text_has_the_same_value_and_is_its_own_canonical_text(sign: str, digits: str, suffix: str) -> None:
    text = quantity.canonical(sign + digits + suffix)
    assert quantity.nanos(text) == quantity.nanos(sign + digits + suffix)
    assert quantity.canonical(text) == text


@settings(deadline=None, max_examples=300)
@given(text=st.text(alphabet="0123456789.+-eEinumkKMGTP x_", max_size=8))
def test_a_text_is_a_number_or_it_is_refused(text: str) -> None:
    try:
        value = quantity.nanos(text)
    except InvalidObject:
        return
    assert any(letter.isdigit() for letter in text)
    assert quantity.nanos(f"  {text}  ") == value


WHOLE = {  # text: (Value, MilliValue, String), as Kubernetes answers
    "0": (0, 0, "0"),
    "-0": (0, 0, "0"),
    "0Ki": (0, 0, "0"),
    "100m": (1, 100, "100m"),
    "1500m": (2, 1500, "1500m"),
    "0.5": (1, 500, "500m"),
    ".5": (1, 500, "500m"),
    "5.": (5, 5000, "5."),
    "+5": (5, 5000, "+5"),
    "007": (7, 7000, "007"),
    "1.500": (2, 1500, "1.500"),
    "2000": (2000, 2000000, "2k"),
    "1.5Gi": (1610612736, 1610612736000, "1536Mi"),
    "1024Ki": (1048576, 1048576000, "1Mi"),
    "0.3Ki": (308, 307200, "307200m"),
    "1.3Ki": (1332, 1331200, "1331200m"),
    "1000Ki": (1024000, 1024000000, "1000Ki"),
    "8Ei": (quantity.MAX, quantity.MAX, "9223372036854775807"),
    "12e4": (120000, 120000000, "120e3"),
    "1E3": (1000, 1000000, "1E3"),
    "1e-3": (1, 1, "1e-3"),
    "1e21": (quantity.MAX, quantity.MAX, "1e21"),
    "1E": (10**18, quantity.MAX, "1E"),
    "0.1n": (1, 1, "1n"),
    "-1.5": (-2, -1500, "-1500m"),
    "-100m": (-1, -100, "-100m"),
    " 5 ": (5, 5000, "5"),
    "1e999999999": (quantity.MAX, quantity.MAX, "1e999999999"),
    "1e-999999999": (1, 1, "1e-9"),
    "1000E": (quantity.MAX, quantity.MAX, "1000E"),
    "1e00000000000003": (1000, 1000000, "1e00000000000003"),
}


@pytest.mark.parametrize(("text", "want"), WHOLE.items(), ids=WHOLE)
def test_value_milli_value_and_string(text: str, want: tuple[int, int, str]) -> None:
    assert (quantity.units(text), quantity.milli(text), quantity.canonical(text)) == want


@pytest.mark.parametrize(("given", "want"), [(2, 2000), (0.1, 100), (1e22, quantity.MAX), (1e-05, 1), (-3, -3000)])
def test_json_numbers_are_quantities(given: float, want: int) -> None:
    assert quantity.milli(given) == want


GARBAGE = [
    *["", " ", "+", "-", ".", "m", "Ki", "e5", "1..2", "1.1.M", "1 Gi", "1ki", "1KI", "1i", "1mi", "1e", "1e+", "1e1.5"],
    *["--1", "0x10", "1_000", "１", "5\n", "nan", "inf", "NaN", "1,5", "1Gib", "1e2147483648", f"1e{10**20}", "9" * 1001],
]


@pytest.mark.parametrize("text", GARBAGE, ids=lambda text: repr(text)[:24])
def test_garbage_is_refused_with_the_field_named(text: str) -> None:
    for read in (quantity.nanos, quantity.milli, quantity.units, quantity.canonical):
        with pytest.raises(InvalidObject, match=r"(?s)^spec\.overhead\[cpu\]: '.*' is not a quantity") as caught:
            read(text, "spec.overhead[cpu]")
        assert caught.value.path == "spec.overhead[cpu]"


@pytest.mark.parametrize("thing", [True, None, [], {}])
def test_other_types_are_refused(thing: object) -> None:
    with pytest.raises(InvalidObject, match="must be a string or a number"):
        quantity.nanos(thing, "status.allocatable[cpu]")  # type: ignore[arg-type]


FORMATS = {
    "milli below one": (quantity.format_nanos(250 * 10**6), "250m"),
    "milli whole": (quantity.format_nanos(2000 * 10**6), "2"),
    "milli thousands": (quantity.format_nanos(3_000_000 * 10**6), "3k"),
    "milli nothing": (quantity.format_nanos(0 * 10**6), "0"),
    "milli negative": (quantity.format_nanos(-1500 * 10**6), "-1500m"),
    "bytes": (quantity.format_nanos((2 * 2**30) * 10**9, binary=True), "2Gi"),
    "bytes below a Ki": (quantity.format_nanos((1000) * 10**9, binary=True), "1k"),
    "bytes odd": (quantity.format_nanos((1025) * 10**9, binary=True), "1025"),
    "bytes most": (quantity.format_nanos((quantity.MAX) * 10**9, binary=True), "9223372036854775807"),
    "bytes negative": (quantity.format_nanos((-4096) * 10**9, binary=True), "-4Ki"),
    "nano": (quantity.format_nanos(1), "1n"),
}


@pytest.mark.parametrize(("got", "want"), FORMATS.values(), ids=FORMATS)
def test_amounts_are_written_with_the_largest_suffix(got: str, want: str) -> None:
    assert got == want

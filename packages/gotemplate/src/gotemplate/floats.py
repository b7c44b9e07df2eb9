"""Floating-point numbers as Go's strconv formats them."""

import math
from fractions import Fraction

import numpy as np


def format_float(number: float, letter: str, precision: int | None, is_single: bool) -> str:
    """A number in the format of a verb; without a precision in as few digits as tell it apart."""
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "+Inf" if number > 0 else "-Inf"
    match letter:
        case "b":
            return _binary(number, is_single)
        case "x" | "X":
            text = _hexadecimal(number, precision)
            return text.upper() if letter == "X" else text
        case "g" | "G" if precision is None:
            text = _shortest(number, is_single)
            return text.upper() if letter == "G" else text
        case _:
            return format(number, f".{6 if precision is None else precision}{letter}")


def shortest_digits(number: float, is_single: bool) -> tuple[str, str, int]:
    """The sign, the digits and the exponent of the first digit."""
    written = np.format_float_scientific(np.float32(number) if is_single else np.float64(number), trim="-")
    mantissa, exponent = written.split("e")
    sign = "-" if mantissa[0] == "-" else ""
    return sign, mantissa.lstrip("-").replace(".", ""), int(exponent)


def positional(sign: str, digits: str, exponent: int) -> str:
    """Digits without an exponent."""
    if exponent < 0:
        return f"{sign}0.{'0' * (-exponent - 1)}{digits}"
    whole, fraction = digits[: exponent + 1].ljust(exponent + 1, "0"), digits[exponent + 1 :]
    return f"{sign}{whole}.{fraction}" if fraction else f"{sign}{whole}"


def scientific(sign: str, digits: str, exponent: int) -> str:
    """Digits with an exponent of at least two digits."""
    mantissa = f"{digits[0]}.{digits[1:]}" if digits[1:] else digits
    return f"{sign}{mantissa}e{exponent:+03d}"


def _shortest(number: float, is_single: bool) -> str:
    sign, digits, exponent = shortest_digits(number, is_single)
    is_far = exponent < -4 or exponent >= 6
    return scientific(sign, digits, exponent) if is_far else positional(sign, digits, exponent)


def _hexadecimal(number: float, precision: int | None) -> str:
    sign = "-" if math.copysign(1, number) < 0 else ""
    fraction, exponent = math.frexp(abs(number))
    mantissa = int(math.ldexp(fraction, 53))  # one bit before the point, 13 digits after it
    if precision is not None and precision < 13:
        unit = 1 << 4 * (13 - precision)
        mantissa = round(Fraction(mantissa, unit)) * unit
        if mantissa >> 53:
            mantissa, exponent = mantissa >> 1, exponent + 1
    digits = f"{mantissa & ((1 << 52) - 1):013x}"
    shown = digits.rstrip("0") if precision is None else digits[:precision].ljust(precision, "0")
    point = "." if shown else ""
    return f"{sign}0x{1 if mantissa else 0}{point}{shown}p{exponent - 1 if mantissa else 0:+03d}"


def _binary(number: float, is_single: bool) -> str:
    bits = 24 if is_single else 53
    fraction, exponent = math.frexp(number)
    return f"{int(math.ldexp(fraction, bits))}p{exponent - bits:+d}"


def with_point(digits: str, letter: str, precision: int | None) -> str:
    """Digits with a point and the zeros after it that Go keeps when a format has a #."""
    if letter == "b":
        return digits
    exponent_mark = "pP" if letter in "xX" else "eE"
    place = next((place for place, mark in enumerate(digits) if mark in exponent_mark), len(digits))
    mantissa, tail = digits[:place], digits[place:]
    missing = 0
    if letter in "gGx":
        missing = 6 if precision is None else precision
        missing -= len(mantissa.replace(".", "").lstrip("0"))
    if "." not in mantissa:
        missing -= mantissa == "0"
        mantissa += "."
    return mantissa + "0" * missing + tail

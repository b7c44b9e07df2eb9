"""Floating-point numbers in the words of Go's strconv."""

import math

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
            text = _hexadecimal(number)
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


def _hexadecimal(number: float) -> str:
    mantissa, _, exponent = number.hex().partition("p")
    mantissa = mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa
    return f"{mantissa}p{int(exponent):+03d}"


def _binary(number: float, is_single: bool) -> str:
    bits = 24 if is_single else 53
    fraction, exponent = math.frexp(number)
    return f"{int(math.ldexp(fraction, bits))}p{exponent - bits:+d}"

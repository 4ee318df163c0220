"""Arithmetic helpers that stay on Python floats for one scenario and on numpy for many.

One estimate is some 300 operations; a numpy call on a scalar costs ten times a Python one, so scalars avoid it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

SCALARS = (float, int, bool, np.floating, np.integer, np.bool_)


def is_scalar(*values: Any) -> bool:
    """True where every value is a plain number.

    >>> is_scalar(1, 2.0), is_scalar(1, np.array([1.0, 2.0]))
    (True, False)
    """
    return all(isinstance(value, SCALARS) for value in values)


def maximum(first: Any, second: Any) -> Any:
    """The larger of two numbers, element by element.

    >>> maximum(1.0, 2.0)
    2.0
    """
    if isinstance(first, SCALARS) and isinstance(second, SCALARS):
        return first if first >= second else second
    return np.maximum(first, second)


def minimum(first: Any, second: Any) -> Any:
    """The smaller of two numbers, element by element."""
    if isinstance(first, SCALARS) and isinstance(second, SCALARS):
        return first if first <= second else second
    return np.minimum(first, second)


def where(condition: Any, yes: Any, no: Any) -> Any:
    """`yes` where the condition holds, else `no`."""
    if isinstance(condition, SCALARS):
        return yes if condition else no
    return np.where(condition, yes, no)


def distinct(names: Any) -> tuple[list[str], Any]:
    """The different names of an array as strings, and the place of each element among them.

    numpy sorts to find them, which takes several times as long for the few names that deployments have. One estimate
    asks up to eight times about the same array, so the last few answers are kept; arrays are never written to.

    >>> names, places = distinct(np.array(["fp16", "int8", "fp16"]))
    >>> names, places.tolist()
    (['fp16', 'int8'], [0, 1, 0])
    """
    known = _distinct.get(id(names))
    if known is not None and known[0] is names:
        return known[1], known[2]
    listed = names.ravel().tolist()
    places = {name: place for place, name in enumerate(dict.fromkeys(listed))}
    found = [str(name) for name in places]
    inverse = np.array([places[name] for name in listed], dtype=np.intp)
    _keep(names, found, inverse)
    return found, inverse


def spread_names(names: list[Any], places: Any) -> Any:
    """The array of `names[i]` for each i of `places`, one-dimensional; `distinct` knows it without looking.

    Where None is among the names it is an array of objects.
    """
    spread = np.array(names, dtype=object if None in names else None)[places]
    _keep(spread, [str(name) for name in names], places)
    return spread


def _keep(names: Any, found: list[str], inverse: Any) -> None:
    if len(_distinct) >= KEPT_NAMES:
        _distinct.clear()
    _distinct[id(names)] = (names, found, inverse)  # the array is kept, so no other gets its id


KEPT_NAMES = 32
_distinct: dict[int, tuple[Any, list[str], Any]] = {}


def is_zero(value: Any) -> bool:
    """A plain zero or False, not an array of them: what it multiplies need not be worked out."""
    return isinstance(value, PLAIN) and not value


def is_one(value: Any) -> bool:
    """A plain one: nothing is shared out."""
    return isinstance(value, PLAIN) and value == 1


PLAIN = (float, int, np.bool_)


def power(base: Any, exponent: Any) -> Any:
    """base ** exponent for a non-negative base."""
    if isinstance(base, SCALARS) and isinstance(exponent, SCALARS):
        return base**exponent
    return np.power(base, exponent)


def ceiling(value: Any) -> Any:
    """The next whole number, as a float."""
    return float(math.ceil(value - 1e-9)) if isinstance(value, SCALARS) else np.ceil(value - 1e-9)


def logarithm2(value: Any) -> Any:
    """log₂(value) of a positive value."""
    return math.log2(value) if isinstance(value, SCALARS) else np.log2(value)


def or_default(value: Any, default: Any) -> Any:
    """The value, with the default for elements that are not a number: those say nothing."""
    if isinstance(value, np.ndarray) and value.dtype.kind == "f" and np.isnan(value).any():
        return np.where(np.isnan(value), default, value)
    return value

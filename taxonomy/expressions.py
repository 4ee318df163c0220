"""Values of effects that depend on knobs, model, device or workload: `= 1 - 1 / ratio` as data, not code.

An effect's value that begins with `=` is one arithmetic expression. It may use

- the technique's knobs by name: `acceptance`, `draft_tokens` …
- attributes of `model`, `hardware`, `workload`, `deployment` and `fit`: `model.total_params`, `workload.batch`
- numbers, `+ - * / **`, parentheses and the functions of `FUNCTIONS`.

`fit.weight_share` is the share of the weights that the devices can hold as deployed (1 where they all fit).
Everything is plain arithmetic, so an argument may be a number or a NumPy array.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from taxonomy.errors import TaxonomyError

OBJECTS = ("model", "hardware", "workload", "deployment", "fit")


def expected_tokens(acceptance: Any, draft_tokens: Any) -> Any:
    """Mean tokens that one verification yields: 1 + a + a² + … + a^k = (1 − a^(k+1)) / (1 − a).

    a = acceptance of one drafted token (independent), k = draft_tokens drafted in a row; the target model itself
    adds the 1. Leviathan et al. 2023, arXiv:2211.17192, equation 1.

    >>> round(expected_tokens(0.8, 4), 3)   # 1 + .8 + .64 + .512 + .4096
    3.362
    """
    # The limit a → 1 is k + 1; stopping just below keeps the quotient defined without a branch (arrays).
    a = minimum(acceptance, 1 - 1e-9)
    return (1 - a ** (draft_tokens + 1)) / (1 - a)


def minimum(a: Any, b: Any) -> Any:
    """Smaller of two numbers or arrays, by arithmetic alone.

    >>> minimum(3, 5)
    3.0
    """
    return (a + b - abs(a - b)) / 2


def maximum(a: Any, b: Any) -> Any:
    """Larger of two numbers or arrays.

    >>> maximum(3, 5)
    5.0
    """
    return (a + b + abs(a - b)) / 2


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "expected_tokens": expected_tokens,
    "min": minimum,
    "max": maximum,
}

_OPERATORS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: a / b,
    ast.Pow: lambda a, b: a**b,
}


def is_expression(value: object) -> bool:
    """Whether an effect's value is computed.

    >>> is_expression("= 1 / ratio"), is_expression("int4")
    (True, False)
    """
    return isinstance(value, str) and value.lstrip().startswith("=")


@lru_cache(maxsize=1024)
def _parse(text: str) -> ast.expr:
    source = text.strip().removeprefix("=").strip()
    try:
        tree = ast.parse(source, mode="eval").body
    except SyntaxError as error:
        raise TaxonomyError(f"'{text}' is not an arithmetic expression: {error.msg}") from error
    _check(tree, text)
    return tree


def _check(node: ast.expr, text: str) -> None:
    """Refuse everything but arithmetic, so that a data file cannot run code."""
    match node:
        case ast.Constant(value=int() | float()) if not isinstance(node.value, bool):
            return
        case ast.Name():
            return
        case ast.Attribute(value=ast.Name(id=root), attr=name) if root in OBJECTS and not name.startswith("_"):
            return
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            _check(operand, text)
        case ast.BinOp(left=left, op=operator, right=right) if type(operator) in _OPERATORS:
            _check(left, text)
            _check(right, text)
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in FUNCTIONS:
            for argument in args:
                _check(argument, text)
        case _:
            raise TaxonomyError(
                f"'{text}' uses '{ast.unparse(node)}'; allowed: numbers, knobs, {', '.join(OBJECTS)}.<field>, "
                f"+ - * / ** and {', '.join(sorted(FUNCTIONS))}"
            )


def names(text: str) -> frozenset[str]:
    """Every name that an expression uses, dotted where it is an attribute.

    >>> sorted(names("= model.vocab * heads"))
    ['heads', 'model.vocab']
    """
    found: set[str] = set()

    def walk(node: ast.expr) -> None:
        match node:
            case ast.Name(id=name):
                found.add(name)
            case ast.Attribute(value=ast.Name(id=root), attr=attribute):
                found.add(f"{root}.{attribute}")
            case ast.UnaryOp(operand=operand):
                walk(operand)
            case ast.BinOp(left=left, right=right):
                walk(left)
                walk(right)
            case ast.Call(args=args):
                for argument in args:
                    walk(argument)

    walk(_parse(text))
    return frozenset(found)


def evaluate(text: str, values: Mapping[str, Any]) -> Any:
    """The expression's value; `values` maps knobs to numbers and `model`, `workload` … to objects.

    >>> evaluate("= 1 - 1 / ratio", {"ratio": 4})
    0.75
    """

    def value(node: ast.expr) -> Any:
        match node:
            case ast.Constant(value=number):
                return number
            case ast.Name(id=name):
                if name not in values:
                    raise TaxonomyError(
                        f"'{text}' needs '{name}'; given: {', '.join(sorted(values)) or 'nothing'}"
                    )
                return values[name]
            case ast.Attribute(value=ast.Name(id=root), attr=attribute):
                holder = values.get(root)
                if not hasattr(holder, attribute):
                    raise TaxonomyError(f"'{text}' needs '{root}.{attribute}', which is not there")
                return getattr(holder, attribute)
            case ast.UnaryOp(operand=operand):
                return -value(operand)
            case ast.BinOp(left=left, op=operator, right=right):
                return _OPERATORS[type(operator)](value(left), value(right))
            case ast.Call(func=ast.Name(id=name), args=args):
                return FUNCTIONS[name](*(value(argument) for argument in args))
        raise TaxonomyError(f"'{text}' cannot be evaluated")  # _check has refused every other node

    return value(_parse(text))

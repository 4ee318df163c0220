"""JSON of any size as a stream of values: JSON lines, one after another, or the elements of one long array.

Memory is bounded by the largest single value. A value that cannot be read is reported, and reading goes on behind it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from ingest.records import sound

MAX_VALUE_CHARACTERS = 256 * 2**20
STEP_CHARACTERS = 64 * 1024
BLANK = re.compile(r"[\s,\ufeff]*")
STRUCTURE = re.compile(r'["{}\[\]]|\n')
STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"')


# Escapes that JSON allows and a database does not: halves of surrogate pairs and NUL.
ESCAPED = re.compile(r"\\u(?:[dD][89a-fA-F]|0000)")
# Not strict: a tab or a line break inside a string is as often met as its meaning is plain.
DECODER = json.JSONDecoder(strict=False)


def sound_values(data: Any) -> Any:
    """A decoded value with every text in it sound."""
    if isinstance(data, str):
        return sound(data)
    if isinstance(data, list):
        return [sound_values(one) for one in data]
    if isinstance(data, dict):
        return {sound(key): sound_values(one) for key, one in data.items()}
    return data


class Value(NamedTuple):
    """A decoded value, or why there is none and the text in its place."""

    number: int  # counted from 1
    data: Any
    error: str = ""
    text: str = ""


def json_values(lines: Iterable[str]) -> Iterator[Value]:
    """Top-level values of a text; of a top-level array its elements.

    >>> [v.data for v in json_values(['[{"a": 1},', '{"a": 2}]'])], [v.data for v in json_values(['{"a": 1}', '{"b": 2}'])]
    ([{'a': 1}, {'a': 2}], [{'a': 1}, {'b': 2}])
    """
    iterator = iter(lines)
    number = 0
    for line in iterator:
        stripped = line.strip().lstrip("\ufeff")
        if not stripped:
            continue
        # The usual case: a whole value on its line. json.loads is many times faster than anything we could do.
        if stripped[0] == "{" and stripped[-1] == "}":
            try:
                data = DECODER.decode(stripped)
                if "\\u" in stripped and ESCAPED.search(stripped):
                    data = sound_values(data)
            except (ValueError, RecursionError):
                pass
            else:
                number += 1
                yield Value(number, data)
                continue
        rest = Buffer(line if line.endswith("\n") or len(line) > STEP_CHARACTERS else line + "\n", iterator)
        rest.skip_blank()
        in_array = rest.opens_array()
        for value in rest.values(in_array):
            number += 1
            yield value._replace(number=number)
            if not in_array and not value.error and rest.at_line_end():
                break
        if not rest.exhausted_by_value:
            continue
        iterator = iter([])


class Buffer:
    """Text that is read on demand."""

    def __init__(self, text: str, lines: Iterator[str]) -> None:
        self.text = text
        self.at = 0
        self.lines = lines
        self.ended = False
        self.exhausted_by_value = False

    def more(self) -> bool:
        """Doubles what is in memory, so that a long value is tried again only a few times."""
        wanted = max(STEP_CHARACTERS, len(self.text) - self.at)
        parts, size = [self.text[self.at :]], 0
        while size < wanted:
            line = next(self.lines, None)
            if line is None:
                self.ended = True
                break
            parts.append(line)
            size += len(line)
        self.text, self.at = "".join(parts), 0
        return size > 0

    def opens_array(self) -> bool:
        if self.text[self.at] == "[":
            self.at += 1
            return True
        return False

    def skip_blank(self) -> bool:
        """Moves to the next value; False at the end."""
        while True:
            match = BLANK.match(self.text, self.at)
            self.at = match.end() if match else self.at
            if self.at < len(self.text):
                return True
            if not self.more():
                return False

    def at_line_end(self) -> bool:
        match = BLANK.match(self.text, self.at)
        return match is not None and match.end() == len(self.text)

    def values(self, in_array: bool) -> Iterator[Value]:
        while self.skip_blank():
            if in_array and self.text[self.at] == "]":
                self.at += 1
                in_array = False
                continue
            yield self.value()
        self.exhausted_by_value = True

    def value(self) -> Value:
        """The value here; grows the text until the value is whole."""
        while True:
            try:
                data, end = DECODER.raw_decode(self.text, self.at)
                if ESCAPED.search(self.text, self.at, end):
                    data = sound_values(data)
            except ValueError as error:
                position = getattr(error, "pos", len(self.text))
                cut = len(self.text) - position < 64 or "Unterminated string" in str(error)
                small = len(self.text) - self.at < MAX_VALUE_CHARACTERS
                if not self.ended and cut and small and self.more():
                    continue
                return self.broken(str(error).split(":")[0])
            except RecursionError:
                return self.broken("nested too deeply")
            if end == len(self.text) and not self.ended and not isinstance(data, dict | list) and self.more():
                continue  # a number may go on
            self.at = end
            return Value(0, data)

    def broken(self, reason: str) -> Value:
        """Skips the value here: to its closing bracket, or to the next line that begins one."""
        start = self.at
        depth = 0
        position = start
        while True:
            match = STRUCTURE.search(self.text, position)
            if match is None:
                keep = self.text[start : start + 400]
                if not self.more():
                    self.at = len(self.text)
                    return Value(0, None, reason, keep)
                start = position = 0
                depth = 0
                if len(self.text) > MAX_VALUE_CHARACTERS:
                    self.at = len(self.text)
                    return Value(0, None, reason, keep)
                continue
            token = match[0]
            position = match.end()
            if token == '"':
                string = STRING.match(self.text, match.start())
                position = string.end() if string else self.next_line(match.start())
            elif token == "\n":
                rest = self.text[position : position + 200].lstrip()
                if rest.startswith("{") and (depth <= 0 or self.text[position : position + 1] == "{"):
                    break
            elif token in "{[":
                depth += 1
            else:
                depth -= 1
                if depth <= 0:
                    break
        self.at = position
        return Value(0, None, reason, self.text[start : start + 400])

    def next_line(self, position: int) -> int:
        """Just before the end of the line; an unclosed string ends there."""
        end = self.text.find("\n", position)
        return len(self.text) if end < 0 else end

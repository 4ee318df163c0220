"""JSON of any size as a stream: whole lines, one long array, broken values between good ones, little memory."""

import io
import json

import pytest

from ingest.references import Reference
from ingest.sources.detect import open_source
from ingest.stream import json_values


@pytest.mark.parametrize(
    "text, good, bad",
    [
        ('{"a":1}\n{"b":2}\n', 2, 0), ('[{"a":1},{"b":2}]', 2, 0), ('[\n {"a":1},\n {"b": tru},\n {"c":3}\n]', 2, 1), ('{"a":1}\n{bad\n{"c":3}\n', 2, 1),
        ('{\n "a": 1,\n "b": [1, 2]\n}\n', 1, 0), ('{"a":1}{"b":2} {"c":3}', 3, 0), ('{"a": "x\n{"b":2}\n{"c":3}', 2, 1), ("", 0, 0), ("[]", 0, 0),
        ('[{"a": "un", }, {"b":1}]', 1, 1), ("[" * 100_000, 0, 1), ('{"a":1}\n' + "[" * 5000 + "\n" + '{"b":1}', 2, 1), ('{"a": 1', 0, 1),
    ],
)  # fmt: skip
def test_json_streams(text, good, bad):
    values = list(json_values(io.StringIO(text)))
    assert sum(not v.error for v in values) == good
    assert sum(bool(v.error) for v in values) == bad


class Endless(io.RawIOBase):
    """JSON lines made as they are read; counts what was asked for."""

    def __init__(self, records, joint):
        self.left, self.joint, self.buffer, self.sent = records, joint, b"[" if joint == b"," else b"", 0

    def readable(self):
        return True

    def readinto(self, target):
        while len(self.buffer) < len(target) and self.left:
            self.left -= 1
            record = {"id": str(self.left), "type": "book", "title": f"Title {self.left} " + "x" * 400}
            end = (b"]" if self.joint == b"," else b"") if not self.left else self.joint
            self.buffer += json.dumps(record).encode() + end
        chunk, self.buffer = self.buffer[: len(target)], self.buffer[len(target) :]
        target[: len(chunk)] = chunk
        self.sent += len(chunk)
        return len(chunk)


@pytest.mark.parametrize("joint", [b"\n", b","], ids=["json-lines", "one-array-on-one-line"])
def test_large_streams_need_little_memory(joint):
    import tracemalloc

    stream = Endless(20_000, joint)
    tracemalloc.start()
    source = open_source(io.BufferedReader(stream))
    count = sum(isinstance(item, Reference) for item in source.items)
    _now, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert count == 20_000
    assert stream.sent > 9_000_000
    assert peak < (2_000_000 if joint == b"\n" else 60_000_000)


def test_json_text_sequences():
    """RFC 7464: a record separator in front of each value."""
    text = b'\x1e{"type": "book", "title": "One"}\n\x1e{"type": "book", "title": "Two"}\n'
    assert [item.title for item in open_source(io.BytesIO(text)).items] == ["One", "Two"]

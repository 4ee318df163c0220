"""Did you mean: unknown words replaced by the closest ones that occur."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from kb.kept import Kept
from kb.reader import Reader
from kb.search_backends import Backend
from kb.search_facets import KEPT, identity
from kb.search_query import Query, parse_query

MAX_WORDS = 6
RARE = 2  # documents
RARER = 10  # a better word occurs so many times as often
WORD_LENGTHS = range(3, 41)

# (word, documents that have it, its letters as bits)
Vocabulary = list[tuple[str, int, int]]
VOCABULARIES: Kept[tuple[Vocabulary, bool]] = Kept(10 * KEPT)


def did_you_mean(reader: Reader, backend: Backend, state: Mapping[str, str], query: Query) -> str | None:
    """The query with unknown words replaced, where that finds something."""
    from kb.search import find_hits, relaxations, select

    given = changed = query.text.replace("\0", " ")
    for word, documents in rare_words(reader, backend, query):
        known = vocabulary(reader, backend, state, word)
        better = closest_word(word, [one for one in known if one[1] >= RARER * documents and one[0] != word])
        if better:
            changed = re.sub(re.escape(word), better, changed, count=1, flags=re.IGNORECASE)
    if changed == given:
        return None
    clauses = parse_query(changed).clauses
    for attempt in (clauses, *(looser for looser, _note in relaxations(clauses))):
        if find_hits(reader, select(reader, backend, attempt, []), "relevance"):
            return changed
    return None


def rare_words(reader: Reader, backend: Backend, query: Query) -> list[tuple[str, int]]:
    """Words that hardly occur, with how many documents have them; a misspelling is often somebody else's too."""
    found: dict[str, int] = {}
    for term in query.terms[:MAX_WORDS]:
        for word in term.words[: -1 if term.prefix else None]:
            if len(word) in WORD_LENGTHS and word not in found:
                documents = backend.frequency(reader, word)
                if documents <= RARE:
                    found[word] = documents
    return list(found.items())[:MAX_WORDS]


def vocabulary(reader: Reader, backend: Backend, state: Mapping[str, str], word: str) -> Vocabulary:
    """The words that occur, kept in memory while the index does not change; of very many, those with the same initial."""

    def read() -> tuple[Vocabulary, bool]:
        listed, complete = backend.candidates(reader, word)
        return [(other, documents, letters(other)) for other, documents in listed], complete

    key = identity(reader, state)
    if key is None:
        return read()[0]
    found, complete = VOCABULARIES.made(key, read)
    return found if complete else VOCABULARIES.made((*key, word[0]), read)[0]


def letters(word: str) -> int:
    """Which letters a word has, as bits; equal words have equal bits, close words nearly so."""
    bits = 0
    for character in word:
        bits |= 1 << (ord(character) % 61)
    return bits


def closest_word(word: str, known: Sequence[Any]) -> str | None:
    """The closest known word within two edits (one for short words), the more frequent one of equals.

    >>> closest_word("quantisation", [("quantization", 80, letters("quantization")), ("quantile", 2, letters("quantile"))])
    'quantization'
    >>> closest_word("kvcache", [("kv", 9, letters("kv")), ("cache", 7, letters("cache"))])
    'kv cache'
    """
    allowed = 1 if len(word) <= 4 else 2
    low, high, bits = len(word) - allowed, len(word) + allowed, letters(word)
    near = [
        (other, documents)
        for other, documents, other_bits in known
        if low <= len(other) <= high and (bits ^ other_bits).bit_count() <= 2 * allowed
    ]
    rated = [
        (distance, -documents, other)
        for other, documents in near
        if (distance := edit_distance(word, other, allowed)) <= allowed
    ]
    best = min(rated, default=None)
    if best is not None and best[0] <= 1:
        return best[2]
    frequency = {other: documents for other, documents, _bits in known if len(other) < len(word)}
    halves = [
        (min(frequency[word[:cut]], frequency[word[cut:]]), f"{word[:cut]} {word[cut:]}")
        for cut in range(2, len(word) - 1)
        if word[:cut] in frequency and word[cut:] in frequency
    ]
    if halves:
        return max(halves)[1]
    return best[2] if best else None


def edit_distance(a: str, b: str, most: int) -> int:
    """Insertions, deletions, substitutions and swaps of neighbours; `most + 1` as soon as it is more.

    >>> edit_distance("flashatention", "flashattention", 2), edit_distance("awq", "gptq", 2), edit_distance("tset", "test", 1)
    (1, 3, 1)
    """
    before: list[int] = []
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, start=1):
        last, row = row, [i]
        for j, y in enumerate(b, start=1):
            cost = min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (x != y))
            if before and j > 1 and x == b[j - 2] and a[i - 2] == y:
                cost = min(cost, before[j - 2] + 1)
            row.append(cost)
        if min(row) > most:
            return most + 1
        before = last
    return row[-1]

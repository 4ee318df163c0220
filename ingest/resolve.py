"""Which records are one work. Pure: a set of records in, a partition out; the order of the records cannot matter.

1. Records that state the same identifier are one work, unless authors and titles both say otherwise (a wrong
   identifier in a list); such an identifier is disputed and unites only the records that agree.
2. Records with the same title key (or, for web pages, the same address) are united by falling agreement of authors
   and years, as long as nothing contradicts: different arXiv ids, different DOIs, a page against a paper, author
   lists that hardly overlap, years far apart, or a person's word. So a title alone never joins two identifiers.
3. A person's "same" or "different" stands above all of it.

Similarity of titles only proposes (`similar`); it never unites.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from ingest.keys import Keys
from kb.text import title_words

YEAR_GAP = 3  # years between a preprint and its last edition; a reprint or a namesake lies further off
AUTHOR_OVERLAP = 0.5  # share of the shorter complete list that must be in the other
DISPUTE_SIMILARITY = 0.5
LARGE_GROUP = 200  # distinct records under one title; beyond, only equal first authors and years are compared


@dataclass(slots=True)
class Node:
    """Distinct statements: all records with one signature."""

    signature: str
    keys: Keys
    title: str = ""

    @property
    def order(self) -> tuple[object, ...]:
        keys = self.keys
        return (keys.year or 0, keys.title, keys.author, self.signature)


@dataclass(slots=True)
class Cluster:
    """A group of nodes and what it stands for."""

    members: list[int] = field(default_factory=list)
    arxiv: set[str] = field(default_factory=set)
    doi: set[str] = field(default_factory=set)
    pages: set[str] = field(default_factory=set)
    years: set[int] = field(default_factory=set)
    lists: list[frozenset[str]] = field(default_factory=list)

    def absorb(self, other: Cluster) -> None:
        self.members += other.members
        self.arxiv |= other.arxiv
        self.doi |= other.doi
        self.pages |= other.pages
        self.years |= other.years
        self.lists += [one for one in other.lists if one not in self.lists]


def partition(
    nodes: Sequence[Node],
    same: Iterable[tuple[int, int]] = (),
    different: Iterable[tuple[int, int]] = (),
) -> list[list[int]]:
    """Groups of indexes into `nodes`, each one work; sorted, so that equal input sets give equal output."""
    same, different = list(same), list(different)
    if len(nodes) == 2 and not same and not different:
        return two_nodes(*nodes)
    parent = list(range(len(nodes)))
    apart = {pair for a, b in different for pair in ((a, b), (b, a))}
    isolated = apart_by_hand(nodes, apart)

    def find(index: int) -> int:
        while parent[index] != index:
            parent[index] = parent[parent[index]]
            index = parent[index]
        return index

    for group in identifier_groups(nodes, isolated):
        for other in group[1:]:
            parent[find(other)] = find(group[0])
    for a, b in same:
        parent[find(b)] = find(a)
    clusters: dict[int, Cluster] = defaultdict(Cluster)
    for index in sorted(range(len(nodes)), key=lambda one: nodes[one].order):
        clusters[find(index)].absorb(single(index, nodes[index]))
    for a, b in soft_edges(nodes):
        one, other = find(a), find(b)
        if one != other and not conflict(clusters[one], clusters[other], apart):
            clusters[one].absorb(clusters.pop(other))
            parent[other] = one
    return sorted(sorted(cluster.members) for cluster in clusters.values())


def two_nodes(a: Node, b: Node) -> list[list[int]]:
    """The rules for the usual case, a known work and one new statement, without their general machinery."""
    if not set(a.keys.strong).isdisjoint(b.keys.strong) and agree(a, b):
        return [[0, 1]]
    for key in a.keys.soft:
        if key in b.keys.soft and agreement(a.keys, b.keys, address=key[1].startswith("url:")):
            return [[0], [1]] if conflict(single(0, a), single(1, b), set()) else [[0, 1]]
    return [[0], [1]]


def single(index: int, node: Node) -> Cluster:
    keys = node.keys
    return Cluster(
        members=[index],
        arxiv={value for scheme, value in keys.strong if scheme == "arxiv"},
        doi={value for scheme, value in keys.strong if scheme == "doi"},
        pages={keys.page} if keys.page else set(),
        years={keys.year} if keys.year else set(),
        lists=[keys.families] if keys.complete else [],
    )


def apart_by_hand(nodes: Sequence[Node], apart: set[tuple[int, int]]) -> set[int]:
    """Records told apart by a person although an identifier joins them: their identifier does not count."""
    out: set[int] = set()
    for a, b in apart:
        if set(nodes[a].keys.strong) & set(nodes[b].keys.strong):
            out.add(max(a, b, key=lambda index: nodes[index].order))
    return out


def identifier_groups(nodes: Sequence[Node], isolated: set[int]) -> list[list[int]]:
    """Nodes that share an identifier and do not contradict each other."""
    claims: dict[tuple[str, str], list[int]] = defaultdict(list)
    for index, node in enumerate(nodes):
        if index not in isolated:
            for key in node.keys.strong:
                claims[key].append(index)
    groups = []
    for claimants in claims.values():
        if len(claimants) > 1:
            groups += agreeing(nodes, claimants)
    return groups


def agreeing(nodes: Sequence[Node], claimants: list[int]) -> list[list[int]]:
    """The claimants of one identifier, split where authors and titles both differ (single linkage)."""
    groups: list[list[int]] = []
    for index in sorted(claimants, key=lambda one: nodes[one].order):
        hits = [group for group in groups if any(agree(nodes[index], nodes[other]) for other in group)]
        merged = [index] + [one for group in hits for one in group]
        groups = [group for group in groups if group not in hits] + [merged]
    return groups


def agree(a: Node, b: Node) -> bool:
    """Whether two records with one identifier can be about one work."""
    if not a.title or not b.title or not a.keys.families or not b.keys.families:
        return True
    if a.keys.title == b.keys.title or a.keys.families & b.keys.families:
        return True
    return similarity(a.title, b.title) >= DISPUTE_SIMILARITY


def similarity(a: str, b: str) -> float:
    """Share of common words of two titles, by the longer one (0 … 1).

    >>> similarity("Break the sequential dependency", "Breaking the sequential dependency")
    0.75
    """
    one, other = word_bag(a), word_bag(b)
    return len(one & other) / max(len(one), len(other)) if one and other else 0.0


@lru_cache(maxsize=16384)
def word_bag(title: str) -> frozenset[str]:
    """The words of a title, those that repeat with how often they came before, so that lists compare as sets."""
    words = title_words(title)
    bag = frozenset(words)
    if len(bag) == len(words):
        return bag
    seen: dict[str, int] = {}
    for at, word in enumerate(words):
        seen[word] = seen.get(word, 0) + 1
        if seen[word] > 1:
            words[at] = f"{word} {seen[word]}"
    return frozenset(words)


def soft_edges(nodes: Sequence[Node]) -> list[tuple[int, int]]:
    """Pairs with a common title or address, the best agreement first; ties in the records' own order."""
    groups: dict[tuple[str, str], list[int]] = defaultdict(list)
    for index, node in enumerate(nodes):
        for key in node.keys.soft:
            groups[key].append(index)
    edges: list[tuple[tuple[object, ...], int, int]] = []
    for key, group in groups.items():
        if len(group) < 2:
            continue
        group.sort(key=lambda index: nodes[index].order)
        address = key[1].startswith("url:")
        for position, a in enumerate(group):
            rest = group[position + 1 :]
            if len(group) > LARGE_GROUP:
                rest = rest[:LARGE_GROUP]
            for b in rest:
                score = agreement(nodes[a].keys, nodes[b].keys, address=address)
                if score:
                    edges.append(((tuple(-part for part in score), nodes[a].order, nodes[b].order), a, b))
    edges.sort(key=lambda edge: edge[0])
    return [(a, b) for _, a, b in edges]


def agreement(a: Keys, b: Keys, *, address: bool) -> tuple[float, ...] | None:
    """How well two records of one title (or address) agree; None if they do not speak of one work."""
    if address:
        if a.author != b.author and a.title != b.title:
            return None
        return (1.0, 1.0 if a.title == b.title else 0.0)
    gap = abs(a.year - b.year) if a.year and b.year else 1
    if gap > YEAR_GAP:
        return None
    if not a.families or not b.families:
        # Without authors a long title of the same year is enough, a short one is not.
        return (0.1, -gap) if gap <= 1 and len(a.title) >= 30 and not (a.families or b.families) else None
    common = len(a.families & b.families)
    if not common:
        return None
    return (common / min(len(a.families), len(b.families)), float(-gap), float(a.author == b.author))


def conflict(a: Cluster, b: Cluster, apart: set[tuple[int, int]]) -> bool:
    """Whether anything says that two groups are different works."""
    if a.arxiv and b.arxiv and not a.arxiv & b.arxiv:
        return True
    if a.doi and b.doi and not a.doi & b.doi:
        return True
    if a.pages and b.pages and not a.pages & b.pages:
        return True
    if (a.pages and (b.arxiv or b.doi)) or (b.pages and (a.arxiv or a.doi)):
        return True  # a page about a paper is not the paper
    if not (a.pages and b.pages) and a.years and b.years:
        low, high = min(a.years | b.years), max(a.years | b.years)
        if high - low > YEAR_GAP:
            return True
    if any(
        len(one & other) < AUTHOR_OVERLAP * min(len(one), len(other))
        for one in a.lists
        for other in b.lists
        if one is not other
    ):
        return True
    return bool(apart) and any((one, other) in apart for one in a.members for other in b.members)

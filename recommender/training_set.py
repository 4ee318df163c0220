"""What the classifier of papers learns from: titles of known papers, the catalogue's own words, a vocabulary.

A class is a level of Zhou et al.'s scheme, at most three steps deep, with at least CLASS_MINIMUM known works;
smaller ones are merged into their parent, because a handful of titles cannot be learned from or tested.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.resources import files

from kb.reader import Reader
from recommender.knowledge import Knowledge, load_knowledge
from taxonomy.model import Technique

SCHEME = "zhou"
CLASS_MINIMUM = 15
CLASS_DEPTH = 3


@dataclass(frozen=True)
class Example:
    """A work that introduces techniques, with every level, class and bottleneck that counts as right."""

    work: str
    title: str
    abstract: str
    is_paper: bool
    techniques: tuple[str, ...]
    paths: tuple[str, ...]  # places in the scheme, the first one leading
    bottlenecks: tuple[str, ...]


@dataclass(frozen=True)
class Document:
    """A piece of text to learn from; the paths' first gives the class, the bottlenecks' first the bottleneck."""

    text: str
    path: str
    bottleneck: str = ""
    techniques: tuple[str, ...] = ()  # left out of training when one of these is being tested


@dataclass(frozen=True)
class TrainingSet:
    examples: tuple[Example, ...]
    documents: tuple[Document, ...]  # the catalogue's and the vocabulary's words, not the examples' titles
    class_names: Mapping[str, str]
    members: Mapping[str, int] = field(default_factory=dict)  # path → works at it or below

    def class_of(self, path: str) -> str:
        """The class of a place in the scheme: the deepest ancestor with enough works."""
        parts = path.split("/")[:CLASS_DEPTH]
        while len(parts) > 1 and self.members.get("/".join(parts), 0) < CLASS_MINIMUM:
            parts.pop()
        return "/".join(parts)

    def classes(self, example: Example) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self.class_of(path) for path in example.paths))


def level_of(path: str) -> str:
    """data, model or system.

    >>> level_of("system/serving-system")
    'system'
    """
    return path.split("/", 1)[0]


def read_training_set(reader: Reader) -> TrainingSet:
    """Everything from the database's rows and the packaged vocabulary."""
    knowledge = load_knowledge(reader)
    examples = tuple(read_examples(reader, knowledge))
    names = {
        row["path"]: row["name"]
        for row in reader.rows("SELECT path, name FROM level WHERE scheme = :scheme", {"scheme": SCHEME})
    }
    documents = (
        *technique_documents(knowledge.techniques.values()),
        *level_documents(reader),
        *vocabulary_documents(names),
        *bottleneck_documents(reader),
    )
    return TrainingSet(
        examples=examples, documents=documents, class_names=names, members=count_members(examples)
    )


def read_examples(reader: Reader, knowledge: Knowledge) -> Iterable[Example]:
    """Works that introduce a technique which the scheme places."""
    rows = reader.rows(
        "SELECT work.slug, work.title, work.kind, work.abstract, techniquework.technique FROM techniquework"
        " JOIN work ON work.id = techniquework.work_id WHERE techniquework.role = 'introduces'"
        " ORDER BY work.slug, techniquework.technique"
    )
    grouped: dict[str, list[dict[str, str]]] = {}
    for row in rows:
        grouped.setdefault(row["slug"], []).append(row)
    for slug, items in grouped.items():
        techniques = [
            knowledge.techniques[row["technique"]]
            for row in items
            if row["technique"] in knowledge.techniques
        ]
        paths = unique(path for technique in techniques for path in technique.levels.get(SCHEME, ()))
        if paths and items[0]["title"]:
            yield Example(
                work=slug,
                title=items[0]["title"],
                abstract=items[0]["abstract"] or "",
                is_paper=items[0]["kind"] == "paper",
                techniques=tuple(technique.slug for technique in techniques),
                paths=paths,
                bottlenecks=unique(slug for technique in techniques for slug in technique.bottlenecks),
            )


def unique(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(values))


def count_members(examples: Iterable[Example]) -> dict[str, int]:
    """Works at each place of the scheme or below it, by their leading place."""
    counts: Counter[str] = Counter()
    for example in examples:
        parts = example.paths[0].split("/")[:CLASS_DEPTH]
        counts.update("/".join(parts[: depth + 1]) for depth in range(len(parts)))
    return dict(counts)


def technique_documents(techniques: Iterable[Technique]) -> Iterable[Document]:
    """Name, summary and use of each technique."""
    for technique in techniques:
        paths = technique.levels.get(SCHEME)
        if paths:
            yield Document(
                text=f"{technique.name}. {technique.summary} {technique.helps_when}",
                path=paths[0],
                bottleneck=technique.bottlenecks[0] if technique.bottlenecks else "",
                techniques=(technique.slug,),
            )


def level_documents(reader: Reader) -> Iterable[Document]:
    rows = reader.rows(
        "SELECT path, name, description FROM level WHERE scheme = :scheme ORDER BY path", {"scheme": SCHEME}
    )
    for row in rows:
        yield Document(text=f"{row['name']}. {row['description']}", path=row["path"])


def bottleneck_documents(reader: Reader) -> Iterable[Document]:
    for row in reader.rows("SELECT slug, name, description FROM bottleneck ORDER BY slug"):
        yield Document(text=f"{row['name']}. {row['description']}", path="", bottleneck=row["slug"])


@lru_cache(maxsize=1)
def vocabulary() -> Mapping[str, Sequence[str]]:
    """Path → phrases, from recommender/data/vocabulary.toml."""
    import tomllib

    table = tomllib.loads((files("recommender") / "data" / "vocabulary.toml").read_text(encoding="utf-8"))
    return {path: entry["phrases"] for path, entry in table.items()}


def vocabulary_documents(known_paths: Collection[str]) -> Iterable[Document]:
    for path, phrases in vocabulary().items():
        if path in known_paths:
            for phrase in phrases:
                yield Document(text=phrase, path=path)

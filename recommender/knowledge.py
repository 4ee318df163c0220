"""What the recommender knows: techniques, relations, papers and reported figures, read once per database state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from kb import store_catalogue as store
from kb.kept import Kept
from kb.reader import Reader
from taxonomy.model import Effect, EngineSupport, Relation, Technique

KEPT_SNAPSHOTS = 4
RESEARCH_CODE = "research code"  # in place of an engine's name where only the authors' code exists

# Fields of a deployment that mean something only where there is attention over a cache.
ATTENTION_FIELDS = frozenset(
    {
        "attention_kernel", "decode_attention_kernel", "kv_format", "kv_tokens_kept", "kv_window_tokens", "kv_read_share", "kv_read_factor",
        "kv_waste_share", "kv_shared_share", "host_kv_share", "prefill_attention_share", "prefix_cache",
    }
)  # fmt: skip

_ROLE_ORDER = {"introduces": 0, "evaluates": 1, "surveys": 2}


@dataclass(frozen=True)
class Knowledge:
    """A snapshot of the catalogue. Never changed after it is made, so threads may share it."""

    techniques: Mapping[str, Technique]
    relations: tuple[Relation, ...] = ()
    papers: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    evidence: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    years: Mapping[str, int | None] = field(default_factory=dict)
    predictions: dict[str, float | None] = field(
        default_factory=dict
    )  # id of a figure → backtest, filled on demand

    # Answers that no question changes, filled on demand.
    standing: dict[str, Any] = field(default_factory=dict)

    def mechanism(self, slug: str) -> str:
        """The mechanism of a technique; one without a mechanism is its own."""
        return self.techniques[slug].mechanism or slug

    @cached_property
    def members(self) -> dict[str, tuple[str, ...]]:
        """Mechanism → its techniques."""
        found: dict[str, list[str]] = {}
        for slug in self.techniques:
            found.setdefault(self.mechanism(slug), []).append(slug)
        return {name: tuple(slugs) for name, slugs in found.items()}

    @cached_property
    def active(self) -> tuple[str, ...]:
        """Techniques that declare an effect."""
        return tuple(slug for slug, technique in self.techniques.items() if technique.effects)

    @cached_property
    def demands(self) -> dict[str, tuple[str, ...]]:
        """Technique → what the model must have: as declared, and attention where nothing else is changed."""
        found = {}
        for slug, technique in self.techniques.items():
            touched = {effect.field for effect in technique.effects}
            wanted = technique.requires.model
            if touched and touched <= ATTENTION_FIELDS and "attention" not in wanted:
                wanted = (*wanted, "attention")
            found[slug] = wanted
        return found

    @cached_property
    def timeless(self) -> frozenset[str]:
        """Techniques whose effects neither workload nor model change: no formula of theirs mentions them."""
        return self._without("workload", "model")

    @cached_property
    def loadless(self) -> frozenset[str]:
        """Techniques whose effects the workload does not change, though the model may."""
        return self._without("workload")

    def _without(self, *words: str) -> frozenset[str]:
        return frozenset(
            slug
            for slug in self.active
            if not any(
                isinstance(effect.value, str)
                and effect.value.startswith("=")
                and any(word in effect.value for word in words)
                for effect in self.techniques[slug].effects
            )
        )

    def on_engine(self, engine: str) -> Mapping[str, Technique]:
        """All techniques as one engine has them: what its kernels do otherwise is an effect of its own."""
        found = self._on_engine.get(engine)
        if found is None:
            own = {
                slug: with_settings(technique, support)
                for slug, technique in self.techniques.items()
                for support in technique.engines
                if support.engine == engine and support.sets
            }
            found = self._on_engine[engine] = {**self.techniques, **own} if own else self.techniques
        return found

    @cached_property
    def _on_engine(self) -> dict[str, Mapping[str, Technique]]:
        return {}

    @cached_property
    def sized(self) -> tuple[str, ...]:
        """Active techniques whose weight format comes in several widths: those with a knob of that name."""
        return tuple(
            slug
            for slug in self.active
            if any(knob.name == "weight_format" and knob.choices for knob in self.techniques[slug].knobs)
        )

    @cached_property
    def trained(self) -> tuple[str, ...]:
        """Active techniques of which somebody published trained weights for some models."""
        return tuple(slug for slug in self.active if self.techniques[slug].checkpoints)

    @cached_property
    def inert(self) -> tuple[str, ...]:
        """Techniques that declare none and say why."""
        return tuple(slug for slug, technique in self.techniques.items() if not technique.effects)

    @cached_property
    def aliases(self) -> dict[str, str]:
        """Every spelling of a technique → its slug."""
        found: dict[str, str] = {}
        for slug, technique in self.techniques.items():
            for text in (*technique.aliases, technique.name):
                found.setdefault(_key(text), slug)
        for slug in self.techniques:
            found[_key(slug)] = slug
        return found

    @cached_property
    def relation_index(self) -> dict[str, tuple[Relation, ...]]:
        """Technique or mechanism slug → the relations that name it."""
        found: dict[str, list[Relation]] = {}
        for relation in self.relations:
            found.setdefault(relation.a, []).append(relation)
            if relation.b != relation.a:
                found.setdefault(relation.b, []).append(relation)
        return {slug: tuple(items) for slug, items in found.items()}

    @cached_property
    def opponents(self) -> dict[str, frozenset[str]]:
        """Technique → techniques and mechanisms that it, or its mechanism, conflicts with."""
        return {slug: self._related(slug, self.techniques[slug].mechanism) for slug in self.techniques}

    def _related(self, slug: str, mechanism: str) -> frozenset[str]:
        mine = {slug, mechanism} - {""}
        relations = [relation for name in mine for relation in self.relation_index.get(name, ())]
        return frozenset(
            name for each in relations if each.kind == "conflicts" for name in {each.a, each.b} - mine
        )

    @cached_property
    def including(self) -> dict[str, frozenset[str]]:
        """Technique → techniques that include it."""
        return {
            slug: frozenset(
                relation.a
                for relation in self.relation_index.get(slug, ())
                if relation.kind == "subsumes" and relation.b == slug
            )
            for slug in self.techniques
        }

    @cached_property
    def shipped(self) -> dict[str, tuple[str, ...]]:
        """Technique → engines that have it; published research code is none."""
        return {
            slug: tuple(
                dict.fromkeys(item.engine for item in technique.engines if item.engine != RESEARCH_CODE)
            )
            for slug, technique in self.techniques.items()
        }

    def shipped_by(self, slug: str) -> tuple[str, ...]:
        """Engines that have the technique."""
        return self.shipped[slug]

    @cached_property
    def scored_figures(self) -> dict[str, int]:
        """Technique → sound end-to-end figures reported of it."""
        return {
            slug: sum(
                1 for row in rows if row["score"] and row["metric"] not in ("ppl_delta", "accuracy_delta")
            )
            for slug, rows in self.evidence.items()
        }

    @cached_property
    def losses(self) -> dict[str, float]:
        """Technique → median of the quality losses reported for it, in the points of their own metrics."""
        found: dict[str, float] = {}
        for slug, rows in self.evidence.items():
            values = sorted(
                abs(float(row["value"]))
                for row in rows
                if row["metric"] in ("ppl_delta", "accuracy_delta")
                and not row["suspect"]
                and row["value"] is not None
            )
            if values:
                found[slug] = values[len(values) // 2]
        return found

    def evidence_rank(self, slug: str) -> tuple[int, int, int, int, str]:
        """Sort key, best-evidenced technique first: end-to-end figures, engines, papers, then age and name."""
        return self.evidence_ranks[slug]

    @cached_property
    def evidence_ranks(self) -> dict[str, tuple[int, int, int, int, str]]:
        return {slug: self._evidence_rank(slug) for slug in self.techniques}

    def _evidence_rank(self, slug: str) -> tuple[int, int, int, int, str]:
        rows = self.evidence.get(slug, ())
        usable = sum(1 for row in rows if not row["suspect"] and row["level"] in ("e2e", "serving"))
        scored = sum(1 for row in rows if row["score"])
        engines = len(self.shipped_by(slug))
        return (-min(engines, 3) - min(scored, 3), -usable, -engines, -len(self.papers.get(slug, ())), slug)

    @cached_property
    def prominence(self) -> dict[str, int]:
        """How likely a reader asks about a technique: surveys that cite its works, and figures reported of it."""
        return {
            slug: 3 * len({name for paper in self.papers.get(slug, ()) for name in paper["surveys"]})
            + min(len(self.evidence.get(slug, ())), 10)
            + len(self.shipped_by(slug))
            for slug in self.techniques
        }

    def find(self, text: str) -> str | None:
        """The slug that a person's spelling means, or None."""
        return self.aliases.get(_key(text))


def with_settings(technique: Technique, support: EngineSupport) -> Technique:
    """A technique with what one engine does otherwise: its knobs at other values, further effects after its own."""
    knobs = tuple(
        replace(knob, default=support.sets[knob.name]) if knob.name in support.sets else knob
        for knob in technique.knobs
    )
    known = {knob.name for knob in knobs}
    own = tuple(
        Effect(field=name, value=value, basis="vendor", source=support.source)
        for name, value in support.sets.items()
        if name not in known
    )
    return replace(technique, effects=(*technique.effects, *own), knobs=knobs)


def _key(text: str) -> str:
    return "".join(character for character in text.casefold() if character.isalnum() or character in "#+")


def is_research_code(recommendation: Mapping[str, Any]) -> bool:
    """Whether no engine ships a part of a recommendation (one of an answer's, as JSON)."""
    shipped = {entry["technique"] for entry in recommendation["engines"] if entry["name"] != RESEARCH_CODE}
    return any(slug not in shipped for slug in recommendation["techniques"])


_snapshots: Kept[Knowledge] = Kept(KEPT_SNAPSHOTS)


def load_knowledge(reader: Reader) -> Knowledge:
    """The snapshot of the reader's database, from the cache where nothing has changed."""
    identity = _identity(reader)
    if identity is None:
        return read_knowledge(reader)
    return _snapshots.made((identity, store.catalogue_version(reader)), lambda: read_knowledge(reader))


def _identity(reader: Reader) -> str | None:
    """Which database this is; None for one that lives in memory only."""
    if reader.dialect == "sqlite":
        row = next((row for row in reader.rows("PRAGMA database_list") if row["name"] == "main"), None)
        return str(row["file"]) if row and row["file"] else None
    engine = getattr(getattr(reader, "connection", None), "engine", None)
    return None if engine is None else str(engine.url)


def read_knowledge(reader: Reader) -> Knowledge:
    """Read everything from the database."""
    from taxonomy.jsonform import technique_from_json

    rows = store.technique_rows(reader)
    techniques = {row["slug"]: technique_from_json(row["data"]) for row in rows}
    surveys: dict[int, list[str]] = {}
    for row in store.survey_citation_rows(reader):
        surveys.setdefault(row["work_id"], []).append(row["survey"])
    papers: dict[str, list[dict[str, Any]]] = {}
    for row in store.technique_paper_rows(reader):
        papers.setdefault(row["technique"], []).append(
            {
                "id": row["id"],
                "title": row["title"],
                "year": row["year"],
                "authors": row["authors"],
                "arxiv_id": row["arxiv_id"],
                "doi": row["doi"],
                "url": row["url"],
                "role": row["role"],
                "surveys": surveys.get(row["work_id"], []),
            }
        )
    for items in papers.values():
        items.sort(key=lambda item: (_ROLE_ORDER.get(item["role"], 9), -len(item["surveys"]), item["id"]))
    evidence: dict[str, list[dict[str, Any]]] = {}
    for row in store.evidence_rows(reader):
        evidence.setdefault(row["technique"], []).append(row)
    relations = tuple(Relation(**row) for row in store.relation_rows(reader))
    return Knowledge(
        techniques=techniques,
        relations=relations,
        papers=papers,
        evidence=evidence,
        years={row["slug"]: row["year"] for row in rows},
    )

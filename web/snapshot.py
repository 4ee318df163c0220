"""The knowledge base as one data version holds it, linked up in memory: what lists, facets and records need."""

from __future__ import annotations

import difflib
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

Item = dict[str, Any]

SCHEME_NAMES = {"zhou": "Zhou et al. 2024", "yuan": "Yuan et al. 2024", "park": "Park et al. 2024"}


@dataclass
class Snapshot:
    """Read-only by convention; every dictionary is shared by all requests."""

    version: str
    works: list[Item]
    techniques: list[Item]
    surveys: list[Item]
    levels: list[Item]
    bottlenecks: list[Item]
    relations: list[Item]
    evidence: list[Item]
    sources: list[Item]
    work_by_id: dict[int, Item] = field(default_factory=dict)
    work_by_slug: dict[str, Item] = field(default_factory=dict)
    technique_by_slug: dict[str, Item] = field(default_factory=dict)
    level_by_path: dict[tuple[str, str], Item] = field(default_factory=dict)
    bottleneck_by_slug: dict[str, Item] = field(default_factory=dict)
    work_aliases: dict[str, str] = field(default_factory=dict)
    technique_aliases: dict[str, str] = field(default_factory=dict)
    evidence_by_technique: dict[str, list[Item]] = field(default_factory=dict)
    evidence_by_work: dict[int, list[Item]] = field(default_factory=dict)
    citations: list[Item] = field(default_factory=list)
    cited_by: dict[int, list[Item]] = field(default_factory=dict)
    cites: dict[int, list[Item]] = field(default_factory=dict)

    def work(self, ident: str) -> tuple[Item | None, str]:
        """A work by slug, arXiv id, DOI, URL or an absorbed slug; with its canonical slug."""
        slug = self.work_aliases.get(work_key(ident), "")
        return self.work_by_slug.get(slug), slug

    def technique(self, ident: str) -> tuple[Item | None, str]:
        slug = self.technique_aliases.get(plain(ident), "")
        return self.technique_by_slug.get(slug), slug

    def near_works(self, ident: str, count: int = 3) -> list[Item]:
        keys = difflib.get_close_matches(
            work_key(ident)[:120], list(self.work_aliases), n=count * 3, cutoff=0.5
        )
        slugs = list(dict.fromkeys(self.work_aliases[key] for key in keys))
        return [self.work_by_slug[slug] for slug in slugs[:count]]

    def near_techniques(self, ident: str, count: int = 3) -> list[Item]:
        keys = difflib.get_close_matches(
            plain(ident)[:120], list(self.technique_aliases), n=count * 3, cutoff=0.5
        )
        slugs = list(dict.fromkeys(self.technique_aliases[key] for key in keys))
        return [self.technique_by_slug[slug] for slug in slugs[:count]]


def plain(text: str) -> str:
    """A name without case, spaces and punctuation: `LLM.int8()` → `llmint8`, `QuIP#` → `quip`."""
    return "".join(character for character in text.casefold() if character.isalnum())


def work_key(ident: str) -> str:
    """One spelling for slugs, arXiv ids (any prefix or version), DOIs and URLs."""
    text = ident.strip().casefold()
    for prefix in ("https://", "http://"):
        text = text.removeprefix(prefix)
    for prefix in ("www.", "doi.org/", "dx.doi.org/", "arxiv.org/abs/", "arxiv.org/pdf/", "arxiv:", "doi:"):
        text = text.removeprefix(prefix)
    text = text.removesuffix(".pdf").rstrip("/")
    head, mark, version = text.rpartition("v")
    if mark and version.isdigit() and head[:4].isdigit() and "." in head:
        text = head
    return text


def build_snapshot(version: str, tables: dict[str, list[Item]]) -> Snapshot:
    """Links the tables up; pure, so that tests can feed it rows."""
    works, techniques, evidence = tables["works"], tables["techniques"], tables["evidence"]
    snapshot = Snapshot(
        version=version,
        works=works,
        techniques=techniques,
        surveys=tables["surveys"],
        levels=tables["levels"],
        bottlenecks=tables["bottlenecks"],
        relations=tables["relations"],
        evidence=evidence,
        sources=tables["sources"],
        work_by_id={work["id"]: work for work in works},
        work_by_slug={work["slug"]: work for work in works},
        technique_by_slug={technique["slug"]: technique for technique in techniques},
        level_by_path={(level["scheme"], level["path"]): level for level in tables["levels"]},
        bottleneck_by_slug={each["slug"]: each for each in tables["bottlenecks"]},
        evidence_by_technique=grouped(evidence, "technique"),
        evidence_by_work=grouped([row for row in evidence if row["work_id"] is not None], "work_id"),
        citations=tables["citations"],
        cites=grouped(tables["citations"], "citing_id"),
        cited_by=grouped(tables["citations"], "cited_id"),
    )
    link_techniques(snapshot, tables)
    link_works(snapshot)
    link_aliases(snapshot, tables)
    return snapshot


def grouped(rows: list[Item], name: str) -> dict[Any, list[Item]]:
    groups: dict[Any, list[Item]] = defaultdict(list)
    for row in rows:
        groups[row[name]].append(row)
    return dict(groups)


def link_techniques(snapshot: Snapshot, tables: dict[str, list[Item]]) -> None:
    levels = grouped(tables["technique_levels"], "technique")
    bottlenecks = grouped(tables["technique_bottlenecks"], "technique")
    works = grouped(tables["technique_works"], "technique")
    for technique in snapshot.techniques:
        slug = technique["slug"]
        by_scheme: dict[str, list[str]] = {}
        for row in levels.get(slug, []):
            by_scheme.setdefault(row["scheme"], []).append(row["path"])
        technique["levels"] = by_scheme
        technique["level_basis"] = {row["scheme"]: row["basis"] for row in levels.get(slug, [])}
        technique["bottlenecks"] = [row["bottleneck"] for row in bottlenecks.get(slug, [])]
        technique["bottleneck_names"] = [
            snapshot.bottleneck_by_slug[each]["name"] for each in technique["bottlenecks"]
        ]
        technique["work_links"] = [
            {"role": row["role"], "work": snapshot.work_by_id[row["work_id"]]}
            for row in works.get(slug, [])
            if row["work_id"] in snapshot.work_by_id
        ]
        data = technique["data"] or {}
        names = [
            technique["name"],
            slug,
            technique["mechanism"],
            *(data.get("aliases") or []),
            technique["summary"],
        ]
        technique["haystack"] = plain(" ".join(names))
        technique["evidence_count"] = len(snapshot.evidence_by_technique.get(slug, []))
        technique["engines"] = list(data.get("engines") or [])
        technique["engine_slugs"] = [
            engine["engine"] for engine in technique["engines"] if engine.get("engine")
        ]


def link_works(snapshot: Snapshot) -> None:
    survey_of_work = {survey["work_id"]: survey["slug"] for survey in snapshot.surveys}
    for work in snapshot.works:
        work["cited_in"] = [
            {"survey": survey_of_work[row["citing_id"]], "number": row["number"], "page": row["page"]}
            for row in snapshot.cited_by.get(work["id"], [])
            if row["citing_id"] in survey_of_work
        ]
        work["surveys"] = sorted({row["survey"] for row in work["cited_in"]})
        work["technique_links"] = []
        work["evidence_count"] = len(snapshot.evidence_by_work.get(work["id"], []))
        work["is_survey"] = survey_of_work.get(work["id"], "")
    for technique in snapshot.techniques:
        for entry in technique["work_links"]:
            entry["work"]["technique_links"].append({"role": entry["role"], "technique": technique})
    for work in snapshot.works:
        techniques = [entry["technique"] for entry in work["technique_links"]]
        work["levels"] = merged_levels(techniques)
        work["bottlenecks"] = list(dict.fromkeys(slug for each in techniques for slug in each["bottlenecks"]))


def merged_levels(techniques: list[Item]) -> dict[str, list[str]]:
    levels: dict[str, list[str]] = {}
    for technique in techniques:
        for scheme, paths in technique["levels"].items():
            known = levels.setdefault(scheme, [])
            known += [path for path in paths if path not in known]
    return levels


def link_aliases(snapshot: Snapshot, tables: dict[str, list[Item]]) -> None:
    """Own slugs win over identifiers, identifiers over absorbed slugs."""
    aliases: dict[str, str] = {}
    for row in tables["merges"]:
        if row["kept"] in snapshot.work_by_slug:
            aliases[work_key(row["absorbed"])] = row["kept"]
    for row in tables["identifiers"]:
        if row["work_id"] in snapshot.work_by_id:
            aliases[work_key(row["value"])] = snapshot.work_by_id[row["work_id"]]["slug"]
    for work in snapshot.works:
        for value in (work["arxiv_id"], work["doi"]):
            if value:
                aliases[work_key(value)] = work["slug"]
    for work in snapshot.works:
        aliases[work_key(work["slug"])] = work["slug"]
    snapshot.work_aliases = aliases
    names: dict[str, str] = {}
    for technique in snapshot.techniques:
        for alias in (technique["data"] or {}).get("aliases") or []:
            names.setdefault(plain(alias), technique["slug"])
    for technique in snapshot.techniques:
        names.setdefault(plain(technique["name"]), technique["slug"])
    for technique in snapshot.techniques:
        names[plain(technique["slug"])] = technique["slug"]
    snapshot.technique_aliases = names

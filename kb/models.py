"""Every table of the knowledge base.

Literature. A `Record` is one reference or entry as one source states it and never changes. A `Work` is a set of
records; its own columns are a deterministic function of that set (ingest/resolve.py), so merging and undoing a
merge only move records, order of ingestion cannot matter, and "who says so" is always a record.

No `from __future__ import annotations` here: SQLModel needs real annotations. `table=True` classes do not
validate; writers call `Model.model_validate(row)`.
"""

from sqlalchemy import JSON, Column, Index, Text, UniqueConstraint
from sqlmodel import Field, SQLModel

PACKAGED = "packaged"
USER = "user"


class Meta(SQLModel, table=True):
    """Key and value: schema_version, data_version (hash of the packaged data) …"""

    key: str = Field(primary_key=True)
    value: str


class Source(SQLModel, table=True):
    """Where records come from: a survey, a file, a provider's answer, a curated decision."""

    id: int | None = Field(default=None, primary_key=True)
    slug: str = Field(index=True, unique=True)
    kind: str  # survey | crossref | bibtex | ris | csl-json | arxiv | openalex | s2 | curated | catalogue
    title: str
    locator: str = ""  # URL, DOI or file name
    retrieved_at: str = ""  # ISO 8601
    sha256: str = ""
    origin: str = Field(default=PACKAGED, index=True)


class Work(SQLModel, table=True):
    """One work: a paper with all its versions, a book, a piece of software, a web page.

    Identifiers are looked up in the Identifier table; an index here would only slow writing, as would one on
    columns with few values (year, kind, role, origin).
    """

    id: int | None = Field(default=None, primary_key=True)
    slug: str = Field(index=True, unique=True)
    title: str
    title_key: str = Field(default="", index=True)
    authors: list = Field(
        default_factory=list, sa_column=Column(JSON, nullable=False)
    )  # [{"family","given"}]
    first_author: str = ""
    authors_truncated: bool = False  # "et al."
    year: int | None = None
    venue: str = ""
    kind: str = "paper"  # paper | book | software | website | product
    arxiv_id: str | None = None
    doi: str | None = None
    url: str | None = None
    url_key: str = Field(default="", index=True)
    authors_key: str = Field(default="", index=True)  # folded family names of the first three authors
    status: str = ""  # "retracted" or "withdrawn", never part of the title
    abstract: str = Field(default="", sa_column=Column(Text, nullable=False))
    role: str = ""  # technique | survey | model | benchmark | system | background
    role_reason: str = ""
    survey_count: int = 0  # how many surveys cite it
    origin: str = PACKAGED


class Record(SQLModel, table=True):
    """One reference or entry as one source states it."""

    __table_args__ = (
        UniqueConstraint("source_id", "locator"),
        Index("ix_record_work_signature", "work_id", "signature"),
    )

    id: int | None = Field(default=None, primary_key=True)
    source_id: int = Field(foreign_key="source.id")
    locator: str  # "27": the number in the survey's list, or the entry's key
    position: int = 0
    method: str = ""  # how it was read: "reference string", "crossref fields", "curated"
    retrieved_at: str = ""
    fields: dict = Field(default_factory=dict, sa_column=Column(JSON, nullable=False))  # a Reference as JSON
    signature: str = Field(
        default="", index=True
    )  # hash of what matters for identity and for the work's fields
    work_id: int | None = Field(default=None, foreign_key="work.id")
    origin: str = PACKAGED


class Identifier(SQLModel, table=True):
    """Every identifier that any record states, and the keys (scheme "title") through which records are matched."""

    __table_args__ = (
        UniqueConstraint("scheme", "value", "record_id"),
    )  # also the look-up by scheme and value

    id: int | None = Field(default=None, primary_key=True)
    scheme: str  # arxiv | doi | url | openalex | s2 | title
    value: str
    record_id: int = Field(foreign_key="record.id", index=True)
    work_id: int = Field(foreign_key="work.id", index=True)


class Citation(SQLModel, table=True):
    """`citing` lists `cited` as its reference `number`; stated by `record`.

    Both works follow from the records: `citing_id` is the work of `citing_record_id`, `cited_id` that of `record_id`.
    """

    __table_args__ = (UniqueConstraint("citing_record_id", "record_id"),)

    id: int | None = Field(default=None, primary_key=True)
    citing_record_id: int = Field(foreign_key="record.id", index=True)
    citing_id: int = Field(foreign_key="work.id", index=True)
    cited_id: int = Field(foreign_key="work.id", index=True)
    record_id: int = Field(foreign_key="record.id", index=True)
    number: int | None = None
    page: str = ""
    origin: str = PACKAGED


class Decision(SQLModel, table=True):
    """Same or different, said by somebody; or proposed by similarity and waiting for a person."""

    id: int | None = Field(default=None, primary_key=True)
    kind: str  # same | different | field
    a: str = Field(index=True)  # "zhou:27" (source:locator) or a work slug
    b: str = ""
    status: str = Field(default="proposed", index=True)  # proposed | accepted | rejected
    basis: str = ""
    score: float | None = None
    source: str = ""
    made_at: str = ""
    data: dict = Field(default_factory=dict, sa_column=Column(JSON, nullable=False))
    origin: str = Field(default=PACKAGED, index=True)


class MergeLog(SQLModel, table=True):
    """What a merge moved, so that it can be undone exactly."""

    id: int | None = Field(default=None, primary_key=True)
    kept: str
    absorbed: str
    made_at: str
    undone_at: str = ""
    data: dict = Field(default_factory=dict, sa_column=Column(JSON, nullable=False))
    origin: str = USER


class Survey(SQLModel, table=True):
    slug: str = Field(primary_key=True)  # zhou | yuan | park
    work_id: int = Field(foreign_key="work.id")
    name: str
    reference_count: int = 0


class Level(SQLModel, table=True):
    __table_args__ = (UniqueConstraint("scheme", "path"),)

    id: int | None = Field(default=None, primary_key=True)
    scheme: str = Field(index=True)
    path: str = Field(index=True)
    parent: str | None = None
    name: str
    description: str = ""
    basis: str = "survey"
    position: int = 0


class Bottleneck(SQLModel, table=True):
    slug: str = Field(primary_key=True)
    name: str
    description: str = ""
    position: int = 0


class Technique(SQLModel, table=True):
    """Facet columns for queries; the whole declaration as JSON for the recommender."""

    slug: str = Field(primary_key=True)
    name: str
    summary: str
    kind: str = Field(index=True)
    mechanism: str = Field(index=True)
    phase: str = Field(index=True)
    training: str = Field(index=True)
    lossless: str = Field(index=True)
    year: int | None = Field(default=None, index=True)
    data: dict = Field(
        default_factory=dict, sa_column=Column(JSON, nullable=False)
    )  # taxonomy.Technique as JSON


class TechniqueLevel(SQLModel, table=True):
    __table_args__ = (UniqueConstraint("technique", "scheme", "path"),)

    id: int | None = Field(default=None, primary_key=True)
    technique: str = Field(foreign_key="technique.slug", index=True)
    scheme: str = Field(index=True)
    path: str = Field(index=True)
    basis: str = "survey"


class TechniqueBottleneck(SQLModel, table=True):
    technique: str = Field(foreign_key="technique.slug", primary_key=True)
    bottleneck: str = Field(foreign_key="bottleneck.slug", primary_key=True)


class TechniqueWork(SQLModel, table=True):
    __table_args__ = (UniqueConstraint("technique", "work_id", "role"),)

    id: int | None = Field(default=None, primary_key=True)
    technique: str = Field(foreign_key="technique.slug", index=True)
    work_id: int = Field(foreign_key="work.id", index=True)
    role: str = "introduces"


class Relation(SQLModel, table=True):
    id: int | None = Field(default=None, primary_key=True)
    a: str = Field(index=True)
    b: str = Field(index=True)
    kind: str
    condition: str = ""
    source: str = ""
    basis: str = ""


class Evidence(SQLModel, table=True):
    """One reported figure with its conditions; the columns of shared/effects/effects.csv."""

    id: str = Field(primary_key=True)  # "E0001"
    technique: str = Field(index=True)
    work_id: int | None = Field(default=None, foreign_key="work.id", index=True)
    paper_title: str = ""
    arxiv_id: str = ""
    year: int | None = None
    metric: str = Field(index=True)
    value: float
    value_hi: float | None = None
    value_kind: str = "point"
    unit: str = ""
    level: str = ""
    baseline: str = ""
    model: str = ""
    hardware: str = ""
    n_devices: int | None = None
    batch: str = ""
    input_tokens: str = ""
    output_tokens: str = ""
    config: str = ""
    source: str = ""
    locator: str = ""
    confidence: str = ""
    conditions_confidence: str = ""
    score: bool = False
    score_reason: str = ""
    suspect: bool = False
    notes: str = ""

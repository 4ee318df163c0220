"""Packaged data → database: deterministic, one transaction, user rows kept."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from kb.db import DataVersion

if TYPE_CHECKING:
    from sqlmodel import Session

PACKAGES = ("costmodel", "ingest", "taxonomy")


def data_files() -> Iterator[tuple[str, Path]]:
    """Every packaged data file, sorted by package and path."""
    for package in PACKAGES:
        root = Path(str(resources.files(package))) / "data"
        for path in sorted(root.rglob("*")):
            if path.is_file():
                yield f"{package}/{path.relative_to(root).as_posix()}", path


def code_files() -> Iterator[tuple[str, Path]]:
    """The modules whose change may alter what is built from the same data."""
    for package, pattern in (
        ("ingest", "*.py"),
        ("kb", "models.py"),
        ("kb", "search*.py"),
        ("taxonomy", "*.py"),
    ):
        root = Path(str(resources.files(package)))
        for path in sorted(root.glob(pattern)):
            yield f"{package}/{path.name}", path


def all_files() -> list[tuple[str, Path]]:
    return [*data_files(), *code_files()]


def data_stamp() -> str:
    """A cheap fingerprint: names, sizes and modification times."""
    digest = hashlib.sha256()
    for name, path in all_files():
        state = path.stat()
        digest.update(f"{name}:{state.st_size}:{state.st_mtime_ns}\n".encode())
    return digest.hexdigest()[:32]


def data_digest() -> str:
    """The content's fingerprint: the same bytes give the same value on every machine."""
    digest = hashlib.sha256()
    for name, path in all_files():
        digest.update(name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def data_version() -> DataVersion:
    return DataVersion(stamp=data_stamp(), digest=data_digest)


def build(session: Session) -> None:
    """Fills the database from packaged data, replacing packaged rows and keeping the user's."""
    from ingest.catalogue import load_catalogue
    from ingest.literature import load_surveys
    from ingest.roles import load_roles
    from kb.models import Meta
    from kb.search import rebuild

    own = session.get(Meta, "packaged")
    if own is not None and own.value == "no":  # made by `kb db init --empty`: only what the user ingests
        rebuild(session, extra_documents())
        return
    load_surveys(session)
    load_catalogue(session)
    load_roles(session)
    rebuild(session, extra_documents())


def build_empty(session: Session) -> None:
    """A database without the packaged literature and techniques, for a library of one's own."""
    from kb.models import Meta

    session.merge(Meta(key="packaged", value="no"))
    session.flush()
    build(session)


def extra_documents() -> list[dict[str, object]]:
    """Models and hardware for the search index; they live in the cost model's catalogues, not in tables."""
    from costmodel.catalogue import all_hardware, all_models, short_names

    documents: list[dict[str, object]] = []
    models, devices = short_names("model"), short_names("hardware")
    for model in all_models().values():
        documents.append(
            {
                "type": "model",
                "id": model.slug,
                "title": model.name,
                "aliases": models.get(model.slug, []),
                "body": f"{model.family} {model.hf_id} {model.attention} {'mixture of experts' if model.is_moe else 'dense'}",
                "year": None,
            }
        )
    for device in all_hardware().values():
        documents.append(
            {
                "type": "hardware",
                "id": device.slug,
                "title": device.name,
                "aliases": devices.get(device.slug, []),
                "body": f"{device.vendor} {device.device_class} {device.architecture}",
                "year": device.launch_year,
            }
        )
    return documents

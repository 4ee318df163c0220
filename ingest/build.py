"""Packaged data → database: deterministic, one transaction, user rows kept."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from kb.db import DataVersion

if TYPE_CHECKING:
    from sqlmodel import Session

Entry = os.DirEntry[str]

ROOT = Path(__file__).parent.parent
DATA = ("costmodel", "ingest", "taxonomy")
# The modules whose change may alter what is built from the same data: folder, how their names begin.
CODE = (("ingest", ""), ("kb", "models.py"), ("kb", "search"), ("taxonomy", ""))


def entries(folder: str) -> Iterator[tuple[str, Entry]]:
    """Every file under a folder with its name."""
    with os.scandir(ROOT / folder) as found:
        for entry in found:
            name = f"{folder}/{entry.name}"
            if entry.is_dir():
                yield from entries(name)
            elif entry.is_file():
                yield name, entry


def modules(folder: str, begin: str) -> Iterator[tuple[str, Entry]]:
    with os.scandir(ROOT / folder) as found:
        for entry in found:
            if entry.name.startswith(begin) and entry.name.endswith(".py"):
                yield f"{folder}/{entry.name}", entry


def all_files() -> dict[str, Entry]:
    """Packaged data and the modules that read them, by name."""
    found: dict[str, Entry] = {}
    for package in DATA:
        found.update(entries(f"{package}/data"))
    for folder, begin in CODE:
        found.update(modules(folder, begin))
    return dict(sorted(found.items()))


def data_stamp() -> str:
    """A cheap fingerprint: names, sizes and modification times.

    Every command makes it; hashlib's import would take as long as all the rest.
    """
    states = [(name, entry.stat()) for name, entry in all_files().items()]
    text = "\n".join(f"{name}:{state.st_size}:{state.st_mtime_ns}" for name, state in states)
    total, latest = sum(state.st_size for _, state in states), max(state.st_mtime_ns for _, state in states)
    return f"{total:x}-{latest:x}-{zlib.crc32(text.encode()):08x}"


def data_digest() -> str:
    """The content's fingerprint: the same bytes give the same value on every machine."""
    import hashlib

    digest = hashlib.sha256()
    for name, entry in all_files().items():
        digest.update(name.encode() + b"\0" + Path(entry).read_bytes() + b"\0")
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

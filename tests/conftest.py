"""Fixtures shared by all tests."""

import pytest


@pytest.fixture(scope="session")
def database(tmp_path_factory):
    """The path of a database built once from packaged data."""
    from ingest.build import build, data_version
    from kb.db import ensure

    path = tmp_path_factory.mktemp("kb") / "kb.sqlite"
    ensure(f"sqlite:///{path}", data_version(), build)
    return str(path)


@pytest.fixture
def reader(database):
    """A reader on the packaged database."""
    from kb.db import open_reader

    reader = open_reader(database)
    yield reader
    reader.close()

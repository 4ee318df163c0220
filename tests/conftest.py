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


@pytest.fixture(scope="session")
def application(database):
    """The web application over the packaged database."""
    from web.app import create_app

    return create_app(f"sqlite:///{database}", warm=False)


@pytest.fixture(scope="session")
def web(application):
    """A client of the web application; redirects are followed unless a test says otherwise."""
    from fastapi.testclient import TestClient

    with TestClient(application) as client:
        yield client


@pytest.fixture
def library(application):
    """The data behind the pages: snapshot and readers."""
    return application.state.library


def pytest_addoption(parser):
    parser.addoption("--browser", action="store_true", help="run the tests that drive a real Chromium")


def pytest_collection_modifyitems(config, items):
    """Tests marked `browser` need `--browser`; without it they are left out, not skipped one by one."""
    if config.getoption("--browser"):
        return
    left_out = [item for item in items if item.get_closest_marker("browser")]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]

"""The command line, REST and Python answer a question with the same numbers."""

from __future__ import annotations

import json
import os
import random

import pytest
from click.testing import CliRunner
from starlette.testclient import TestClient

from costmodel.catalogue import all_hardware, all_models
from kb.cli import cli
from kb.cli.scenario import FLAGS
from kb.db import open_reader
from recommender import soundness
from recommender.service import recommend
from web.app import create_app

COUNT = int(os.environ.get("KB_FACES_COUNT", "6"))  # 200 before a release
OWN_FLAGS = {"objective": "--objective", "max_training": "--max-training", "tpot_slo_ms": "--tpot-slo-ms"}


@pytest.fixture(scope="module")
def client(database):
    with TestClient(create_app(f"sqlite:///{database}", warm=False)) as found:
        yield found


def arguments(scenario):
    """The scenario as a person would type it."""
    spelled = {flag.field: flag.names[0] for flag in FLAGS} | OWN_FLAGS
    found = ["recommend"]
    for name, value in scenario.items():
        if name == "lossless":
            found += ["--lossless"] if value else []
        elif name == "using":
            found += ["--using", ",".join(value)]
        else:
            found += [spelled[name], str(value)]
    return found


def assert_faces_agree(scenario, client, database):
    reader = open_reader(database)
    python = json.loads(json.dumps(recommend(reader, scenario).as_dict()))
    reader.close()
    done = CliRunner().invoke(
        cli, [*arguments(scenario), "--json", "--quiet", "--db", f"sqlite:///{database}"]
    )
    assert done.exit_code == 0, done.output
    rest = client.post("/api/v1/recommend", json=scenario)
    assert rest.status_code == 200, rest.text
    for name, value in json.loads(done.stdout).items():
        assert python[name] == value, (name, scenario)
    for name, value in python.items():
        assert rest.json()[name] == value, (name, scenario)


@pytest.mark.parametrize("seed", range(COUNT))
def test_same_numbers(seed, client, database):
    scenario = soundness.random_scenario(
        random.Random(1000 + seed), sorted(all_hardware()), sorted(all_models())
    )
    assert_faces_agree(scenario, client, database)

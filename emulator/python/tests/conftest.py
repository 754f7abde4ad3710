"""What the tests share: a run of the quick start's program, made by the package itself."""

import os
import pathlib

import matplotlib
import pytest

import tipsim

matplotlib.use("Agg")

SPEC = """
name = "small"

[guest]
image = "minimal"
memory = "256M"

[run]
boot = "functional"
command = "quickstart 4"
region = "command"

[record]
trace = true
stages = true

[[sampler]]
profiler = "all"
period = [199, 1009]

[[sampler]]
profiler = "tip"
period = 199
mode = "random"
"""


@pytest.fixture(scope="session")
def binary():
    return os.environ["TIPSIM"]


@pytest.fixture(scope="session")
def run(tmp_path_factory, binary):
    folder = tmp_path_factory.mktemp("run")
    (folder / "small.toml").write_text(SPEC)
    return tipsim.run(folder / "small.toml", folder / "small")


@pytest.fixture(scope="session")
def python_folder():
    return pathlib.Path(__file__).resolve().parents[1]

"""The reports to print, by name (pytest's importlib mode lets no test import a neighbour)."""

import importlib.util
from pathlib import Path

import pytest

HERE = Path(__file__).parent


def _load():
    spec = importlib.util.spec_from_file_location("ddplint_test_reports", HERE / "reports.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def reports():
    return _load()


@pytest.fixture(scope="session")
def here() -> Path:
    return HERE

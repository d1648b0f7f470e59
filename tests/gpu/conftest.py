"""Tests that need a GPU: each says how many. They are skipped, with the reason, where there are fewer."""

from pathlib import Path

import pytest
import torch

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    found = torch.cuda.device_count() if torch.cuda.is_available() else 0
    for item in (item for item in items if HERE in item.path.parents):
        marker = item.get_closest_marker("gpus")
        needed = marker.args[0] if marker else 1
        item.add_marker(pytest.mark.gpu)
        if found < needed:
            item.add_marker(pytest.mark.skip(reason=f"needs {needed} GPU{'s' if needed > 1 else ''}, found {found}"))

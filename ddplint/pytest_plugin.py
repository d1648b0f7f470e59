"""The pytest fixture ``ddplint``: a lint as a test, which fails with the report as its message.

    def test_ddp(ddplint):
        ddplint("+model=my_model", "+scenario=typical")
"""

import contextlib
import io
from collections.abc import Callable

import pytest


@pytest.fixture(name="ddplint")
def ddplint_fixture() -> Callable[..., str]:
    """Called with the overrides of a command line; returns the report's text."""
    return lint


def lint(*overrides: str) -> str:
    """Lint in this process (the ranks are others); the test fails where the exit status is not 0."""
    __tracebackhide__ = True
    from ddplint import cli
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = cli.main(list(overrides))
    if status:
        command = " ".join(["ddplint", *overrides])
        pytest.fail(f"{command} ended with exit status {status}\n{err.getvalue()}{out.getvalue()}", pytrace=False)
    return out.getvalue()

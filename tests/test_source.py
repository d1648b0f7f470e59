"""Whose file is it?"""

import sys
import types

import pytest

from ddplint.record.source import is_own_file, is_user_file, set_folder


@pytest.mark.parametrize(("module", "users"), [("yaml.written_at_run_time", False), ("my_package.written_at_run_time", True), ("alone", True)])
def test_what_an_installed_library_writes_while_it_runs_is_not_the_users(module, users, tmp_path, monkeypatch):
    """As torch_geometric does, into the folder for temporary files."""
    import yaml
    assert "site-packages" in yaml.__file__
    file = str(tmp_path / "written.py")
    monkeypatch.setitem(sys.modules, module, types.SimpleNamespace(__file__=file))
    set_folder("/nowhere")
    assert (is_user_file(file), is_own_file(file)) == (users, users)

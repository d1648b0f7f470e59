"""The example projects: the commands in their own READMEs, typed in their own folders, end as those say."""

import importlib.util
import re
import shutil
from pathlib import Path

import pytest

PROJECTS = Path(__file__).resolve().parent.parent / "examples" / "projects"
COMMAND = re.compile(r"^ddplint(.*?)\s+# exit status (\d)", re.MULTILINE)
COMMANDS = [pytest.param(readme.parent, argv.split(), int(status), id=f"{readme.parent.name}{argv.rstrip()}")
            for readme in sorted(PROJECTS.glob("*/README.md")) for argv, status in COMMAND.findall(readme.read_text())]
NEEDS = {"lightning_template": "lightning", "hugging_face_script": "transformers"}
FOUND = {
    "plain_hydra": ["towers.py:17: error [rank-divergent-usage] words, text", "`text is not None` does not hold",
                    "(scenario one_rank_without_text;", "towers.py:17: error [unused-parameter] words, text", "(scenario pictures_only;"],
    "lightning_template": ["error [unused-parameter] net.projection", "src/models/digits_module.py"],
    "hugging_face_script": ["error [unused-parameter] bert.pooler", "ddp: DDP ran all 2 scenarios"],
}


def test_every_project_has_two_commands():
    assert [command.values[2] for command in COMMANDS] == [1, 0] * 3


@pytest.mark.parametrize(("folder", "argv", "status"), COMMANDS)
def test_a_command(project, monkeypatch, folder, argv, status):
    if (name := NEEDS.get(folder.name)) and importlib.util.find_spec(name) is None:
        pytest.skip(f"{name} is not installed")
    monkeypatch.delenv("PROJECT_ROOT", raising=False)
    shutil.copytree(folder, project.folder, dirs_exist_ok=True)
    before = project.files()
    ended = project.ddplint(*argv)
    assert (ended.status, ended.err) == (status, "")
    assert [text for text in FOUND[folder.name] if status and text not in ended.out] == []
    assert "error [" not in ended.out or status
    assert project.files() == before

"""The README is true: its transcripts, its project of two files, its YAML. After a change that is meant:
``python tests/test_readme.py`` writes the transcripts anew."""

import contextlib
import io
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from junitparser import JUnitXml

from ddplint.cli import main
from ddplint.compose import parse
from ddplint.rules import catalogue
from tests.excerpts import assert_shown, command, excerpts

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
TRANSCRIPT = re.compile(r"(<!-- transcript: (.*?) -->\n```text\n)(.*?)(```)", re.DOTALL)
NAMED = re.compile(r"^`([\w./-]+)`:\n\n```\w+\n(.*?)```", re.DOTALL | re.MULTILINE)
FILES = dict(NAMED.findall(README.read_text()))
YAML = re.compile(r"```yaml\n(.*?)```", re.DOTALL)


def transcript(command: str) -> str:
    """What a terminal of 80 columns without colour shows, run in the clone."""
    import ddplint.render
    shown, show = [], ddplint.render.show
    ddplint.render.show = lambda report, options: shown.append(ddplint.render.render(report, "terminal"))
    try:
        with contextlib.chdir(ROOT), contextlib.redirect_stderr(io.StringIO()) as err:
            main(command.split())
    finally:
        ddplint.render.show = show
    assert err.getvalue() == ""
    return shown[0]


@pytest.mark.parametrize("match", list(TRANSCRIPT.finditer(README.read_text())), ids=lambda match: match[2])
def test_a_transcript(match):
    assert transcript(match[2]).rstrip() == match[3].rstrip()


def test_the_project_of_two_files(project):
    write_files(project)
    ended = project.ddplint("+model=mine", "+rules.wide={_target_: house.wide_enough, least: 11}")
    assert ended.status == 1
    assert "error [unused-parameter] aux" in ended.out and "net.py:11" in ended.out
    assert "10 is less than 11" in ended.out
    assert len(FILES["configs/model/mine.yaml"].splitlines()) == 5


SECTIONS = {"Several machines": "test_hosts.py", "GPUs": "test_devices.py", "During training": "test_monitor.py",
            "Inputs that nobody thought of": "test_explore.py", "Remedies, tried": "test_remedies.py",
            "What a flag costs": "test_cost.py", "Against one process": "test_readme.py"}


def test_what_goes_further_than_a_launch_is_short_and_shown_by_a_test():
    text = README.read_text()
    bodies = {title: text.split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0] for title in SECTIONS}
    assert {title: len([line for line in body.splitlines() if line]) for title, body in bodies.items()
            if len([line for line in body.splitlines() if line]) > 15} == {}
    assert {title: file for title, body in bodies.items() for file in excerpts() if f"excerpt: {file}" in body} == SECTIONS
    assert [file for file in excerpts() if "assert_shown(__file__," not in (ROOT / "tests" / file).read_text()] == []


@pytest.mark.slow
def test_the_gradient_against_one_process(project):
    assert_shown(__file__, project.ddplint(*command(__file__), "run.device=cpu").out)


def write_files(project):
    for path, text in FILES.items():
        project.write(path, text)


# Pipelines: their command lines are run against the project of two files, in which there is something to find.

def run_lines(project, lines, **environment):
    """The statuses of shell lines, and all that they print; ddplint and pip are those of this Python."""
    write_files(project)
    project.write("requirements.txt", "ddplint\n")
    own = {**project.environment(), "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}", **environment}
    ended = [subprocess.run(["bash", "-ec", line], cwd=project.folder, env=own, capture_output=True, text=True, timeout=300)
             for line in lines]
    return [one.returncode for one in ended], "".join(one.stdout + one.stderr for one in ended)


def test_the_github_workflow(project):
    workflow = yaml.safe_load(FILES[".github/workflows/ddplint.yml"])
    assert workflow[True] == ["push", "pull_request"]           # YAML 1.1 reads ``on`` so
    assert workflow["permissions"]["security-events"] == "write"
    [job] = workflow["jobs"].values()
    assert job["runs-on"] == "ubuntu-latest"
    assert all(("run" in step) != ("uses" in step) for step in job["steps"])
    assert all(re.fullmatch(r"[\w-]+/[\w/-]+@v\d+", step["uses"]) for step in job["steps"] if "uses" in step)
    summary = project.folder / "summary.md"
    statuses, printed = run_lines(project, [step["run"] for step in job["steps"] if "run" in step],
                                  GITHUB_ACTIONS="true", GITHUB_STEP_SUMMARY=str(summary))
    assert statuses == [0, 1] and "::error file=net.py,line=" in printed
    assert summary.read_text().startswith("## ddplint: FAIL")
    upload = job["steps"][-1]
    assert upload["if"] == "always()"
    [result] = json.loads((project.folder / upload["with"]["sarif_file"]).read_text())["runs"][0]["results"]
    assert result["ruleId"] == "unused-parameter"


def test_the_gitlab_pipeline(project):
    job = yaml.safe_load(FILES[".gitlab-ci.yml"])["ddplint"]
    statuses, _ = run_lines(project, job["script"])
    assert statuses == [0, 1] and job["artifacts"]["when"] == "always"
    files = job["artifacts"]["reports"]
    [quality] = json.loads((project.folder / files["codequality"]).read_text())
    assert (quality["check_name"], quality["location"]["path"]) == ("unused-parameter", "net.py")
    assert sum(suite.failures for suite in JUnitXml.fromfile(str(project.folder / files["junit"]))) > 0


def test_the_hook_before_a_push(project):
    [repository] = yaml.safe_load(FILES[".pre-commit-config.yaml"])["repos"]
    [hook] = repository["hooks"]
    assert (repository["repo"], hook["language"], hook["pass_filenames"]) == ("local", "system", False)
    assert set(hook) == {"id", "name", "entry", "language", "files", "pass_filenames", "stages"}
    assert hook["stages"] == ["pre-push"]
    assert all(re.search(hook["files"], file) for file in ("net.py", "configs/model/mine.yaml"))
    statuses, printed = run_lines(project, [shlex.join(shlex.split(hook["entry"]))])
    assert statuses == [1] and "error [unused-parameter] aux" in printed


def test_the_test_in_pytest(project):
    statuses, printed = run_lines(project, [f"{shlex.quote(sys.executable)} -m pytest -q -p no:cacheprovider test_ddp.py"])
    assert statuses == [1] and "error [unused-parameter] aux" in printed and "1 failed" in printed


@pytest.mark.parametrize("text", [text for text in YAML.findall(README.read_text())
                                  if text not in (FILES[path] for path in FILES if path.startswith("."))],
                         ids=lambda text: text.split("\n")[0])
def test_every_snippet_of_a_spec_is_one(text):
    sections = yaml.safe_load(text)
    least = {"model": {"_target_": "a.b"}, "scenario": {"a": {"file": "a.pt"}}}
    late = sections.get("scenario", {}).get("late")
    if late:
        late["batch"] = sections["scenario"]["described"]["batch"]      # what the interpolation stands for
    parse({**least, **sections}, folder=".", installed=catalogue())


def test_every_option_of_a_report_is_named():
    from ddplint.compose.judgement import FORMATS
    assert [name for name in FORMATS if f"`report.{name}" not in README.read_text()] == []


if __name__ == "__main__":
    os.environ.pop("CI", None)
    fresh = TRANSCRIPT.sub(lambda match: match[1] + transcript(match[2]).rstrip() + "\n" + match[4], README.read_text())
    README.write_text(fresh)
    sys.exit(0)

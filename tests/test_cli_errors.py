"""What a user can get wrong on the command line or in a file: exact words, status 2, nothing run, no traceback."""

from pathlib import Path

import pytest

CONFIGS = Path(__file__).resolve().parent.parent / "configs"
HEAD = "# @package _global_\nmodel: {_target_: net.Net}\n"
A = "a: {batch: {x: {shape: [2, 3]}}}\n"


def every(group: str, *own: str) -> str:
    """The names of a shipped group and the user's own, as a message lists them."""
    return ", ".join(sorted([*own, *(file.stem for file in (CONFIGS / group).glob("*.yaml"))]))


def first(group: str, *own: str) -> str:
    names = every(group, *own).split(", ")
    return ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")


@pytest.fixture
def mine(project, specs):
    project.write("configs/model/mine.yaml", HEAD)
    project.write("configs/scenario/a.yaml", A)
    return project


def complaint(ended) -> str:
    """The one message of a run that could not judge."""
    assert (ended.status, ended.out) == (2, "")
    assert "Traceback" not in ended.err
    first, _, rest = ended.err.partition("ddplint: error: ")
    assert first == ""
    return rest.removesuffix("\n")


@pytest.mark.parametrize(("argv", "message"), [
    (["+scenario=a"], f"no model; +model=NAME, one of {every('model', 'mine')}"),
    (["+model=mine"], f"no scenario; +scenario=NAME, one of {every('scenario', 'a')}"),
    (["+model=mien"], "no model is called 'mien'; did you mean 'mine'? (searched ./configs, the shipped configs)"),
    (["+model=mine", "+scenario=zzz"], f"no scenario is called 'zzz'; one of {first('scenario', 'a')} "
                                       "(searched ./configs, the shipped configs)"),
    (["+modle=mine"], "unknown key 'modle'; did you mean 'model'?"),
    (["model=mine"], "Could not override 'model'. No match in the defaults list.\n  "
                     "To append to your default list use +model=mine"),
    (["+model=mine", "+scenario=a", "rnu.steps=2"], "rnu: no such key; did you mean 'run'?"),
    (["+model=mine", "+scenario=a", "run.stesp=2"], "run: unknown key 'stesp'; did you mean 'steps'?"),
    (["+model=mine", "+scenario=a", "model.width=2"], "model.width: no such key; +model.width=VALUE adds it"),
    (["+model=mine", "+scenario=a", "rules.zero-gradeint=off"],
     "rules: no rule is called 'zero-gradeint'; did you mean 'zero-gradient'?"),
    (["rulse"], "no command is called 'rulse'; did you mean 'ddplint rules'?"),
    (["evidence=nothing.json"], "nothing.json cannot be read (No such file or directory)"),
    (["evidence=3"], "evidence: expected a file, or a list of files"),
    (["evidence=configs"], "configs cannot be read (Is a directory)"),
    (["--config-dir", "nowhere", "+model=mine"], "Additional config directory 'nowhere' not found"),
])
def test_the_command_line(mine, specs, argv, message):
    said = complaint(mine.ddplint(*argv)).replace(str(mine.folder) + "/", "")
    assert (said, specs) == (message, [])


@pytest.mark.parametrize(("text", "message"), [
    ("model:\n\t_target_: x\n", "configs/model/bad.yaml:2:1: not valid YAML: a tab; YAML is indented by spaces"),
    (b"\xff\xfe", "configs/model/bad.yaml: the file is not UTF-8 (byte 0); save it as UTF-8"),
    ("just text\n", "configs/model/bad.yaml: expected a mapping at the top of the file"),
    ("[]\n", "configs/model/bad.yaml: expected a mapping at the top of the file"),
    (HEAD + "model: {_target_: net.Net}\n", "configs/model/bad.yaml:3:1: not valid YAML: found duplicate key model"),
    (HEAD + "scenario:\n  a: {file: x}\n  a: {file: y}\n",
     "configs/model/bad.yaml:5:3: not valid YAML: found duplicate key a"),
    (HEAD + "loss: {terms: ${nope}}\n", "configs/model/bad.yaml:3:16: not valid YAML: expected ',' or '}', but got '{'; "
                                        'an interpolation between braces needs quotes: "${...}"'),
    (HEAD + "loss:\n  terms: ${nope}\n", "loss.terms: Interpolation key 'nope' not found"),
    (HEAD + "loss:\n  terms: ${other}\nother: ${loss.terms}\n", "loss.terms: Recursive interpolation detected"),
    (HEAD + "loss: ${loss}\n", "loss: Recursive interpolation detected"),
    (HEAD + "optimizer:\n  lr: ???\n", "optimizer.lr: a value is missing (???); optimizer.lr=VALUE gives it"),
    (HEAD + "defaults: [{/loss: nope}]\n", "model/bad.yaml: no loss is called 'nope'; one of multitask, "
                                           "multitask_complete (searched ./configs, the shipped configs)"),
    (HEAD + "defaults: 3\n", "Invalid defaults list in 'model/bad', defaults must be a list (got int)"),
    ("# @package a b c\n", "configs/model/bad.yaml: Too many components in '@package a b c'"),
    ("", f"no model; +model=NAME, one of {every('model', 'bad', 'mine')}"),
    ("a: &a {b: *a}\n", "configs/model/bad.yaml: an alias that contains itself"),
    ("a: " + "{a: " * 70 + "1" + "}" * 70, "configs/model/bad.yaml: is nested more than 60 deep"),
    ("a: " + "[" * 3000 + "]" * 3000, "configs/model/bad.yaml: is nested too deeply"),
    ("".join(f"k{i}: {i}\n" for i in range(100_000)), "configs/model/bad.yaml: the file has more than 250 kB; "
                                                      "keep data in a file of its own and name it by scenario.NAME.file"),
    ("a0: &a0 [1, 1, 1, 1]\n" + "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 12)),
     "configs/model/bad.yaml: more than 50000 values once its aliases are followed"),
])
def test_a_file(mine, specs, text, message):
    mine.write("configs/model/bad.yaml", text)
    assert (complaint(mine.ddplint("+model=bad", "+scenario=a")), specs) == (message, [])


def test_an_argument_that_does_not_exist(mine):
    ended = mine.ddplint("--bogus")
    assert (ended.status, ended.out) == (2, "")
    assert ended.err.endswith("ddplint: error: unrecognized arguments: --bogus\n")


def test_a_sweep_with_one_bad_job_judges_the_others_and_ends_with_2(mine, specs):
    ended = mine.ddplint("-m", "+model=mine", "+scenario=a", "run.steps=2,0")
    assert ended.status == 2
    assert ended.err == "ddplint: error: run.steps: expected a whole number of at least 1, found 0\n"
    assert [spec.run.steps for spec in specs] == [2]


def test_a_sweep_over_nothing_is_no_pass(mine):
    assert complaint(mine.ddplint("-m", "+model=mine", "+scenario=glob(nothing*)")).startswith("")


def test_the_traceback_is_shown_on_request(mine, monkeypatch):
    monkeypatch.setenv("HYDRA_FULL_ERROR", "1")
    ended = mine.ddplint("+model=mine")
    assert ended.status == 2
    assert ended.err.startswith("Traceback") and ended.err.splitlines()[-1].startswith("ddplint: error: no scenario")


def test_an_internal_error_is_one_line(mine, monkeypatch):
    def broken(spec):
        raise ZeroDivisionError("oops")
    monkeypatch.setattr("ddplint.cli._record", broken)
    said = complaint(mine.ddplint("+model=mine", "+scenario=a"))
    assert said == "internal error: ZeroDivisionError: oops; HYDRA_FULL_ERROR=1 shows the traceback"


def test_escapes_in_a_message_are_harmless(mine):
    assert "\\x1b[31m" in complaint(mine.ddplint("+model=mine", "+scenario=a", "run.device='\x1b[31m'"))


@pytest.mark.parametrize("text", ["", "{", "[]", '{"schema_version": 99}', '{"schema_version": 1, "spec": 3}', "\x00"])
def test_an_evidence_file_that_is_none(mine, text):
    mine.write("run.json", text)
    assert "run.json" in complaint(mine.ddplint("evidence=run.json"))


def test_another_rank_of_a_launch_says_nothing(mine, monkeypatch):
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    ended = mine.ddplint("+model=mine")
    assert (ended.status, ended.out, ended.err) == (2, "", "")

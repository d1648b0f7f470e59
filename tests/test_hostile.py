"""Input that is wrong, cut, edited or meant to harm: the exact words, status 2, no traceback, nothing run."""

import json
import resource
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ddplint.errors import DdplintError
from ddplint.evidence import Evidence, Model, Parameter, RankSeen, ScenarioSeen, StepSeen
from ddplint.evidence_file import from_json, to_json

# ------------------------------------------------------------------ targets: found only in the ranks, by importing the user's code

NET = '''
import torch
from torch import nn

THING = 3


class Net(nn.Module):
    def __init__(self, width=4, part=None):
        super().__init__()
        self.layer = nn.Linear(4, width)

    def forward(self, x):
        return self.layer(x)


class Part:
    def __init__(self, size):
        self.size = 1 / size


def needs_width(width):
    return Net(width)


def number():
    return 3


def loss(outputs, batch):
    return {"square": outputs.square().mean()}


def one_argument(outputs):
    return outputs.sum()


def nothing(outputs, batch):
    pass


def batch(step):
    return torch.randn(2, 4)
'''
MODEL = """
# @package _global_
model: {_target_: net.Net}
loss: {terms: {_target_: net.loss}}
scenario: {a: {batch: {_target_: net.batch}}}
run: {timeout: 60, device: cpu, causes: false}
"""


@pytest.fixture
def mine(project):
    project.write("net.py", NET)
    project.write("broken.py", "import a_package_that_is_not_there\n")
    project.write("configs/model/mine.yaml", MODEL.lstrip())
    return project


def complaint(ended) -> str:
    """The one message of a run that could not judge."""
    assert (ended.status, ended.out) == (2, "")
    assert ended.err.startswith("ddplint: error: ") and "Traceback" not in ended.err
    return ended.err.removeprefix("ddplint: error: ").removesuffix("\n")


@pytest.mark.parametrize(("override", "message"), [
    ("model._target_=nett.Net", "model._target_: no module named 'nett'; the current folder and installed packages are searched"),
    ("model._target_=net.Nett", "model._target_: 'net' has no 'Nett'; did you mean 'Net'?"),
    ("model._target_=net.THING", "model._target_: 'net.THING' is a int, not callable; a class or a function"),
    ("model._target_=net.number", "model: 'net.number' returned a int; a callable that returns an nn.Module"),
    ("+model.widht=3", "model: Net.__init__() got an unexpected keyword argument 'widht'; did you mean 'width'?"),
    ("model._target_=net.needs_width", "model: needs_width() missing 1 required positional argument: 'width'; it takes width"),
    ("+model.part={_target_:net.Part}", "model: Error in call to target 'net.Part': TypeError(\"Part.__init__() missing 1 required "
                                        "positional argument: 'size'\") full_key: part"),
    ("loss.terms._target_=net.losss", "loss.terms._target_: 'net' has no 'losss'; did you mean 'loss'?"),
    ("loss.terms._target_=net.one_argument", "loss.terms: one_argument() takes 1 positional argument but 2 were given; it takes outputs"),
    ("scenario.a.batch._target_=net.batchh", "scenario.a.batch._target_: 'net' has no 'batchh'; did you mean 'batch'?"),
    ("+scenario.a.batch.sise=3", "scenario.a.batch: batch() got an unexpected keyword argument 'sise'; it takes step"),
    ("+scenario.b={loader:{_target_:net.number}}", "scenario.b.loader: 'net.number' returned a int; "
                                                   "a callable that returns a DataLoader or another iterable"),
    ("+scenario.b={batch:{y:{shape:[2]}}}", "forward: Net.forward() missing 1 required positional argument: 'x'"),
    ("+optimizer._target_=torch.optim.Adamm", "optimizer._target_: 'torch.optim' has no 'Adamm'; did you mean 'Adam'?"),
    ("+optimizer={_target_:torch.optim.SGD,lrr:1}", "optimizer: SGD.__init__() got an unexpected keyword argument 'lrr'; did you mean 'lr'?"),
    ("ddp.find_unused=true", "ddp: DistributedDataParallel has no keyword 'find_unused'; did you mean 'find_unused_parameters'?"),
    ("ddp.find_unused_parameters=maybe", "ddp.find_unused_parameters: expected true or false, found 'maybe'"),
    ("+scenario.a.set.epohc=3", "set.epohc: Net has no 'epohc'"),
])
def test_a_target_that_cannot_be_meant(mine, override, message):
    assert complaint(mine.ddplint("+model=mine", override)) == message


@pytest.mark.parametrize(("override", "words"), [
    ("model._target_=broken.Net", "raised ModuleNotFoundError in import: No module named 'a_package_that_is_not_there'"),
    ("+model.part={_target_:net.Part,size:0}", "raised ZeroDivisionError in build: division by zero"),
    ("loss.terms._target_=net.nothing", "gave a NoneType"),
    ("~loss.terms +loss.terms={x:{_target_:net.nothing}}", "the loss term 'x' is a NoneType, not a tensor"),
])
def test_what_the_users_own_code_raises_is_not_the_specs_fault(mine, override, words):
    ended = mine.ddplint("+model=mine", *override.split())
    assert words in ended.out + ended.err and "Traceback" not in ended.out + ended.err
    assert ended.status in (1, 2)


# ------------------------------------------------------------------ evidence

def small_evidence() -> Evidence:
    """One parameter that gets no gradient: a lint of it ends with 1."""
    rank = [RankSeen(r, steps=[StepSeen(s, "done", use=".1") for s in range(3)]) for r in range(2)]
    parameters = [Parameter("a.weight", [2], "float32", True, "a"), Parameter("b.weight", [2], "float32", True, "b")]
    return Evidence({"model": "net.Net", "world_size": 2, "steps": 3, "ddp": {}}, [Model("Net", parameters)], [ScenarioSeen("s", ranks=rank)])


@pytest.fixture
def judged(project):
    """Lints a text as an evidence file."""
    def lint(text: str | bytes):
        project.write("run.json", text)
        return project.ddplint("evidence=run.json")
    return lint


def test_evidence_that_is_whole_is_judged(judged):
    ended = judged(to_json(small_evidence()))
    assert ended.status == 1 and "unused-parameter" in ended.out


def test_evidence_cut_at_any_place_is_refused():
    text = to_json(small_evidence())
    for end in range(len(text)):
        with pytest.raises(DdplintError):
            from_json(text[:end])


def test_evidence_of_a_later_version_with_more_keys_is_read(judged):
    body = json.loads(to_json(small_evidence()))
    body["scenarios"][0]["novelty"] = {"x": [1]}
    assert judged(json.dumps(body)).status == 1


@pytest.mark.parametrize(("edit", "message"), [
    (lambda body: body.update(schema_version=2), "run.json: expected schema_version 1, found 2; "
                                                 "write it again with this ddplint (report.evidence=FILE)"),
    (lambda body: body.pop("schema_version"), "run.json: expected schema_version 1, found None; "
                                              "write it again with this ddplint (report.evidence=FILE)"),
    (lambda body: body.pop("spec"), "run.json: spec is missing"),
    (lambda body: body["scenarios"][0].update(ranks=3), "run.json.scenarios[0].ranks: expected list, found int"),
    (lambda body: body["spec"].update(world_size="two"), "spec.world_size: expected a number of at least 1, found 'two'"),
    (lambda body: body["scenarios"][0].update(model=1), "scenarios[0].model: there is no model 1"),
    (lambda body: body["scenarios"].append(body["scenarios"][0]), "scenarios: s is there twice"),
    (lambda body: body["scenarios"][0]["ranks"][0]["steps"][0].update(use="11111"),
     "scenarios[0].ranks[0].steps[0].use: expected one of !-.01? for each of 2 parameters"),
    (lambda body: body["scenarios"][0]["ranks"][0]["steps"][0].update(use="ok"),
     "scenarios[0].ranks[0].steps[0].use: expected one of !-.01? for each of 2 parameters"),
    (lambda body: body["scenarios"][0]["ranks"][0]["steps"][0].update(graph=7),
     "scenarios[0].ranks[0].steps[0].graph: there is no graph 7"),
    (lambda body: body["scenarios"][0]["ranks"][1].update(rank=0), "scenarios[0].ranks: expected each rank once"),
    (lambda body: body["scenarios"][0]["ranks"][1].update(failure={"kind": "raised", "phase": "forward"}),
     "scenarios[0].outcome: a rank failed, yet all went well"),
    (lambda body: body["scenarios"][0].update(outcome={"outcome": "great"}),
     "scenarios[0].outcome: expected one of ok, error, hang, crashed, unknown, found 'great'"),
    (lambda body: body["models"][0]["parameters"].append(body["models"][0]["parameters"][0]),
     "models[0].parameters: a name is there twice"),
])
def test_evidence_that_was_edited_into_nonsense(judged, edit, message):
    body = json.loads(to_json(small_evidence()))
    edit(body)
    assert complaint(judged(json.dumps(body))).removeprefix("run.json contradicts itself; was it edited? ") == message


@pytest.mark.parametrize("text", [b"", b"\x00", b"\xff\xfe", b"[" * 100_000, b"1" * 5_000, b'{"schema_version": 1'])
def test_evidence_that_is_no_json(judged, text):
    assert complaint(judged(text)).startswith("run.json ")


def test_evidence_without_scenarios_or_steps_is_no_pass(judged):
    nothing = Evidence({"model": "net.Net", "world_size": 2})
    assert judged(to_json(nothing)).status == 2
    unseen = small_evidence()
    unseen.scenarios[0].ranks.clear()
    assert "not checked: Every trainable parameter" in judged(to_json(unseen)).out


def test_evidence_without_end(project):
    assert complaint(project.ddplint("evidence=/dev/zero")) == "/dev/zero has more than 256 MiB, more than any lint writes"


# ------------------------------------------------------------------ where the report goes

@pytest.fixture
def lint(project):
    """``python -m ddplint`` on evidence, as a process whose streams and limits can be chosen."""
    project.write("run.json", to_json(small_evidence()))

    def run(*argv: str, **options) -> subprocess.CompletedProcess:
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
        return subprocess.run([sys.executable, "-m", "ddplint", "evidence=run.json", *argv], cwd=project.folder,
                              env=project.environment(), text=True, timeout=100, **streams)
    return run


@pytest.mark.parametrize(("argv", "message"), [
    (["report.json=/dev/full"], "report.json: cannot write /dev/full: No space left on device"),
    (["report.json=/proc/nowhere/r.json"], "report.json: cannot write /proc/nowhere/r.json: No such file or directory"),
    (["report.json=folder", "report.sarif=r.sarif"], "report.json: cannot write folder: it is a folder"),
    (["report.json=run.json/r.json"], "report.json: cannot write run.json/r.json: File exists"),
    (["report.evidence=/dev/full"], "report.evidence: /dev/full cannot be written (No space left on device)"),
    (["report.evidence=folder"], "report.evidence: folder cannot be written (Is a directory)"),
])
def test_a_report_that_cannot_be_written_is_shown_all_the_same(project, argv, message):
    project.write("run.json", to_json(small_evidence()))
    (project.folder / "folder").mkdir()
    ended = project.ddplint("evidence=run.json", *argv)
    assert (ended.status, ended.err) == (2, f"ddplint: error: {message}\n")
    assert "unused-parameter" in ended.out
    assert ("r.sarif" in project.files()) is (len(argv) > 1)


def test_two_reports_in_one_file_are_refused_before_anything_is_run(project, specs):
    project.write("run.json", to_json(small_evidence()))
    said = complaint(project.ddplint("evidence=run.json", "report.json=same", "report.sarif=./same"))
    assert said == "report.json and report.sarif both name ./same: give each its own file"
    assert complaint(project.ddplint("evidence=run.json", "report.json=same", "report.evidence=same")).startswith("report.evidence: 'same'")
    assert project.files() == ["run.json"]


def test_a_disk_that_is_full_for_the_report_itself(lint):
    with open("/dev/full", "w") as full:
        ended = lint(stdout=full)
    assert (ended.returncode, ended.stderr) == (2, "ddplint: error: the report cannot be printed (No space left on device)\n")


def test_a_limit_on_the_size_of_files(lint, project):
    """Half a report is none, and what was there before stays."""
    project.write("old.json", "before")
    for name in ("new", "old"):
        ended = lint(f"report.json={name}.json", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100)))
        assert (ended.returncode, ended.stderr) == (2, f"ddplint: error: report.json: cannot write {name}.json: File too large\n")
        assert "unused-parameter" in ended.stdout
    assert project.files() == ["old.json", "run.json"]
    assert (project.folder / "old.json").read_text() == "before"


def test_a_report_keeps_what_its_file_is(project):
    """Who may read it, and where a link leads."""
    project.write("run.json", to_json(small_evidence()))
    project.write("real.json", "before").chmod(0o640)
    (project.folder / "link.json").symlink_to("real.json")
    assert project.ddplint("evidence=run.json", "report.json=link.json").status == 1
    assert (project.folder / "link.json").is_symlink()
    assert (project.folder / "real.json").stat().st_mode & 0o777 == 0o640
    assert json.loads((project.folder / "real.json").read_text())["findings"]


# In a mount namespace of its own: the full disk is gone with the process.
FULL = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c",
        'mount -t tmpfs -o size=16k none disk && { cat /dev/zero >disk/fill 2>/dev/null; cd "$0" && exec "$@"; } 2>&1']


@pytest.fixture
def on_a_full_disk(project):
    """``python -m ddplint`` in a folder beside, or on, the mounted folder ``disk``, which has no byte left."""
    (project.folder / "disk").mkdir()
    project.write("run.json", to_json(small_evidence()))
    if not shutil.which("unshare") or subprocess.run([*FULL, ".", "true"], cwd=project.folder, capture_output=True).returncode:
        pytest.skip("no file system can be mounted here, not even in a namespace of the test's own")

    def run(folder: str, *argv: str) -> tuple[int, str]:
        ended = subprocess.run([*FULL, folder, sys.executable, "-m", "ddplint", *argv], cwd=project.folder, text=True,
                               env=project.environment(), capture_output=True, timeout=100)
        return ended.returncode, ended.stdout
    return run


@pytest.mark.parametrize(("argv", "message"), [
    (["report.json=disk/r.json"], "report.json: cannot write disk/r.json: No space left on device"),
    (["report.html=disk/r.html", "report.evidence=disk/e.json"], "report.html: cannot write disk/r.html: No space left on device; "
                                                                "report.evidence: disk/e.json cannot be written (No space left on device)"),
])
def test_a_disk_that_is_full(on_a_full_disk, argv, message):
    status, said = on_a_full_disk(".", "evidence=run.json", *argv)
    assert (status, said.splitlines()[-1]) == (2, f"ddplint: error: {message}")
    assert "unused-parameter" in said


def test_a_disk_that_is_full_under_a_sweep(on_a_full_disk):
    status, said = on_a_full_disk("disk", "-m", "evidence=../run.json", "report.fail_on=error,warning")
    assert (status, said.splitlines()) == (2, ["ddplint: error: the folder in which the jobs of a sweep leave what they saw "
                                                   "(hydra.sweep.dir): No space left on device"])


@pytest.mark.parametrize("closed", ["1>&-", "2>&-", "1>&- 2>&-"])
def test_closed_streams(project, closed):
    project.write("run.json", to_json(small_evidence()))
    ended = subprocess.run(f"exec '{sys.executable}' -m ddplint evidence=run.json {closed}", shell=True, cwd=project.folder,
                           env=project.environment(), text=True, capture_output=True, timeout=100)
    assert (ended.returncode, ended.stderr) == (1, "")
    assert ("unused-parameter" in ended.stdout) is (closed == "2>&-")


STOPPED = """
import signal
import sys
import {module}
from ddplint.start import entry

{module}.{function} = lambda *args, **kwargs: signal.raise_signal({number:d})
sys.argv = ["ddplint", "evidence=run.json"]
entry()
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(("module", "function"), [
    ("ddplint.compose.hydra_app", "run_jobs"), ("ddplint.check", "check"), ("ddplint.render", "show")])
def test_an_interruption_where_no_rank_runs_is_one_word(project, module, function, number):
    project.write("run.json", to_json(small_evidence()))
    ended = subprocess.run([sys.executable, "-c", STOPPED.format(module=module, function=function, number=number)], cwd=project.folder,
                           env=project.environment(), text=True, capture_output=True, timeout=100)
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "ddplint: interrupted\n")


# ------------------------------------------------------------------ saved batches

SAVED = """
# @package _global_
model: {_target_: net.Net}
loss: {terms: {_target_: net.loss}}
scenario: {saved: {file: batch.pt}}
run: {timeout: 60, device: cpu, causes: false}
"""
EXPECTED = "expected a tensor, or mappings, lists and tuples of tensors, as torch.save() writes them"


class Payload:
    """Unpickled by a loader that trusts its input, it makes a folder."""

    def __reduce__(self):
        import os
        return os.mkdir, ("payload-was-run",)


@pytest.fixture
def saved(mine):
    mine.write("configs/model/saved.yaml", SAVED.lstrip())
    return mine


def save(value, file: Path) -> bytes:
    import torch
    torch.save(value, file)
    return file.read_bytes()


def test_a_saved_batch_is_read_also_in_a_folder_that_is_a_link(saved):
    import torch
    (saved.folder / "disk").mkdir()
    (saved.folder / "data").symlink_to("disk")
    save({"x": torch.ones(2, 4)}, saved.folder / "disk/batch.pt")
    ended = saved.ddplint("+model=saved", "scenario.saved.file=data/batch.pt")
    assert (ended.status, ended.err) == (0, "")


@pytest.mark.parametrize("target", ["elsewhere.pt", "nowhere", "batch.pt", "/etc/passwd", "/dev/zero"])
def test_a_link_in_place_of_a_saved_batch_is_refused(saved, target):
    import torch
    save({"x": torch.ones(2, 4)}, saved.folder / "elsewhere.pt")
    (saved.folder / "batch.pt").symlink_to(target)
    assert complaint(saved.ddplint("+model=saved")) == (
        f"scenario.saved.file: batch.pt is a symbolic link to {target}, which was not followed; name the file itself")


def test_a_payload_in_a_saved_batch_is_refused_and_not_run(saved):
    save({"x": Payload()}, saved.folder / "batch.pt")
    said = complaint(saved.ddplint("+model=saved"))
    assert said == f"scenario.saved.file: batch.pt holds a posix.mkdir, which is no tensor; it was not run; {EXPECTED}"
    assert not (saved.folder / "payload-was-run").exists()


@pytest.mark.parametrize(("content", "found"), [
    (b"", "is empty"),
    (b"no tensor", "is not a file of tensors"),
    (b"PK\x03\x04 cut short", "is not a file of tensors"),
    ({"x": 3}, "holds a dict without a tensor"),
    ("half", "is not a file of tensors"),
])
def test_a_saved_batch_that_is_no_batch(saved, content, found):
    import torch
    if content == "half":
        whole = save({"x": torch.ones(2, 4)}, saved.folder / "batch.pt")
        content = whole[: len(whole) // 2]
    if isinstance(content, dict):
        save(content, saved.folder / "batch.pt")
    else:
        saved.write("batch.pt", content)
    assert complaint(saved.ddplint("+model=saved")) == f"scenario.saved.file: batch.pt {found}; {EXPECTED}"


@pytest.mark.parametrize(("make", "found"), [
    (lambda path: None, "does not exist"),
    (lambda path: path.mkdir(), "is a folder"),
    (lambda path: __import__("os").mkfifo(path), "is a device or pipe"),
])
def test_a_saved_batch_that_is_no_file(saved, make, found):
    make(saved.folder / "batch.pt")
    assert complaint(saved.ddplint("+model=saved")).startswith(f"scenario.saved.file: batch.pt {found}; ")


# ------------------------------------------------------------------ what an earlier run has left

def test_what_a_killed_sweep_has_left_is_neither_read_nor_touched(mine, specs):
    mine.write(".ddplint/20200101-000000-000000/0/ddplint.json", "not even JSON")
    (mine.folder / "pymp-stale").mkdir()
    before = mine.files()
    ended = mine.ddplint("-m", "+model=mine", "run.steps=1,2")
    assert (ended.status, ended.err, [spec.run.steps for spec in specs]) == (2, "", [1, 2])      # nothing was recorded: no verdict
    assert mine.files() == before


@pytest.mark.parametrize(("argv", "message"), [
    (["+scenario.b.ranks=[a,c]"], "scenario.b.ranks[1]: no scenario is called 'c'; one of a, b"),
    (["+scenario.b.ranks=[b]"], "scenario.b.ranks[0]: refers to itself (b > b)"),
    (["+scenario.b.sequence=[]"], "scenario.b.sequence: expected a list of scenario names, found an empty list"),
    (["+scenario.a.loader._target_=net.batch"], "scenario.a: has batch and loader; exactly one of batch, loader, file, ranks, sequence"),
    (["model._target_=net"], "model._target_: expected a dotted path, found 'net'; my_pkg.my_module.MyThing"),
    (["model._target_=3"], "model._target_: expected a dotted path, found 3; my_pkg.my_module.MyThing"),
    (["run.steps=two"], "run.steps: expected a whole number of at least 1, found 'two'"),
    (["run.world_size=0"], "run.world_size: expected a whole number of at least 1, found 0"),
    (["run.timeout=-1"], "run.timeout: expected a number above 0, found -1"),
    (["run.device=cdua"], "run.device: expected one of auto, cpu, cuda, found 'cdua'; did you mean 'cuda'?"),
    (["+forward.x=btch.image"], "forward.x: the path 'btch.image' does not start with batch; did you mean 'batch'?"),
    (["+rules.unused-output.severity=fatal"], "rules.unused-output.severity: expected one of error, warning, note, off, found 'fatal'"),
    (["report.jsno=x"], "report: unknown key 'jsno'; did you mean 'json'?"),
])
def test_a_value_that_cannot_be_meant(mine, specs, argv, message):
    assert (complaint(mine.ddplint("+model=mine", *argv)), specs) == (message, [])

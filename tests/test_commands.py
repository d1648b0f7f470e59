"""The commands beside the Hydra run: ``ddplint rules``, ``explain``, ``explain-error``."""

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

from ddplint.cli import main
from ddplint.commands import ddp_log
from ddplint.commands.faults import FAULTS
from ddplint.commands.manual import BEGIN, END, rule_table, rule_table_markdown, with_rule_table
from ddplint.evidence import Evidence, Model, Parameter
from ddplint.rules import catalogue

LOGS = Path(__file__).parent / "logs"


@pytest.fixture
def run(capsys):
    def command(*argv):
        status = main(list(argv))
        captured = capsys.readouterr()
        return status, captured.out, captured.err
    return command


# rules, explain

def test_rules_lists_every_rule_with_its_severity(run):
    status, out, _ = run("rules")
    assert status == 0
    listed = {line.split()[0]: line.split()[1] for line in out.splitlines()}
    assert listed == {rule.name: rule.severity for rule in catalogue().values()}
    assert list(listed.values()) == sorted(listed.values(), key=["error", "warning", "note", "off"].index)


def test_rules_as_json(run):
    _, out, _ = run("rules", "--format", "json")
    entry = next(entry for entry in json.loads(out) if entry["name"] == "unused-parameter")
    assert entry["severity"] == "error" and entry["summary"] == "A trainable parameter gets no gradient on any rank."
    assert set(entry["manual"]) >= {"Why it matters", "Bad", "Good"}


def test_rules_as_markdown(run):
    _, out, _ = run("rules", "--format=md")
    assert out.strip() == rule_table_markdown()
    assert "| `unused-parameter` | error | A trainable parameter gets no gradient on any rank. |" in out


def test_explain_prints_the_manual(run):
    status, out, _ = run("explain", "unused-parameter")
    assert status == 0
    assert out.startswith("unused-parameter (error)\n\nA trainable parameter gets no gradient on any rank.\n\nWhy it matters\n")
    assert "\n\nGood\n  " in out


def test_explain_takes_the_name_of_the_file_too(run):
    assert run("explain", "unused_parameter")[0] == 0


@pytest.mark.parametrize(("argv", "told"), [
    (["explain", "unused-paramter"], "no rule is called 'unused-paramter'; did you mean 'ddplint explain unused-parameter'?"),
    (["explain", "zzz"], "no rule is called 'zzz'; 'ddplint rules' lists them"),
    (["rule"], "did you mean 'ddplint rules'?"),
    (["explain-eror", "x"], "did you mean 'ddplint explain-error'?"),
    (["explain-error", "no/such/file"], "no/such/file cannot be read (No such file or directory); give a file, or -"),
])
def test_mistakes_get_the_nearest(run, argv, told):
    status, _, err = run(*argv)
    assert status == 2 and told in err


@pytest.mark.parametrize("argv", [["rules", "--format", "x"], ["explain"], ["explain-error"]])
def test_wrong_usage_ends_with_2(argv, capsys):
    with pytest.raises(SystemExit) as caught:
        main(argv)
    assert caught.value.code == 2
    assert "usage: ddplint" in capsys.readouterr().err


@pytest.mark.parametrize("argv", [["rules"], ["explain", "unused-parameter"], ["explain-error", str(LOGS / "unused.log")],
                                  ["--version"]])
def test_neither_torch_nor_hydra_is_imported(argv):
    code = ("import sys; from ddplint.cli import main; status = main(sys.argv[1:]); "
            "heavy = {'torch', 'hydra', 'omegaconf', 'rich', 'jinja2'} & set(sys.modules); sys.exit(f'{heavy}' if heavy else status)")
    ended = subprocess.run([sys.executable, "-c", code, *argv], capture_output=True, text=True, timeout=60, check=False,
                           cwd=Path(__file__).parent.parent)
    assert (ended.returncode, ended.stderr) == (0, "")


# explain-error: logs of real DDP jobs (torch 2.13, gloo, 2 ranks)

@pytest.mark.parametrize(("log", "rules", "ranks"), [
    ("unused", ["unused-parameter"], [1]),
    ("unused_info", ["unused-parameter"], [0]),
    ("twice", ["parameter-ready-twice"], [1]),
    ("static", ["static-graph-violated"], [0]),
    ("needless", ["find-unused-parameters-needless"], [0, 1]),
    ("size", ["parameter-mismatch"], [1]),
    ("count", ["parameter-mismatch"], [1]),
    ("uninit", ["uninitialized-parameter"], [1]),
    ("frozen", ["changed-after-wrap"], [0]),
    ("timeout", ["collective-mismatch"], [0]),
    ("preamble", ["collective-mismatch", "rank-failure"], []),
    ("monitored", ["collective-mismatch", "collective-mismatch"], [1]),
    ("peer", ["rank-failure"], [1]),
])
def test_real_logs_are_recognised(log, rules, ranks):
    sightings = ddp_log.read((LOGS / f"{log}.log").read_text())
    assert [sighting.fault.rule for sighting in sightings] == rules
    assert sightings[0].ranks == ranks


@pytest.mark.parametrize(("text", "rule"), [
    ("[rank3]:[E ProcessGroupNCCL.cpp:616] [Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=42, "
     "OpType=ALLREDUCE, NumelIn=1) ran for 600000 milliseconds before timing out.", "collective-mismatch"),
    ("RuntimeError: Detected mismatch between collectives on ranks. Rank 0 is running collective: A", "collective-mismatch"),
    ("RuntimeError: one of the variables needed for gradient computation has been modified by an inplace operation: "
     "[torch.FloatTensor [4]] is at version 3", "buffer-modified-inplace"),
    ("RuntimeError: element 0 of tensors does not require grad and does not have a grad_fn", "loss-without-grad"),
    ("RuntimeError: grad can be implicitly created only for scalar outputs", "nonscalar-loss"),
    ("UserWarning: Grad strides do not match bucket view strides.", "gradient-layout"),
    ("RuntimeError: Function 'LogBackward0' returned nan values in its 0th output.", "nonfinite-gradient"),
    ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB", "rank-failure"),
    ("torch.AcceleratorError: CUDA error: out of memory", "rank-failure"),
    ("torch.AcceleratorError: CUDA error: device-side assert triggered", "rank-failure"),
    ("torch.AcceleratorError: CUDA error: an illegal memory access was encountered", "rank-failure"),
    ("torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1970, ncclSystemError: x", "rank-failure"),
    ("  exitcode  : -9 (pid: 12)\n  traceback : Signal 9 (SIGKILL) received by PID 12", "rank-failure"),
    ("ValueError: Expected more than 1 value per channel when training, got input size [1, 8]", "batchnorm-per-rank"),
    ("RuntimeError: [transport/tcp/pair.cc:525] Connection closed by peer [127.0.0.1]:2110", "rank-failure"),
])
def test_other_texts_are_recognised(text, rule):
    assert ddp_log.read(text)[0].fault.rule == rule


def test_what_only_follows_comes_last():
    both = ddp_log.read("Connection closed by peer\n" + (LOGS / "unused.log").read_text())
    assert [sighting.fault.collateral for sighting in both] == [False, True]


def test_logs_may_be_wrapped_and_coloured():
    wrapped = "\x1b[31mRuntimeError: Expected to have finished\n   reduction in the prior\n iteration\x1b[0m before starting"
    assert ddp_log.read(wrapped)[0].fault.rule == "unused-parameter"


def test_static_graphs_own_text_is_not_the_usual_one():
    text = ("Expected to have finished reduction in the prior iteration before starting a new one. This error indicates "
            "that your training graph has changed in this iteration, e.g., one parameter is used in first iteration")
    assert [sighting.fault.rule for sighting in ddp_log.read(text)] == ["static-graph-violated"]


@pytest.mark.parametrize(("line", "indices", "names"), [
    ("Parameter indices which did not receive grad for rank 1: 4 5", {1: [4, 5]}, {}),
    ("Parameters which did not receive grad for rank 0: aux.weight, aux.bias", {}, {0: ["aux.weight", "aux.bias"]}),
])
def test_the_last_line_of_the_message_is_enough(line, indices, names):
    sighting, = ddp_log.read(line)
    assert (sighting.fault.rule, sighting.count, sighting.indices, sighting.names) == ("unused-parameter", 1, indices, names)


def test_ranks_that_lack_different_parameters_diverge():
    text = "".join(f"[rank{rank}]: Expected to have finished reduction in the prior iteration\n"
                   f"Parameter indices which did not receive grad for rank {rank}: {indices}\n"
                   for rank, indices in ((0, "2 3"), (1, "0 1")))
    sighting, = ddp_log.read(text)
    assert sighting.fault.rule == "rank-divergent-usage"
    assert sighting.indices == {0: [2, 3], 1: [0, 1]}


def test_every_fault_is_a_shipped_rule():
    assert {fault.rule for fault in FAULTS} - set(catalogue()) == set()


def test_explain_error_says_rule_ranks_indices_and_what_to_type(run):
    status, out, _ = run("explain-error", str(LOGS / "unused.log"))
    assert status == 0
    assert out.splitlines()[0] == "unused-parameter (error): A trainable parameter gets no gradient on any rank."
    assert '  said     "Expected to have finished reduction in the prior iteration", rank 1' in out
    assert "  indices  rank 1: 2, 3\n" in out
    assert "  next     ddplint +model=NAME +scenario=NAME\n" in out
    assert "  page     ddplint explain unused-parameter\n" in out


def test_explain_error_names_the_indices_with_a_model(run, monkeypatch):
    names = ["a.weight", "a.frozen", "a.bias", "b.weight", "b.bias"]
    seen = Evidence({}, [Model("Net", [Parameter(name, [1], "float32", name != "a.frozen") for name in names])])
    monkeypatch.setattr("ddplint.commands.diagnosis._recorded", lambda lint: seen)
    _, out, _ = run("explain-error", str(LOGS / "unused.log"), "+model=mine", "run.steps=1")
    assert "  indices  rank 1: 2, 3 = b.weight, b.bias\n" in out
    assert "  next     ddplint +model=mine run.steps=1\n" in out


def test_explain_error_with_a_model_that_does_not_compose(run):
    status, _, err = run("explain-error", str(LOGS / "unused.log"), "+model=nowhere")
    assert status == 2 and "the model could not be built from +model=nowhere" in err


def test_explain_error_reads_stdin(run, monkeypatch):
    log = (LOGS / "twice.log").read_bytes() + b"\xff"
    monkeypatch.setattr(sys, "stdin", type("Stdin", (), {"buffer": io.BytesIO(log)}))
    _, out, _ = run("explain-error", "-", "--format", "json")
    body, = json.loads(out)
    assert body["rule"] == "parameter-ready-twice"
    assert body["parameters"] == [{"rank": 1, "indices": [3], "names": []}]
    assert body["names"] == [{"rank": 1, "names": ["b.bias"]}]


def test_explain_error_of_something_else(run, tmp_path):
    (tmp_path / "log").write_text("KeyError: 'x'")
    status, out, _ = run("explain-error", str(tmp_path / "log"))
    assert status == 1
    assert out.startswith("No fault that DDP, NCCL or gloo prints was recognised.\n  next     ddplint +model=NAME")


# the start

def test_the_kept_table_is_that_of_the_rules():
    """After a new rule: ``python -m ddplint.commands.manual`` writes it anew."""
    kept = Path(__file__).parent.parent / "ddplint" / "commands" / "rules.txt"
    assert kept.read_text(encoding="utf-8") == rule_table() + "\n"


def test_the_readmes_table_is_that_of_the_rules():
    readme = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
    assert with_rule_table(readme) == readme


def test_the_table_is_written_between_its_markers():
    assert with_rule_table("no markers") == "no markers"
    made = with_rule_table(f"a\n{BEGIN}\nold\n{END}\nb")
    assert made == f"a\n{BEGIN}\n{rule_table_markdown()}\n{END}\nb"


@pytest.mark.parametrize("command", ["rules", "--version"])
def test_what_is_answered_at_once_imports_next_to_nothing(command):
    code = ("import sys; before = set(sys.modules); sys.argv[0] = 'ddplint'; from ddplint.start import entry; entry(); "
            "sys.exit(','.join(sorted(set(sys.modules) - before)))")
    ended = subprocess.run([sys.executable, "-c", code, command], capture_output=True, text=True, timeout=60,
                           check=False, cwd=Path(__file__).parent.parent)
    assert ended.stderr.strip() == "ddplint,ddplint.start,ddplint.version"
    assert ended.stdout.startswith(("ddplint 0.", "broken-weight-tie "))

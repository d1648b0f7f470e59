"""Several backwards in one step of the user's own: what DDP makes of them, and what is said of parameters meanwhile."""

import pytest

LOOPS = """
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk, self.left, self.right = (nn.Linear(4, 4) for _ in range(3))

    def forward(self, x):
        return self.left(x).tanh(), self.right(self.trunk(x)).tanh()

def apart(model, batch, optimizer):
    left, right = model(batch["x"])
    left.mean().backward()
    right.mean().backward()
    optimizer.step()
    optimizer.zero_grad()

def twice(model, batch, optimizer):
    left, right = model(batch["x"])
    left.mean().backward()
    left.sum().backward()

def raises_between(model, batch, optimizer):
    model(batch["x"])[0].mean().backward()
    left, right = model(batch["x"])
    raise ValueError("the second half")

def reads_gradients(model, batch, optimizer):
    model(batch["x"])[0].mean().backward()
    for p in model.parameters():
        p.grad.clamp_(-1, 1)
"""


@pytest.mark.parametrize(("step", "ddp", "said"), [
    ("apart", "{}", []),
    ("apart", "{find_unused_parameters: true}", ["[rank-failure]", "under find_unused_parameters=True all outputs of one wrapped forward hang on",
                                                 "loops.py:15: error [rank-failure]", "call backward() once",
                                                 "static_graph=false: backward() runs again after one forward"]),
    ("apart", "{static_graph: true}", ["[rank-failure]", "under static_graph=True all outputs of one wrapped forward hang on"]),
    ("twice", "{}", ["[rank-failure]", "an earlier backward() has freed the graph of this loss", "loops.py:22: error [rank-failure]"]),
    ("raises_between", "{find_unused_parameters: true}", ["[rank-failure]", "the second half"]),
    ("reads_gradients", "{}", ["[unused-parameter]", "[rank-failure]", "has no attribute 'clamp_'"]),
])
def test_several_backwards(project, step, ddp, said):
    project.write("loops.py", LOOPS)
    project.write("configs/model/mine.yaml", f"# @package _global_\nmodel: {{_target_: loops.Net}}\nstep: {{_target_: loops.{step}}}\n"
                  f"ddp: {ddp}\nscenario: {{typical: {{batch: {{x: {{shape: [2, 4]}}}}}}}}\n")
    ended = project.ddplint("+model=mine", "run.steps=2")
    text = " ".join(ended.out.split())
    assert (ended.status, ended.err) == (int(bool(said)), "")
    assert [words for words in said if words not in text] == []
    assert ended.out.count(": error [") == sum(words.startswith("[") for words in said)

"""What rules look at: the evidence with names in place of bitsets and use strings.

A rule names its view in the annotation of its first parameter. ``ParameterView``, ``OutputView``, ``TermView``,
``LossView`` and ``ScenarioView`` show one scenario; ``ModuleView`` and ``RunView`` show all scenarios together.
Views are made on demand: evidence of 200 scenarios x 5,000 parameters gives a view only to what a rule asks for.
"""

from ddplint.views.aspects import Absent
from ddplint.views.backwards import backward_left_out, backwards_again
from ddplint.views.graph import LossStep, LossView, OutputView, TermView
from ddplint.views.parameter import ParameterView
from ddplint.views.run import ArmView, ModuleView, RunView
from ddplint.views.scenario import ScenarioView

VIEWS = (ParameterView, OutputView, TermView, LossView, ScenarioView, ModuleView, ArmView, RunView)

__all__ = ["VIEWS", "Absent", "ArmView", "LossStep", "LossView", "ModuleView", "OutputView", "ParameterView", "RunView",
           "ScenarioView", "TermView", "backward_left_out", "backwards_again"]

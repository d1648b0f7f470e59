"""All scenarios together: the modules of a model, the arms of its branches, the whole run."""

import functools
import re
from collections.abc import Callable
from typing import Any

from ddplint.evidence import Branch, Evidence, Module, Place
from ddplint.views.aspects import Absent
from ddplint.views.backwards import backward_left_out
from ddplint.views.scenario import ScenarioView
from ddplint.views.table import GRADIENT, over_scenarios


class RunView:
    kind = "runs"

    def __init__(self, evidence: Evidence):
        self.evidence, self.name = evidence, "run"
        self.scenarios = [ScenarioView(self, seen) for seen in evidence.scenarios]
        self._memo: dict[tuple, Any] = {}

    @property
    def causes_sought(self) -> bool:
        return self.evidence.spec.get("causes") is not False

    def once(self, key: tuple, make: Callable[[], Any]) -> Any:
        """``make()``, worked out once for this run."""
        if key not in self._memo:
            self._memo[key] = make()
        return self._memo[key]

    def used_in(self, scenario: ScenarioView, position: int) -> list[str]:
        """The other scenarios of the same model in which the parameter gets a gradient."""
        return [name for name in self._used_in(scenario.seen.model, position) if name != scenario.name]

    def _used_in(self, model: int, position: int) -> list[str]:
        masks = self.once(("masks", model), lambda: [
            (s.name, s.use.mask) for s in self.scenarios if s.seen.model == model and s.use.uses])
        return self.once(("used in", model, position), lambda: [name for name, mask in masks if mask[position] & GRADIENT])

    @functools.cached_property
    def now_and_then(self) -> list[str]:
        """The parameters that get a gradient in some step of some scenario, and none in another."""
        return self._over_scenarios[0]

    @functools.cached_property
    def never(self) -> list[str]:
        """The parameters that get a gradient in no step of any scenario."""
        return self._over_scenarios[1]

    @functools.cached_property
    def _over_scenarios(self) -> tuple[list[str], list[str]]:
        found: tuple[dict[str, None], dict[str, None]] = ({}, {})
        for index, model in enumerate(self.evidence.models):
            seen = [s.use for s in self.scenarios if s.seen.model == index and s.use.uses and not backward_left_out(s)]
            for names, positions in zip(found, over_scenarios(seen), strict=True):
                names.update(dict.fromkeys(model.parameters[i].name for i in positions))
        for scenario in self.scenarios:
            found[0].update(dict.fromkeys(scenario.names_of(scenario.unreduced)))
        return list(found[0]), list(found[1])

    @functools.cached_property
    def uninitialized(self) -> list[list[int]]:
        """Per model: the parameters that had no shape when DDP was built."""
        return [[i for i, p in enumerate(model.parameters) if not p.initialized] for model in self.evidence.models]

    def stacks(self, model: int) -> list[list[int]]:
        """Matrices of equal name and shape but for one number (``layers.3.fc.weight``), in the order of that number."""
        return self.once(("stacks", model), lambda: self._find_stacks(model))

    def _find_stacks(self, model: int) -> list[list[int]]:
        found: dict[tuple, list[tuple[int, int]]] = {}
        for i, p in enumerate(self.evidence.models[model].parameters):
            for match in re.finditer(r"(?<=\.)\d+(?=\.)", p.name) if len(p.shape) >= 2 and p.trainable else ():
                key = (p.name[:match.start()], p.name[match.end():], tuple(p.shape))
                found.setdefault(key, []).append((int(match[0]), i))
        return [[i for _, i in sorted(stack)] for stack in found.values() if len(stack) > 1]

    @functools.cached_property
    def modules(self) -> list["ModuleView"]:
        return [ModuleView(self, index, module) for index, model in enumerate(self.evidence.models)
                for module in model.modules if module.name]

    @functools.cached_property
    def _modules(self) -> dict[tuple[int, str], "ModuleView"]:
        return {(module.index, module.name): module for module in self.modules}

    @functools.cached_property
    def _called(self) -> dict[int, set[str]]:
        found: dict[int, set[str]] = {}
        for scenario in self.scenarios:
            for reach in scenario.graphs.distinct:
                found.setdefault(scenario.seen.model, set()).update(reach.graph.calls)
        return {model: {part for name in names for part in _ancestry(name)} for model, names in found.items()}

    @functools.cached_property
    def _members(self) -> list[dict[str, list[int]]]:
        """Per model: module -> the positions of the trainable parameters in it and below."""
        found: list[dict[str, list[int]]] = []
        for model in self.evidence.models:
            members: dict[str, list[int]] = {}
            for i, parameter in enumerate(model.parameters):
                for module in _ancestry(parameter.name.rpartition(".")[0]) if parameter.trainable else ():
                    members.setdefault(module, []).append(i)
            found.append(members)
        return found

    @functools.cached_property
    def _touched(self) -> dict[int, int]:
        """Model -> bitset of the parameters that got a gradient or were read by an operation in any scenario."""
        found: dict[int, int] = {}
        for scenario in self.scenarios:
            mask = scenario.graphs.touched
            for i in scenario.use.used:
                mask |= 1 << i
            found[scenario.seen.model] = found.get(scenario.seen.model, 0) | mask
        return found

    @functools.cached_property
    def arms(self) -> list["ArmView"]:
        """Every arm of every branch that was traced, once over all scenarios."""
        found: dict[tuple, ArmView] = {}
        for scenario in self.scenarios:
            for branch in scenario.seen.branches or ():
                key = (branch.place.file, branch.place.line, branch.arm, branch.module)
                found.setdefault(key, ArmView(self, branch)).seen.append((scenario.name, branch.taken))
        return list(found.values())

    def why_unknown(self, aspect: str) -> str | None:
        """The reason of the first scenario, where no scenario shows the aspect."""
        reasons = [scenario.why_unknown(aspect) for scenario in self.scenarios]
        return reasons[0] if reasons and all(reasons) else None


class ModuleView:
    """A module of one model, over all scenarios that ran it."""

    kind = "modules"

    def __init__(self, run: RunView, index: int, module: Module):
        self.run, self.index, self.module, self.name = run, index, module, module.name

    @property
    def type(self) -> str:
        return self.module.type

    @property
    def place(self) -> Place | None:
        """Where its class is defined."""
        return self.module.place

    @property
    def batchnorm(self) -> bool:
        return self.module.batchnorm

    @property
    def scenarios(self) -> list[ScenarioView]:
        return self.run.once(("ran", self.index), lambda: [
            s for s in self.run.scenarios if s.seen.model == self.index and s.forward_ended])

    @property
    def _positions(self) -> list[int]:
        return self.run._members[self.index].get(self.name, [])

    @property
    def parameters(self) -> list[str]:
        """The trainable parameters of it and of all modules inside."""
        return [self.run.evidence.models[self.index].parameters[i].name for i in self._positions]

    @property
    def called(self) -> bool:
        """Whether any scenario called it or a module inside it."""
        return self.name in self.run._called.get(self.index, ())

    @property
    def touched(self) -> bool:
        """Whether a parameter inside got a gradient or was read by an operation."""
        mask = self.run._touched.get(self.index, 0)
        return any(mask >> i & 1 for i in self._positions)

    @property
    def parent(self) -> "ModuleView | None":
        return self.run._modules.get((self.index, self.name.rpartition(".")[0]))

    @property
    def idle(self) -> bool:
        """Trainable parameters, never called and never read."""
        return bool(self._positions) and not self.called and not self.touched


class ArmView:
    """One arm of a branch in the model's or the loss's own source, over all scenarios."""

    kind = "arms"

    def __init__(self, run: RunView, branch: Branch):
        self.run, self.branch = run, branch
        self.seen: list[tuple[str, bool]] = []
        """(scenario, whether it took the arm)."""

    @property
    def name(self) -> str:
        return f"{self.branch.place.file}:{self.branch.place.line}"

    @property
    def place(self) -> Place:
        return self.branch.place

    @property
    def arm(self) -> str:
        return self.branch.arm

    @property
    def module(self) -> str:
        return self.branch.module

    @property
    def taken_in(self) -> list[str]:
        return list(dict.fromkeys(name for name, taken in self.seen if taken))

    @property
    def lost_in(self) -> list[str]:
        """The scenarios that may have taken it: a rank was ended before it could tell."""
        return self.run.once(("lost", "branches"), lambda: [
            s.name for s in self.run.scenarios if (why := s.why_unknown("branches")) is not None and not isinstance(why, Absent)])

    @property
    def scenarios(self) -> list[str]:
        return list(dict.fromkeys(name for name, _ in self.seen))




def _ancestry(name: str) -> list[str]:
    """``a.b.c`` -> a.b.c, a.b, a."""
    found = []
    while name:
        found.append(name)
        name = name.rpartition(".")[0]
    return found

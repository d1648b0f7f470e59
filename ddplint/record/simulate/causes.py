"""The solo run that looks for causes (solo.py), on fake tensors."""

from collections.abc import Callable
from typing import Any

from ddplint.record.enact import Enactment
from ddplint.record.request import Request
from ddplint.record.simulate.program import FakeProgram
from ddplint.record.simulate.reducer import installed
from ddplint.record.simulate.world import World
from ddplint.record.solo import SoloRun, fake_group
from ddplint.record.source import set_folder
from ddplint.spec import Spec


class FakeSoloRun(SoloRun):
    values = False          # where gradients die or blow up, only values tell

    def _update(self, enactment: Enactment) -> None:
        """No number changes."""


def run(spec: Spec, request: Request, send: Callable[[str, Any], None]) -> bool:
    """Answer with ``send("causes", {subject: Cause})``."""
    set_folder(spec.folder)
    world = World()
    with fake_group(request.rank, spec.run.world_size), installed(lambda: None), world.active():
        solo = FakeSoloRun(FakeProgram(world, spec, request.scenario, request.rank), request)
        send("causes", solo.causes())
        if request.firings and solo.firings is not None:
            send("firings", solo.firings.twice)
    return True

"""How the model came to be: where each attribute was assigned, what was copied, who asked for the rank.

Patches of ``nn.Module`` and friends, in place for the length of a ``with`` block.
"""

import functools
import os
import sys
import weakref
from dataclasses import dataclass
from typing import Any

import torch.distributed as dist
from torch import nn

from ddplint.record.history import Site, frame_site, here
from ddplint.record.source import is_source_file, is_user_file, stack

_PLAIN = (int, float, str, bytes, type(None))
_RANK_VARIABLES = {"RANK", "LOCAL_RANK", "GLOBAL_RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK"}


@dataclass(slots=True, eq=False)
class Copied:
    original: Any
    copy: Any
    """Weak references to both parameters."""
    site: Site | None


class Construction:
    def __init__(self) -> None:
        self.assigned: dict[tuple[int, str], tuple[weakref.ref, list[Site]]] = {}
        self.copies: list[Copied] = []
        self.rank_reads: list[Site] = []
        self.calls: list[tuple[weakref.ref, Site]] = []
        """Modules that were called, by user code outside of any module's call."""
        self.wrapped = False
        """Set once DDP is built: what is assigned from then on is late; it is kept where that happened first."""
        self.late: dict[tuple[int, str], list[Site]] = {}
        self._undo: list = []
        self._inside = 0

    def site(self, owner: nn.Module, name: str) -> Site | None:
        """Where ``owner.name`` was last assigned: by a library that was adopted since, else by the user's own code."""
        entry = self.assigned.get((id(owner), name))
        if entry is None or entry[0]() is not owner:
            return None
        return _users(entry[1])

    def late_site(self, owner: nn.Module, name: str) -> Site | None:
        """Where ``owner.name`` was assigned for the first time after the wrap."""
        return _users(self.late.get((id(owner), name), []))

    def copied(self, parameter: nn.Parameter) -> Copied | None:
        return next((c for c in self.copies if c.copy() is parameter), None)

    # ------------------------------------------------------------------ patches

    def __enter__(self):
        self._replace(nn.Module, "__setattr__", self._assigning)
        self._replace(nn.Module, "register_parameter", self._assigning)
        self._replace(nn.Module, "add_module", self._assigning)
        self._replace(nn.Module, "register_buffer", self._assigning)
        self._replace(nn.Parameter, "__deepcopy__", self._copying)
        self._replace(dist, "get_rank", self._asking)
        self._replace(type(os.environ), "__getitem__", self._reading)
        before = nn.modules.module.register_module_forward_pre_hook(self._entering)
        after = nn.modules.module.register_module_forward_hook(self._left, always_call=True)
        self._undo += [before.remove, after.remove]
        return self

    def __exit__(self, *exc) -> None:
        for undo in reversed(self._undo):
            undo()
        self._undo.clear()

    def _replace(self, owner: Any, name: str, wrap) -> None:
        original = getattr(owner, name)
        setattr(owner, name, functools.wraps(original)(wrap(original)))
        self._undo.append(lambda: setattr(owner, name, original))

    def _assigning(self, original):
        def assign(module, name, *value, **keywords):
            if not all(isinstance(v, _PLAIN) for v in (*value, *keywords.values())) and (sites := _sites()):
                self.assigned[id(module), name] = weakref.ref(module), sites
                if self.wrapped:
                    self.late.setdefault((id(module), name), sites)
            return original(module, name, *value, **keywords)
        return assign

    def _copying(self, original):
        def deepcopy(parameter, memo):
            copy = original(parameter, memo)
            self.copies.append(Copied(weakref.ref(parameter), weakref.ref(copy), here()))
            return copy
        return deepcopy

    def _asking(self, original):
        def get_rank(*args, **kwargs):
            self._note_rank_read()
            return original(*args, **kwargs)
        return get_rank

    def _reading(self, original):
        def getitem(environ, key):
            if key in _RANK_VARIABLES:
                self._note_rank_read()
            return original(environ, key)
        return getitem

    def _note_rank_read(self) -> None:
        if (site := here()) is not None:
            self.rank_reads.append(site)

    def _entering(self, module, args) -> None:
        if self._inside == 0 and (frame := next(stack(), None)) is not None:
            self.calls.append((weakref.ref(module), frame_site(frame)))
        self._inside += 1

    def _left(self, module, args, output) -> None:
        self._inside = max(0, self._inside - 1)


def _users(sites: list[Site]) -> Site | None:
    return next((site for site in sites if is_user_file(site.code.co_filename)), None)


def _sites() -> list[Site]:
    """The innermost frame that may belong to a library of the model's, and the innermost one of the user's own."""
    frame, sites = sys._getframe(2), []
    while frame is not None:
        file = frame.f_code.co_filename
        if is_user_file(file):
            return [*sites, frame_site(frame)]
        if not sites and is_source_file(file):
            sites.append(frame_site(frame))
        frame = frame.f_back
    return sites

"""Ranks that outlive a lint: the jobs of a sweep differ in little, and import the same modules of the user's."""

import contextlib
from collections.abc import Iterator

from ddplint.record.gang import Gang, OnPhase
from ddplint.spec import Spec

_keepers = 0
_kept: Gang | None = None


@contextlib.contextmanager
def keep_ranks() -> Iterator[None]:
    """Within, one gang serves lint after lint of this process, as long as folder, environment and world stay the same.

    The user's modules are imported once a rank: a file that changes meanwhile is not read again.
    """
    global _keepers
    _keepers += 1
    try:
        yield
    finally:
        _keepers -= 1
        if not _keepers:
            _release()


@contextlib.contextmanager
def local_gang(spec: Spec, on_phase: OnPhase | None) -> Iterator[Gang]:
    """A gang for one lint: the kept one where it fits, else one of its own."""
    if not _keepers:
        with Gang(spec, on_phase) as gang:
            yield gang
        return
    yield _fitting(spec, on_phase)


def _fitting(spec: Spec, on_phase: OnPhase | None) -> Gang:
    global _kept
    if _kept is not None and not _kept.fits(spec):
        _release()
    if _kept is None:
        _kept = Gang(spec).__enter__()
    _kept.take(spec, on_phase)
    return _kept


def _release() -> None:
    global _kept
    gang, _kept = _kept, None
    if gang is not None:
        gang.__exit__()

"""A tensor that was saved for backward and written into before backward came: who saved it."""

import re

from ddplint.evidence import Cause
from ddplint.record.causes.flow import spelled
from ddplint.record.causes.guards import place_of
from ddplint.record.replay import Replay

_MESSAGE = re.compile(r"Tensor \[([\d, ]*)\]\].* is at version (\d+); expected version (\d+)")


def why_inplace(replay: Replay) -> Cause | None:
    """From torch's message (shape and versions) to the operation that saved the tensor, and the one that wrote it."""
    found = _MESSAGE.search(str(replay.error))
    if found is None:
        return None
    shape = tuple(int(n) for n in found[1].split(",") if n.strip())
    now, expected = int(found[2]), int(found[3])
    for saved in reversed(replay.tracer.saved):
        if saved.shape != shape or saved.version != expected:
            continue
        writes = [w for w in replay.tracer.writes if w.storage == saved.storage and w.op.order > saved.op.order]
        if writes and writes[-1].version >= min(now, expected + 1):
            written = place_of(writes[0].op.site)
            also = [f"written by {spelled(writes[0].op.name)} at {written.file}:{written.line}"] if written else []
            what = f"'{saved.name}'" if saved.name else "a tensor"
            return Cause("modified-inplace", f"{spelled(saved.op.name)} saves {what} for backward, and it is written into before backward",
                         place_of(saved.op.site), saved.op.name, also=also)
    return None

"""A rank's Python stack, as faulthandler wrote it: which lines are the user's, and does it wait for other ranks?"""

import re
from dataclasses import dataclass
from types import FrameType

from ddplint.evidence import Place
from ddplint.record import source

_THREAD = re.compile(r"^(?:Current thread|Thread) 0x([0-9a-f]+)")
_FRAME = re.compile(r'^  File "(.*)", line (\d+) in (.*)$')
_ESCAPE = re.compile(r"\\(?:x([0-9a-f]{2})|u([0-9a-f]{4})|U([0-9a-f]{8}))")
_COLLECTIVES = ("/torch/distributed/", "/torch/nn/parallel/")


@dataclass(frozen=True)
class Frame:
    file: str
    line: int
    function: str


def parse(text: str, main_thread: int | None) -> list[Frame]:
    """The main thread's frames, innermost first; the current thread's where the main one is not there."""
    threads: dict[int, list[Frame]] = {}
    current: int | None = None
    frames: list[Frame] = []
    for line in text.splitlines():
        if head := _THREAD.match(line):
            ident = int(head[1], 16)
            frames = threads[ident] = []
            current = ident if line.startswith("Current") else current
        elif found := _FRAME.match(line):
            frames.append(Frame(_unescaped(found[1]), int(found[2]), _unescaped(found[3])))
    return threads.get(main_thread) or threads.get(current) or []


def of_frame(frame: FrameType | None) -> list[Frame]:
    """A live stack of this process."""
    frames = []
    while frame is not None:
        frames.append(Frame(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name))
        frame = frame.f_back
    return frames


def _unescaped(text: str) -> str:
    """faulthandler writes what is not ASCII as Python escapes."""
    return _ESCAPE.sub(lambda found: chr(int(found[1] or found[2] or found[3], 16)), text)


def user_places(frames: list[Frame]) -> list[Place]:
    """The user's frames, outermost first."""
    return [source.place_at(f.file, f.line, f.function) for f in reversed(frames) if source.is_user_file(f.file)]


def collective(frames: list[Frame]) -> str:
    """The call in which the innermost frame waits for other ranks (all_reduce, backward, ...), or ""."""
    if not frames:
        return ""
    if frames[0].function == "_engine_run_backward":        # DDP waits for its buckets at the end of backward
        return "backward"
    if not _is_collective(frames[0]):
        return ""
    ddp = next((f.function for f in reversed(frames) if f.file.endswith("/nn/parallel/distributed.py")), "")
    if ddp:
        return {"forward": "DDP's forward", "__init__": "DDP's constructor"}.get(ddp, f"DDP's {ddp}")
    named = [f.function for f in frames if _is_collective(f) and not f.file.endswith("/c10d_logger.py")]     # a decorator
    return named[0] if named else "a collective"


def _is_collective(frame: Frame) -> bool:
    return any(part in frame.file for part in _COLLECTIVES)

"""Writing what the user asked for: a file is there whole, or as it was before."""

import contextlib
import os
from pathlib import Path


def write_whole(file: str, text: str, *, errors: str = "strict", newline: str | None = None) -> None:
    """Write UTF-8 text; a full disk costs neither the file that was there nor leaves half of a new one.

    OSError as of ``open`` and ``write``. A device or a pipe is written to as it is, and so is a file in a folder where
    no other may be made.
    """
    target = Path(file).resolve()
    beside = target.with_name(f".ddplint-{os.getpid()}")
    if (target.exists() and not target.is_file()) or not os.access(target.parent, os.W_OK):
        target.write_text(text, encoding="utf-8", errors=errors, newline=newline)
        return
    try:
        beside.write_text(text, encoding="utf-8", errors=errors, newline=newline)
        if target.exists():
            os.chmod(beside, target.stat().st_mode)
        beside.replace(target)
    finally:
        with contextlib.suppress(OSError):
            beside.unlink()

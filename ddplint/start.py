"""The console script: what needs no import is answered at once, everything else is handed to ``ddplint.cli``.

SIGTERM (``timeout``, a CI job that is cancelled) ends a lint as Ctrl-C does.
"""

import contextlib
import os
import sys

from ddplint.version import VERSION


def entry() -> None:
    answer = at_once(sys.argv[1:])
    if answer is not None:
        with contextlib.suppress(OSError):          # cli knows what to do where nobody reads, or the disk is full
            print(answer, flush=True)
            return
    import signal  # not above: what it imports takes as long as all that comes before it
    try:
        if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            signal.signal(signal.SIGTERM, _interrupt)
        from ddplint import cli
        cli.entry()
    except KeyboardInterrupt:           # where nothing is being recorded; while it is, cli tells what was seen
        print("ddplint: interrupted", file=sys.stderr)
        from ddplint.errors import INTERRUPTED
        sys.exit(INTERRUPTED)
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)        # nothing is left that could be interrupted
        if signal.getsignal(signal.SIGTERM) is _interrupt:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt


def at_once(argv: list[str]) -> str | None:
    """The answer to ``--version`` and to a bare ``rules``; None for any other command line."""
    if "--version" in argv:
        return f"ddplint {VERSION}"
    if argv == ["rules"]:
        # Kept as a file, for the rules take ten times longer to import; a test compares it with them.
        with open(os.path.join(os.path.dirname(__file__), "commands", "rules.txt"), encoding="utf-8") as table:
            return table.read().rstrip("\n")
    return None

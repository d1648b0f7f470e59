"""What a user can mend: one exception tree, each leaf one sentence; and the exit statuses."""

from typing import Any

CLEAN, FOUND, CANNOT_JUDGE = 0, 1, 2
"""Nothing at ``fail_on`` or above; findings; a bad spec, a broken rule, no evidence."""
INTERRUPTED, UNREAD = 130, 141
"""As a shell tells SIGINT (128 + 2) and SIGPIPE (128 + 13)."""


class DdplintError(Exception):
    """The root: the command line prints it without a traceback and ends with status 2."""


class SpecError(DdplintError):
    """The spec says something that cannot be meant.

    ``where`` is the dotted key (or file) at fault; ``hint`` is the nearest valid thing to type.
    """

    def __init__(self, what: str, *, where: str = "", hint: str = ""):
        self.what, self.where, self.hint = what, where, hint
        super().__init__(": ".join(part for part in (where, what) if part) + (f"; {hint}" if hint else ""))


class EvidenceError(DdplintError):
    """An evidence file cannot be read, or was written by another version."""


class ReportError(DdplintError):
    """A report cannot be written where the user asked for it."""


class StartError(DdplintError):
    """The ranks cannot be started; ``evidence`` is what was seen until then (an Evidence, or None)."""

    evidence: Any = None


class NoProgress(BaseException):
    """Raised in the user's code, in a launch, when a job has said nothing for ``run.timeout`` s or is ended from outside."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C (or SIGTERM) while scenarios ran; ``evidence`` is what was seen until then (an Evidence, or None)."""

    def __init__(self, evidence: Any = None):
        self.evidence = evidence
        super().__init__("interrupted")

"""Evidence that an earlier run has written (``evidence=FILE``), read with care: people edit and cut such files."""

from pathlib import Path
from typing import Any

from ddplint.errors import EvidenceError, SpecError
from ddplint.evidence import Evidence
from ddplint.evidence.consistency import first_fault
from ddplint.evidence_file import from_json, merge

LARGEST = 256 << 20
"""Bytes; 200 scenarios of 5,000 parameters take tens of megabytes."""


def recorded(source: Any) -> Evidence:
    """The evidence of one file or of several; EvidenceError for what is none, or does not fit together."""
    files = source if isinstance(source, list) else [source]
    if not files or not all(isinstance(file, str) and file for file in files):
        raise SpecError("expected a file, or a list of files", where="evidence")
    parts = [from_json(_text(file), source=file) for file in files]
    for file, part in zip(files, parts, strict=True):
        if (fault := first_fault(part)) is not None:
            raise EvidenceError(f"{file} contradicts itself; was it edited? {fault}")
    return merge(parts)


def _text(file: str) -> str:
    try:
        with Path(file).open("rb") as source:       # a pipe or a device may have no end
            content = source.read(LARGEST + 1)
        if len(content) > LARGEST:
            raise EvidenceError(f"{file} has more than {LARGEST >> 20} MiB, more than any lint writes")
        return content.decode("utf-8")
    except (OSError, ValueError) as error:
        if isinstance(error, UnicodeDecodeError):
            raise EvidenceError(f"{file} is not an evidence file (not UTF-8)") from error
        raise EvidenceError(f"{file} cannot be read ({getattr(error, 'strerror', None) or error})") from error

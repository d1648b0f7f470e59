"""``ddplint explain-error FILE|-``: what a pasted DDP log says, which rule that is, and what to type next."""

import argparse
import json
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from ddplint.commands.ddp_log import Sighting, read
from ddplint.errors import DdplintError
from ddplint.render.manual import page
from ddplint.render.text import clean, listed, plural, ranges

if TYPE_CHECKING:
    from ddplint.evidence import Evidence

NAMES = 20


def explain_error(argv: list[str]) -> int:
    """0: something was recognised; 1: nothing was. Raises DdplintError for a log that cannot be read."""
    parser = argparse.ArgumentParser(
        prog="ddplint explain-error", description="Explain the error that a DDP job printed.",
        epilog="With the overrides of a lint (+model=NAME +scenario=NAME ...) the model is built, and the bare indices of "
               "DDP's message become parameter names.")
    parser.add_argument("log", help="a file, or - for stdin")
    parser.add_argument("--format", choices=("text", "json"), default="text", help="default: text")
    options, lint = parser.parse_known_intermixed_args(argv)
    sightings = read(_text(options.log))
    names = _parameter_names(lint) if lint else []
    print(_as_json(sightings, names) if options.format == "json" else "\n\n".join(_told(sightings, names, lint)))
    return 0 if sightings else 1


def _text(log: str) -> str:
    if log == "-":
        return sys.stdin.buffer.read().decode(errors="replace")
    try:
        return Path(log).read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise DdplintError(f"{log} cannot be read ({error.strerror}); give a file, or - and paste the log") from error


def _told(sightings: list[Sighting], names: list[str], lint: list[str]) -> Iterable[str]:
    if not sightings:
        yield ("No fault that DDP, NCCL or gloo prints was recognised.\n"
               "  next     ddplint +model=NAME +scenario=NAME   (runs the model under DDP and says what is wrong)")
    for sighting in sightings:
        yield "\n".join(_lines(sighting, names, lint))


def _lines(sighting: Sighting, names: list[str], lint: list[str]) -> Iterable[str]:
    fault = sighting.fault
    rule = page(fault.rule)
    yield f"{fault.rule} ({rule.severity}): {rule.summary}"
    where = f", rank{'s' if len(sighting.ranks) > 1 else ''} {ranges(sighting.ranks)}" if sighting.ranks else ""
    times = f", {plural(sighting.count, 'time')}" if sighting.count > 1 else ""
    yield f'  said     "{clean(sighting.text)}"{times}{where}'
    yield f"  means    {fault.means}"
    for rank, indices in sighting.indices.items():
        yield f"  indices  {_of(rank)}{listed(list(map(str, indices)), NAMES)}{_named(indices, names)}"
    for rank, told in sighting.names.items():
        yield f"  names    {_of(rank)}{listed([clean(name) for name in told], NAMES)}"
    command = fault.next.replace("+model=NAME +scenario=NAME", " ".join(map(clean, lint)) or "+model=NAME +scenario=NAME")
    yield f"  next     {command}"
    yield f"  page     ddplint explain {fault.rule}"


def _of(rank: int | None) -> str:
    return "" if rank is None else f"rank {rank}: "


def _named(indices: list[int], names: list[str]) -> str:
    if not names:
        return ""
    known = [clean(names[index]) if index < len(names) else f"{index} is not in this model" for index in indices]
    return f" = {listed(known, NAMES)}"


def _as_json(sightings: list[Sighting], names: list[str]) -> str:
    return json.dumps([{
        "rule": sighting.fault.rule, "said": sighting.text, "count": sighting.count, "means": sighting.fault.means,
        "ranks": sighting.ranks, "follows": sighting.fault.collateral, "next": sighting.fault.next,
        "parameters": [{"rank": rank, "indices": indices, "names": _plain_names(indices, names)}
                       for rank, indices in sighting.indices.items()],
        "names": [{"rank": rank, "names": told} for rank, told in sighting.names.items()],
    } for sighting in sightings], indent=1)


def _plain_names(indices: list[int], names: list[str]) -> list[str | None]:
    return [names[index] if index < len(names) else None for index in indices] if names else []


def _parameter_names(lint: list[str]) -> list[str]:
    """DDP counts the trainable parameters in the order of the model; the lint's evidence lists them."""
    models = _recorded(lint).models
    return [parameter.name for parameter in models[0].parameters if parameter.trainable] if models else []


def _recorded(lint: list[str]) -> "Evidence":
    """A lint in this process, only where it is asked for. Raises DdplintError where it records nothing."""
    from ddplint.cli import main
    from ddplint.evidence_file import from_json
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "evidence.json")
        main([*lint, "report.terminal=false", "run.causes=false", f"report.evidence={file}"])
        if not file.exists():
            raise DdplintError(f"the model could not be built from {' '.join(lint)}, so the indices keep their numbers")
        return from_json(file.read_text(encoding="utf-8"))

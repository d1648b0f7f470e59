"""Any error of composing as one readable message."""

import difflib
import os
import re

import yaml
from hydra.errors import HydraException, MissingConfigException
from omegaconf.errors import (
    ConfigAttributeError,
    ConfigKeyError,
    GrammarParseError,
    InterpolationKeyError,
    MissingMandatoryValue,
    OmegaConfBaseException,
)

from ddplint.compose import fields
from ddplint.compose.hydra_app import options
from ddplint.compose.source import yaml_error
from ddplint.errors import DdplintError

USER_ERRORS = (DdplintError, HydraException, OmegaConfBaseException, yaml.YAMLError, UnicodeDecodeError, RecursionError)


def is_mendable(error: BaseException) -> bool:
    """Whether the user can mend it: an error of composing, some of which Hydra raises as a bare ValueError."""
    return isinstance(error, USER_ERRORS) or _raised_by(error).startswith(("hydra.", "omegaconf.", "hydra_plugins."))


def _raised_by(error: BaseException) -> str:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace.tb_frame.f_globals.get("__name__", "") if trace is not None else ""


def readable(error: BaseException) -> str:
    """What is wrong, where, and what to type; several lines only where Hydra lists candidates."""
    cause = _first_of_ours(error)
    if isinstance(cause, DdplintError):
        return str(cause)
    if isinstance(cause, yaml.YAMLError):
        return str(yaml_error(cause, "configuration"))
    if isinstance(cause, RecursionError):
        return "the configuration is nested too deeply, or an interpolation refers to itself"
    if isinstance(error, MissingConfigException):
        return _missing(error)
    if isinstance(error, OSError):          # Hydra's own: a full disk, a folder that may not be written
        return f"{error.filename or 'the folder in which the jobs of a sweep leave what they saw (hydra.sweep.dir)'}: {error.strerror}"
    if isinstance(cause, OmegaConfBaseException):
        return _omegaconf(cause)
    return _lines(error)


def _first_of_ours(error: BaseException) -> BaseException:
    """The innermost error of a chain that says more than those wrapped around it."""
    best, current = error, error
    while current is not None and not (isinstance(best, DdplintError) or getattr(best, "full_key", None)):
        if isinstance(current, DdplintError | yaml.YAMLError | RecursionError | OmegaConfBaseException):
            best = current
        current = current.__cause__ or current.__context__
    return best


def _missing(error: MissingConfigException) -> str:
    """A config file that is not there: the group, the candidates, and which file asked for it."""
    group, _, wanted = (error.missing_cfg_file or "").rpartition("/")
    if error.options is None or not group:
        return _lines(error).split("\nConfig search path")[0]
    asked = re.match(r"In '([^']+)'", str(error))
    where = f"{asked[1]}.yaml: " if asked and asked[1] != "ddplint" else ""
    what = f"no {group} is called '{wanted}'"
    what += f"; {fields.nearest(wanted, error.options)}" if error.options else ""
    folders = re.findall(r"path=user://(\S+)", str(error))
    searched = ", ".join([*map(_relative, folders), "the shipped configs"])
    return f"{where}{what} (searched {searched})"


def _relative(folder: str) -> str:
    path = os.path.relpath(folder)
    return folder if path.startswith("..") else f"./{path}"


def _omegaconf(error: OmegaConfBaseException) -> str:
    where = error.full_key or ""
    if isinstance(error, MissingMandatoryValue):
        return f"{where}: a value is missing (???); {where}=VALUE gives it"
    if isinstance(error, ConfigAttributeError | ConfigKeyError) and "not in struct" in str(error):
        return _not_in_struct(error, where)
    text = str(error).split("\n")[0]
    if isinstance(error, GrammarParseError):
        text = f"malformed interpolation: {text}"
    text += _interpolated(error, text)
    return f"{where}: {text}" if where else text


def _interpolated(error: OmegaConfBaseException, text: str) -> str:
    """What to type where an interpolation stands for something that is not there."""
    if variable := re.search(r"Environment variable '(\w+)' not found", text):
        return f"; {variable[1]}=VALUE ddplint ... sets it"
    missing = re.search(r"Interpolation key '(\w+)[^']*' not found", text)
    if missing and isinstance(error, InterpolationKeyError) and (names := options(missing[1])):
        return f"; +{missing[1]}=NAME adds it, one of {', '.join(names)}"
    return ""


def _not_in_struct(error: OmegaConfBaseException, where: str) -> str:
    siblings = [] if error.parent_node is None else [str(key) for key in error.parent_node if key != "hydra"]
    near = difflib.get_close_matches(str(error.key), siblings, 1)
    hint = f"did you mean '{near[0]}'?" if near else f"+{where}=VALUE adds it"
    return f"{where}: no such key; {hint}"


def _lines(error: BaseException) -> str:
    lines = [line.rstrip() for line in str(error).splitlines()]
    text = "\n".join(line for line in lines if line.strip())
    return text or type(error).__name__

"""Hydra, run as a guest: one call that composes, runs the jobs and gives back what each left.

Hydra owns ``sys.argv``, prints errors itself and ends the process; here it is made to raise, and everything that it
changes is put back.
"""

import argparse
import contextlib
import logging
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import hydra
from hydra._internal.utils import get_args_parser
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.core.singleton import Singleton
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from ddplint.compose import fields, search, sweep
from ddplint.compose.borrow import borrowed
from ddplint.compose.parse import KEYS
from ddplint.errors import SpecError

# Sections whose keys we check ourselves, with the nearest valid name: any of them may be added without Hydra's `+`.
CLOSED = ("run.", "ddp.", "rules.", "checklist.", "report.")
PROJECT_ROOT = "PROJECT_ROOT"


def run_jobs(argv: list[str], job: Callable[[DictConfig], None]) -> list[sweep.JobResult]:
    """Compose ``argv`` and call ``job``, a module-level function, once per job; it ends with ``sweep.leave``.

    Empty only where one of Hydra's own options (``--help``, ``--cfg``, ...) was asked for. Raises what Hydra raises,
    SystemExit for a bad option.
    """
    sweep.start()
    with _as_guest("ddplint"):
        arguments = get_args_parser().parse_intermixed_args(argv)
        search.register(arguments.config_dir)
        options = [argument for argument in argv if argument not in arguments.overrides]
        sys.argv += [*options, *map(_addable, arguments.overrides)]      # Hydra wants its overrides in one row
        hydra.main(version_base="1.3", config_path=search.SHIPPED, config_name="ddplint")(job)()
    results = sweep.collect()
    if not results and not _asked_hydra(arguments):
        raise SpecError("no job ran", hint="the sweep's overrides match nothing")
    return results


def composed(overrides: list[str]) -> dict[str, Any]:
    """Our sections of what these overrides compose, with no job run."""
    with _as_guest("ddplint"):
        search.register(None)
        with hydra.initialize_config_module(search.SHIPPED.removeprefix("pkg://"), version_base="1.3"):
            return plain(hydra.compose("ddplint", overrides))


def _addable(override: str) -> str:
    return f"++{override}" if override.startswith(CLOSED) and "=" in override else override


def _asked_hydra(arguments: argparse.Namespace) -> bool:
    asked = (arguments.help, arguments.hydra_help, arguments.cfg, arguments.info, arguments.shell_completion)
    return any(asked)


@contextlib.contextmanager
def _as_guest(program: str) -> Iterator[None]:
    with contextlib.ExitStack() as stack:
        stack.callback(setattr, sys, "argv", sys.argv)
        stack.callback(Singleton.set_state, Singleton.get_state())
        for variable in ("HYDRA_FULL_ERROR", PROJECT_ROOT):
            stack.callback(_restore_environment, variable, os.environ.get(variable))
        stack.callback(_restore_logging, logging.root.handlers[:], logging.root.level, _switched_off())
        sys.argv, os.environ["HYDRA_FULL_ERROR"] = [program], "1"       # raise, instead of print and exit
        if Path(".project-root").exists():      # lightning-hydra-template: its train.py sets it, by rootutils
            os.environ.setdefault(PROJECT_ROOT, os.getcwd())
        GlobalHydra.instance().clear()
        yield


def _restore_environment(variable: str, value: str | None) -> None:
    os.environ.pop(variable, None)
    if value is not None:
        os.environ[variable] = value


def _switched_off() -> set[str]:
    loggers = logging.root.manager.loggerDict
    return {name for name, logger in loggers.items() if getattr(logger, "disabled", False)}


def _restore_logging(handlers: list[logging.Handler], level: int, switched_off: set[str]) -> None:
    """Hydra configures the root logger, and its own by switching all others off."""
    logging.root.handlers[:], logging.root.level = handlers, level
    for name in _switched_off() - switched_off:
        logging.getLogger(name).disabled = False


def start_folder() -> str:
    """Where the command was typed, also where ``hydra.job.chdir`` has left it; callable within a job only."""
    return HydraConfig.get().runtime.cwd


def plain(cfg: DictConfig) -> dict[str, Any]:
    """Our sections of the composed mapping, resolved; of the user's own, only the names, and what ours borrow (`from`).

    What belongs to the user may hold interpolations that only their program can resolve.
    """
    container = {str(key): _section(cfg, key) if key in KEYS else None for key in cfg}
    return borrowed(container, lambda name, where: _users(cfg, name, where))


def _users(cfg: DictConfig, name: str, where: str) -> Any:
    value = OmegaConf.select(cfg, name)
    if value is None:
        group, names = name.split(".")[0], options(name.split(".")[0])
        raise SpecError(f"the config has no section '{name}'", where=where,
                        hint=f"+{group}=NAME, one of {', '.join(names)}" if names else fields.nearest(name, map(str, cfg)))
    return _contents(value) if OmegaConf.is_config(value) else value


def _section(cfg: DictConfig, key: str) -> Any:
    try:
        value = cfg[key]
        return _contents(value) if OmegaConf.is_config(value) else value
    except OmegaConfBaseException as error:
        if error.full_key:
            raise
        raise SpecError(str(error).split("\n")[0], where=key) from error


def _contents(value: Any) -> Any:
    return OmegaConf.to_container(value, resolve=True, throw_on_missing=True)


def options(group: str) -> list[str]:
    """The names of a config group on the current search path, the user's among them; none outside of a Hydra run."""
    running = GlobalHydra.instance()
    return running.config_loader().get_group_options(group) if running.is_initialized() else []

"""Where Hydra looks: the user's own folders first, then the shipped ones.

The plugin is registered by the program, not shipped in ``hydra_plugins``: there, every Hydra program in the
environment would load it.
"""

from pathlib import Path

from hydra.core.config_search_path import ConfigSearchPath, SearchPathQuery
from hydra.core.plugins import Plugins
from hydra.plugins.search_path_plugin import SearchPathPlugin

from ddplint.compose.source import UserFolder

FOLDERS = ("configs", "conf", "config")
SHIPPED = "pkg://ddplint.configs"

_given: list[Path] = []


def user_folders() -> list[Path]:
    """``--config-dir``, then the first of ./configs, ./conf and ./config that is there."""
    return _given + [folder for folder in map(Path, FOLDERS) if folder.is_dir()][:1]


class UserConfigs(SearchPathPlugin):
    def manipulate_search_path(self, search_path: ConfigSearchPath) -> None:
        entries = search_path.get_path()
        has_main = any(entry.provider == "main" for entry in entries)
        for folder in user_folders():
            path = f"user://{folder.absolute()}"
            if has_main:                # in this order: each is put directly before the shipped configs
                search_path.prepend("ddplint-user", path, SearchPathQuery(provider="main"))
            else:
                search_path.append("ddplint-user", path)
        if not any(entry.path == SHIPPED for entry in entries):     # --config-path was given
            search_path.append("ddplint", SHIPPED)


def register(config_dir: str | None) -> None:
    """``config_dir`` is what ``--config-dir`` says; it wins over every other folder."""
    _given[:] = [Path(config_dir)] if config_dir else []
    plugins = Plugins.instance()
    plugins.register(UserConfigs)
    plugins.register(UserFolder)

"""The user's config folder as a Hydra source that cannot be harmed by what it reads."""

import contextlib
import os
from pathlib import Path

import yaml
from hydra._internal.core_plugins.file_config_source import FileConfigSource
from hydra.plugins.config_source import ConfigResult

from ddplint.errors import SpecError

LARGEST_FILE = 250_000          # bytes: OmegaConf reads about 100 kB a second
MOST_VALUES = 50_000
DEEPEST = 60


class UserFolder(FileConfigSource):
    """``file://`` with a check before the file is composed; Hydra finds it by its scheme, ``user://``."""

    @staticmethod
    def scheme() -> str:
        return "user"

    def load_config(self, config_path: str) -> ConfigResult:
        file = Path(self.path, self._normalize_file_name(config_path))
        check_file(file)
        try:
            return super().load_config(config_path)
        except yaml.YAMLError as error:             # what only OmegaConf's loader refuses: a key given twice
            raise yaml_error(error, _relative(file)) from error
        except ValueError as error:                 # a malformed `# @package` line
            raise SpecError(str(error), where=_relative(file)) from error


def check_file(file: Path) -> None:
    """SpecError for a file that is no text, no YAML mapping, or that would not fit into memory once composed."""
    where = _relative(file)
    try:
        if not file.is_file():
            return                                  # Hydra says what it looked for
        if file.stat().st_size > LARGEST_FILE:
            raise SpecError(f"the file has more than {LARGEST_FILE // 1000} kB", where=where,
                            hint="keep data in a file of its own and name it by scenario.NAME.file")
        root = _compose(file.read_bytes().decode("utf-8"))
    except UnicodeDecodeError as error:
        raise SpecError(f"the file is not UTF-8 (byte {error.start})", where=where, hint="save it as UTF-8") from error
    except OSError as error:
        raise SpecError(f"cannot be read ({error.strerror})", where=where) from error
    except yaml.YAMLError as error:
        raise yaml_error(error, where) from error
    except RecursionError as error:
        raise SpecError("is nested too deeply", where=where) from error
    if root is None:
        return
    if not isinstance(root, yaml.MappingNode):
        raise SpecError("expected a mapping at the top of the file", where=where)
    _measure(root, where)


def _compose(text: str) -> yaml.Node | None:
    """By the C loader, which is ten times as fast; what it refuses is read once more by the one that Hydra uses."""
    with contextlib.suppress(yaml.YAMLError, AttributeError):
        return yaml.compose(text, Loader=yaml.CSafeLoader)
    return yaml.compose(text, Loader=_Shallow)


class _Shallow(yaml.SafeLoader):
    """Gives up as soon as it is deeper than any file may be: on brackets in brackets its time grows with the square."""

    _depth = 0

    def compose_node(self, parent: yaml.Node | None, index: object) -> yaml.Node | None:
        self._depth += 1
        if self._depth > 2 * DEEPEST:
            raise RecursionError
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node


def yaml_error(error: yaml.YAMLError, where: str) -> SpecError:
    """YAML's own complaint in one line."""
    mark = getattr(error, "problem_mark", None)
    problem, hint = getattr(error, "problem", None) or str(error).split("\n")[0], ""
    if "'\\t'" in problem or "\t" in problem:
        problem, hint = "a tab", "YAML is indented by spaces"
    elif "but got '{'" in problem:
        hint = 'an interpolation between braces needs quotes: "${...}"'
    place = f"{where}:{mark.line + 1}:{mark.column + 1}" if mark else where
    return SpecError(f"not valid YAML: {problem}", where=place, hint=hint)


def _measure(root: yaml.Node, where: str) -> None:
    sizes: dict[int, int] = {}
    if _size(root, sizes, 0, where) > MOST_VALUES:
        raise SpecError(f"more than {MOST_VALUES} values once its aliases are followed", where=where)


def _size(node: yaml.Node, sizes: dict[int, int], depth: int, where: str) -> int:
    """How many values the node stands for, each alias counted at every place."""
    if depth > DEEPEST:
        raise SpecError(f"is nested more than {DEEPEST} deep", where=where)
    if id(node) in sizes:
        if sizes[id(node)] < 0:
            raise SpecError("an alias that contains itself", where=where)
        return sizes[id(node)]
    sizes[id(node)] = -1
    parts = node.value if isinstance(node, yaml.CollectionNode) else []
    flat = [part for pair in parts for part in pair] if isinstance(node, yaml.MappingNode) else parts
    sizes[id(node)] = 1 + sum(_size(part, sizes, depth + 1, where) for part in flat)
    return sizes[id(node)]


def _relative(file: Path) -> str:
    path = os.path.relpath(file)
    return str(file) if path.startswith("..") else path

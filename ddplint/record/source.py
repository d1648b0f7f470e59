"""Whose line is it? Places in the user's own code, found from live frames and tracebacks.

A file is *the user's* when it belongs neither to ddplint, nor to torch, nor to the standard library, nor to an
installed library. A library that the model's own classes come from (transformers, timm, ...) is adopted: the line at
fault may well lie in it.
"""

import functools
import linecache
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FrameType, TracebackType
from typing import Any

from ddplint.errors import NoProgress
from ddplint.evidence import Place

_OURS = str(Path(__file__).resolve().parent.parent) + "/"
_EXAMPLES = _OURS + "examples/"          # the shipped models, where ddplint is installed: linted as if they were the user's
_STAND_INS = (_EXAMPLES, _OURS + "record/lightning.py", _OURS + "generators.py")      # run in place of the user's code
_STANDARD = tuple({sysconfig.get_paths()[key] + "/" for key in ("stdlib", "platstdlib")})
_LIBRARY_FOLDERS = ("/site-packages/", "/dist-packages/")
_NEVER_ADOPTED = ("torch", "ddplint", "hydra", "omegaconf", "numpy", "_pytest", "pytest", "functorch", "builtins")

_folder = ""
_adopted: set[str] = set()


def set_folder(folder: str) -> None:
    """Places are given relative to this folder; what lies in it, outside of any site-packages, is the user's.

    What was adopted for another model no longer counts.
    """
    global _folder
    _adopted.clear()
    _folder = str(Path(folder).resolve()) + "/"
    _forget()


def _forget() -> None:
    for known in (is_user_file, is_source_file, is_own_file):
        known.cache_clear()


def adopt(model) -> None:
    """Count the libraries that the model's classes come from as the user's own source (torch never)."""
    for module in model.modules():
        package = type(module).__module__.partition(".")[0]
        if package not in _NEVER_ADOPTED and (root := _package_root(package)):
            _adopted.add(root)
    _forget()


def _package_root(package: str) -> str | None:
    file = getattr(sys.modules.get(package), "__file__", None)
    if file is None or not any(folder in file for folder in _LIBRARY_FOLDERS):
        return None
    return str(Path(file).parent) + "/" if Path(file).name == "__init__.py" else file


@functools.cache
def is_user_file(path: str) -> bool:
    """Whether a line of this file may be blamed."""
    if path.startswith(_EXAMPLES):
        return True
    if path.startswith(("<", _OURS)):
        return False
    if any(path.startswith(root) for root in _adopted):
        return True
    inside = bool(_folder) and path.startswith(_folder)
    if any(folder in (path[len(_folder) - 1:] if inside else path) for folder in _LIBRARY_FOLDERS):
        return False
    return (inside or not path.startswith(_STANDARD)) and path not in _written_by_libraries(len(sys.modules))


@functools.lru_cache(1)
def _written_by_libraries(modules: int) -> frozenset[str]:
    """Files outside of any library that are the source of a library's modules: it wrote them while it ran (torch_geometric does)."""
    files = {getattr(module, "__file__", None): name for name, module in list(sys.modules.items()) if "." in name}
    return frozenset(file for file, name in files.items() if file and not any(folder in file for folder in _LIBRARY_FOLDERS)
                     and _package_root(name.partition(".")[0]) is not None)


@functools.cache
def is_source_file(path: str) -> bool:
    """Whether the file may turn out to be the user's, once the model's libraries are adopted."""
    if is_user_file(path):
        return True
    folder = next((folder for folder in _LIBRARY_FOLDERS if folder in path), None)
    package = path.partition(folder)[2].partition("/")[0].removesuffix(".py") if folder else ""
    return bool(package) and package not in _NEVER_ADOPTED and not path.startswith(_OURS)


@functools.cache
def is_own_file(path: str) -> bool:
    """Whether the user wrote this file: a user file outside every adopted library."""
    return is_user_file(path) and not any(path.startswith(root) for root in _adopted)


def place_at(file: str, line: int, function: str = "") -> Place:
    """A Place with its source line; ``file`` becomes relative where it lies in the folder of the lint."""
    text = linecache.getline(file, line).strip()
    shown = file[len(_folder):] if _folder and file.startswith(_folder) else file
    return Place(shown, line, function, text)


def file_of(place: Place) -> str:
    """The absolute path of a place's file."""
    return place.file if place.file.startswith("/") else _folder + place.file


def defined_at(function: Any) -> list[Place]:
    """Where a function of the user's is defined; nothing for anything else."""
    code = getattr(function, "__code__", None)
    known = code is not None and is_user_file(code.co_filename)
    return [place_at(code.co_filename, code.co_firstlineno, code.co_name)] if known else []


def stack(frame: FrameType | None = None, skip: int = 0) -> Iterator[FrameType]:
    """The frames of user code, innermost first, from the caller (or ``frame``) outwards."""
    frame = frame or sys._getframe(1)
    while frame is not None:
        if is_user_file(frame.f_code.co_filename):
            if skip == 0:
                yield frame
            else:
                skip -= 1
        frame = frame.f_back


def frame_place(frame: FrameType) -> Place:
    return place_at(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)


def user_place(skip: int = 0, frame: FrameType | None = None) -> Place | None:
    """The innermost user frame of the current stack (or of ``frame``'s), after passing over ``skip`` of them."""
    found = next(stack(frame or sys._getframe(1), skip), None)
    return frame_place(found) if found is not None else None


def user_frames(trace: TracebackType | FrameType | BaseException | None = None) -> list[Place]:
    """The user's frames, outermost first, of a traceback, an exception, a frame or (None) the current stack."""
    if isinstance(trace, BaseException):
        trace = trace.__traceback__
    if isinstance(trace, TracebackType):
        return _traceback_frames(trace)
    return [frame_place(frame) for frame in stack(trace or sys._getframe(1))][::-1]


def _traceback_frames(trace: TracebackType | None) -> list[Place]:
    places = []
    while trace is not None:
        code: CodeType = trace.tb_frame.f_code
        if is_user_file(code.co_filename):
            places.append(place_at(code.co_filename, trace.tb_lineno, code.co_name))
        trace = trace.tb_next
    return places


def first_error(error: BaseException) -> BaseException:
    """Where a GPU has failed, the error that told so first: noting the end of the step, which reads from it, raises again."""
    while (before := error.__context__) is not None and _of_gpu(error) and _of_gpu(before):
        error = before
    return error


def _of_gpu(error: BaseException) -> bool:
    """A GPU tells its errors late, at any call: that need not be the one at fault."""
    return type(error).__name__ in ("AcceleratorError", "OutOfMemoryError") or str(error).startswith("CUDA error")


def is_ours(error: BaseException) -> bool:
    """Whether ddplint's own code raised this: the innermost frame is one of ours, and not one that ends a user's."""
    if isinstance(error, NoProgress) or _of_gpu(error):
        return False
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    file = trace.tb_frame.f_code.co_filename if trace is not None else ""
    return file.startswith(_OURS) and not file.startswith(_STAND_INS)

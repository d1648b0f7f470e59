"""The package holds all that it needs, wherever it is run from."""

import re
import subprocess
import sys
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest
from setuptools import find_packages

import ddplint

ROOT = Path(__file__).resolve().parent.parent
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_every_package_is_listed():
    listed = set(PYPROJECT["tool"]["setuptools"]["packages"])
    found = set(find_packages(str(ROOT), include=["ddplint", "ddplint.*"]))
    assert listed == found | {"ddplint.configs", "ddplint.examples"}


def test_every_folder_of_modules_is_a_package():
    folders = {path.parent for path in (ROOT / "ddplint").rglob("*.py")}
    assert [str(folder) for folder in folders if not (folder / "__init__.py").exists()] == []


def test_every_dependency_says_why_it_is_there():
    section = re.search(r"\ndependencies = \[\n(.*?)\n\]", (ROOT / "pyproject.toml").read_text(), re.DOTALL)[1]
    assert [line for line in section.splitlines() if "# " not in line] == []


@pytest.fixture(scope="session")
def wheel(tmp_path_factory) -> Path:
    """Built from a copy, so that nothing is left in the tree; setuptools comes with torch, so no network is needed."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    for name in ("ddplint", "configs", "examples"):
        _copy(ROOT / name, source / name)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        (source / name).write_bytes((ROOT / name).read_bytes())
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "-q", "-w", folder, source]
    subprocess.run(command, check=True, capture_output=True, text=True)
    return next(folder.glob("*.whl"))


def _copy(source: Path, target: Path) -> None:
    for path in source.rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            place = target / path.relative_to(source)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(path.read_bytes())


def test_the_wheel_holds_every_config_module_and_template(wheel):
    inside = set(zipfile.ZipFile(wheel).namelist())
    wanted = {f"ddplint/configs/{p.relative_to(ROOT / 'configs')}" for p in (ROOT / "configs").rglob("*.yaml")}
    wanted |= {f"ddplint/examples/{p.name}" for p in (ROOT / "examples").glob("*.py")}
    package = [p for p in (ROOT / "ddplint").rglob("*") if p.is_file() and "__pycache__" not in p.parts]
    wanted |= {p.relative_to(ROOT).as_posix() for p in package}
    assert wanted - inside == set()


def test_an_installed_wheel_composes_in_an_empty_folder(wheel, tmp_path):
    python = _environment_with(wheel, tmp_path / "environment")
    empty = tmp_path / "empty"
    empty.mkdir()
    command = [python, "-I", "-m", "ddplint", "+model=multitask", "--cfg", "job", "-p", "model"]
    ended = subprocess.run(command, cwd=empty, text=True, capture_output=True)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "_target_: ddplint.examples.multitask.MultiTaskNet" in ended.stdout
    assert list(empty.iterdir()) == []
    where = subprocess.run([python, "-I", "-c", "import ddplint.examples as e; print(e.__file__)"], cwd=empty, text=True,
                           capture_output=True).stdout
    assert str(tmp_path) in where


def _environment_with(wheel: Path, folder: Path) -> Path:
    """A virtual environment that holds the wheel alone and borrows everything else from this one."""
    venv.create(folder, with_pip=False, symlinks=True)
    site = next(folder.glob("lib/python*/site-packages"))
    zipfile.ZipFile(wheel).extractall(site)
    borrowed = [path for path in sys.path if path.endswith("-packages")]
    (site / "borrowed.pth").write_text("\n".join(borrowed))
    return folder / "bin" / "python"


def test_the_readme_and_ci_install_the_same_extras():
    """Both run the tests."""
    asked = [re.findall(r"'\.\[([\w,]+)\]'", (ROOT / file).read_text()) for file in ("README.md", ".ci/run")]
    assert asked[0] == asked[1] != []


def test_the_public_names():
    assert ddplint.__all__ == [
        "DdplintError", "Evidence", "Finding", "Problem", "Report", "Spec", "SpecError", "lint", "main", "rule"]
    assert {name for name in ddplint.__all__ if not hasattr(ddplint, name)} == set()
    with pytest.raises(AttributeError, match="module 'ddplint' has no attribute 'lnit'"):
        ddplint.lnit  # noqa: B018


@pytest.mark.parametrize("statement", [
    "import ddplint; [getattr(ddplint, name) for name in ddplint.__all__]",
    "import ddplint.cli; ddplint.cli.main(['+model=multitask', 'run.steps=-1'])",
])
def test_the_parent_never_imports_torch(statement):
    code = f"{statement}\nimport sys; assert 'torch' not in sys.modules"
    ended = subprocess.run([sys.executable, "-c", code], cwd=ROOT, text=True, capture_output=True)
    assert ended.returncode == 0, ended.stderr


def test_importing_the_package_is_light():
    code = "import ddplint, sys; print([m for m in ('torch', 'hydra', 'omegaconf', 'rich') if m in sys.modules])"
    ended = subprocess.run([sys.executable, "-c", code], cwd=ROOT, text=True, capture_output=True)
    assert (ended.stdout, ended.stderr) == ("[]\n", "")

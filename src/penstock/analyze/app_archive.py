"""The app's code on Spark's workers, wherever they run: its own file by value, what lies beside it as an archive."""

from __future__ import annotations

import ast
import hashlib
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any
from zipfile import ZIP_DEFLATED, ZipFile

from penstock.app import App
from penstock.errors import ConfigError

if TYPE_CHECKING:
    from pyspark import SparkContext

FILES_MAX = 2_000
BYTES_MAX = 32 << 20  # each executor fetches and unpacks it before its first task


def send_app_code(context: SparkContext, apps: Sequence[ModuleType], folders: Sequence[str], tmp: Path) -> None:
    """Give the workers what the functions of these apps refer to, before one is used; ConfigError if it is too large.

    The workers of a run keep the code of its start: a file that is edited later changes nothing.
    """
    from pyspark import cloudpickle

    for module in (*apps, *_of_driver(folders)):
        cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]  # it has no types
    files = {name: path.read_bytes() for name, path in files_beside(apps, folders).items()}
    includes: Any = context._python_includes
    folder = f"penstock-app-{_digest(files)}"
    if not files or folder in includes:
        return
    archive = tmp / f"{folder}.zip"
    with ZipFile(archive, "w", ZIP_DEFLATED) as packed:
        for name, content in files.items():
            packed.writestr(name, content)
    # As addPyFile does it, but unpacked: a package reads the files that belong to it.
    context.addArchive(f"{archive}#{folder}")
    includes.append(folder)


def _digest(files: Mapping[str, bytes]) -> str:
    """The same for the same code: it is sent once, and what is sent later comes first on the path of a worker."""
    found = hashlib.sha256()
    for name, content in sorted(files.items()):
        found.update(f"{name}\0{len(content)}\0".encode() + content)
    return found.hexdigest()[:12]


def files_beside(apps: Sequence[ModuleType], folders: Sequence[str]) -> dict[str, Path]:
    """What these modules import from the folders, and what that imports: names in the archive, and files.

    All files of a package belong to it, and of a folder without `__init__.py` those of Python. ConfigError if they are
    too large.
    """
    found: dict[str, Path] = {}
    known = set(sys.modules)  # what was imported by a name that no text shows
    waiting = sorted({name.partition(".")[0] for name in known if _is_below(sys.modules[name], folders)})
    for app in apps:
        waiting += _imported(Path(str(app.__file__)))
    seen: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        for folder in folders:
            more = dict(_files(name, Path(folder)))
            if more and _is_own(name, folder):
                _refuse_too_much(name, more, found)
                found |= more
                waiting += [other for path in more.values() if path.suffix == ".py" for other in _imported(path)]
                break
    return found


def _of_driver(folders: Sequence[str]) -> Iterator[ModuleType]:
    """Modules beside the app that a worker cannot import: they declare functions for Spark, or an App."""
    for module in list(sys.modules.values()):
        if _is_below(module, folders) and any(_is_of_driver(value) for value in list(vars(module).values())):
            yield module


def _is_of_driver(value: object) -> bool:
    return isinstance(value, App) or hasattr(value, "evalType")  # each kind of PySpark's functions has one


def _is_below(module: ModuleType, folders: Sequence[str]) -> bool:
    file = getattr(module, "__file__", None)
    if not isinstance(file, str) or module.__name__ not in sys.modules:
        return False
    name = module.__name__.partition(".")[0]
    return any(file.startswith(os.path.join(folder, name)) and _is_own(name, folder) for folder in folders)


def _is_own(name: str, folder: str) -> bool:
    """Whether Python takes this name from this folder, as far as it was imported."""
    module = sys.modules.get(name)
    if module is None:
        return True
    places = [module.__file__] if getattr(module, "__file__", None) else list(getattr(module, "__path__", ()))
    return any(str(place).startswith(os.path.join(folder, name)) for place in places)


def _files(name: str, folder: Path) -> Iterator[tuple[str, Path]]:
    package = folder / name
    if package.is_dir():
        is_package = (package / "__init__.py").is_file()
        for root, folders, files in os.walk(package):
            folders[:] = sorted(below for below in folders if not below.startswith((".", "__pycache__")))
            for file in sorted(files):
                if not file.startswith(".") and (is_package or file.endswith(".py")):
                    path = Path(root, file)
                    yield path.relative_to(folder).as_posix(), path
    for path in (folder / f"{name}.py", *folder.glob(f"{name}.*.so")):
        if path.is_file():
            yield path.name, path


def _imported(path: Path) -> list[str]:
    """The first names of all that a file imports, also inside functions."""
    try:
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError):  # Python says what is wrong with it, if it is ever imported
        return []
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [alias.name.partition(".")[0] for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            found.append(node.module.partition(".")[0])
    return found


def _refuse_too_much(name: str, more: Mapping[str, Path], found: Mapping[str, Path]) -> None:
    sizes = {inside: path.stat().st_size for inside, path in more.items()}
    total = sum(sizes.values()) + sum(path.stat().st_size for path in found.values())
    if len(more) + len(found) > FILES_MAX or total > BYTES_MAX:
        largest = max(sizes, key=lambda inside: sizes[inside])
        raise ConfigError(
            f"the code beside the app that Spark's workers need is too large: with {name} it has "
            f"{len(more) + len(found)} files and {total >> 20} MiB, and they are sent at most {FILES_MAX} files and "
            f"{BYTES_MAX >> 20} MiB; the largest is {largest}: keep data outside of packages, or install the package"
        )

"""No module imports itself, however far around; imports for type checkers alone count."""

from __future__ import annotations

import ast
from pathlib import Path

import penstock

PACKAGE = Path(penstock.__file__).parent


def imports() -> dict[str, set[str]]:
    """Each module of the package, and the modules of it that it imports."""
    paths = {_name(path): path for path in PACKAGE.rglob("*.py")}
    found: dict[str, set[str]] = {}
    for module, path in paths.items():
        names: list[str] = []
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module is not None:
                names += [f"{node.module}.{alias.name}" for alias in node.names]
                names += [node.module]
            elif isinstance(node, ast.Import):
                names += [alias.name for alias in node.names]
        # A package is imported with each of its modules, and names of its own come from it.
        own = {name for name in names if name in paths}
        found[module] = {name for name in own if not any(other.startswith(f"{name}.") for other in own)}
    return found


def _name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def circle(found: dict[str, set[str]]) -> list[str]:
    """The modules that are left when those that import nothing that is left are taken away, again and again."""
    left = {module: set(names) - {module} for module, names in found.items()}
    while ends := [module for module, names in left.items() if not names]:
        for module in ends:
            del left[module]
        for names in left.values():
            names.difference_update(ends)
    return sorted(left)


def test_no_module_imports_itself_around_others() -> None:
    assert circle(imports()) == []


def test_a_circle_is_found() -> None:
    assert circle({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": set()}) == ["a", "b", "c"]

"""The modules of the package and of its proofs, and which of them each one imports."""

from __future__ import annotations

import ast
from pathlib import Path

import penstock
import proof

PACKAGES = [Path(package.__path__[0]) for package in (penstock, proof)]


def imports() -> dict[str, set[str]]:
    """Each module, and the modules among them that it imports."""
    paths = {_name(path, package): path for package in PACKAGES for path in package.rglob("*.py")}
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


def _name(path: Path, package: Path) -> str:
    parts = path.relative_to(package.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

"""What calls itself pure is held to that by import-linter."""

from __future__ import annotations

import ast
import configparser
from pathlib import Path

import penstock

ROOT = Path(__file__).parents[2]
PACKAGE = Path(penstock.__path__[0])


def pure_contract() -> list[str]:
    """The modules and packages in which no clock, chance, socket, file or thread may be imported."""
    contracts = configparser.ConfigParser()
    contracts.read(ROOT / ".importlinter")
    return contracts["importlinter:contract:pure"]["source_modules"].split()


def test_each_module_that_calls_itself_pure_is_in_the_contract() -> None:
    covered = pure_contract()
    found = 0
    for path in PACKAGE.rglob("*.py"):
        said = ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""
        if "pure" not in said.lower().replace(".", " ").split():
            continue
        found += 1
        name = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")
        assert any(f"{name}.".startswith(f"{one}.") for one in covered), name
    assert found > 20

"""No module imports itself, however far around; imports for type checkers alone count."""

from __future__ import annotations

from tests.unit.import_graph import imports


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

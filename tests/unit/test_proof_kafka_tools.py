"""A tool that is missing is never a silent gap in what CI tests."""

from __future__ import annotations

from collections.abc import Callable

import pytest


def test_a_missing_tool_skips_here_and_fails_in_ci(
    need_tool: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only CI=true turns the skip into a failure; both name the tool."""
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="no-such-tool is not installed"):
        need_tool("no-such-tool")
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="no-such-tool is not installed"):
        need_tool("no-such-tool")


def test_a_tool_that_is_there_is_named_by_its_path(need_tool: Callable[[str], str]) -> None:
    """Tests start it by path, whatever PATH they give it."""
    assert need_tool("sh").endswith("/sh")

"""The app that the README shows is an app."""

from __future__ import annotations

import re
from pathlib import Path

from penstock.guarantee import Queue
from penstock.plan.planner import plan_app
from penstock.process.app_loader import load_app

README = (Path(__file__).parents[2] / "README.md").read_text()


def test_the_app_of_the_readme_is_planned_as_it_says(tmp_path: Path) -> None:
    """Its doors, queries and deliveries are where the text below it finds them."""
    (shown,) = re.findall(r"```python\n# shop.py\n(.*?)```", README, re.DOTALL)
    script = tmp_path / "shop.py"
    script.write_text(shown)
    plan = plan_app(load_app(str(script)), Queue())
    assert list(plan.doors) == ["purchases"]
    assert list(plan.queries) == ["decide", "spend_per_hour"]
    assert list(plan.deliveries) == ["/live/decisions", "/live/spend_per_hour"]

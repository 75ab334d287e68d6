"""Writes tests/compat/golden/*.json: bytes that Kafka's own client library makes of known values.

Run it from the repository with `.venv/bin/python tools/golden/make_golden.py`; it needs javac.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from schemas import make_values, read_schema, versions

from penstock.jvm.java import find_java
from penstock.kafka.wire.apis import APIS
from proof.oracle.tools import kafka_class_path

_HERE = Path(__file__).parent
_GOLDEN = _HERE.parents[1] / "tests" / "compat" / "golden"

Case = dict[str, Any]


def main() -> int:
    javac = shutil.which("javac")
    if javac is None:
        print("javac is not on the PATH: install a JDK", file=sys.stderr)
        return 2
    jar = next(Path(path) for path in kafka_class_path().split(os.pathsep) if "kafka-clients-" in path)
    files = {api.name: _questions(jar, f"{api.name}Request", f"{api.name}Response") for api in APIS.values()}
    files["Header"] = _questions(jar, "RequestHeader", "ResponseHeader")
    with tempfile.TemporaryDirectory() as classes:
        subprocess.run([javac, "-cp", kafka_class_path(), "-d", classes, str(_HERE / "GoldenBytes.java")], check=True)
        answers = iter(_ask(classes, [case for cases in files.values() for case in cases]))
    _GOLDEN.mkdir(parents=True, exist_ok=True)
    for name, cases in files.items():
        lines = ",\n".join(next(answers) for _ in cases)
        (_GOLDEN / f"{name}.json").write_text(f"[\n{lines}\n]\n", encoding="utf-8")
    return 0


def _questions(jar: Path, *names: str) -> list[Case]:
    return [
        {"message": name, "version": version, "case": case, "value": value}
        for name in names
        for schema in [read_schema(jar, name)]
        for version in versions(schema)
        for case, value in make_values(schema, version).items()
    ]


def _ask(classes: str, cases: list[Case]) -> list[str]:
    class_path = os.pathsep.join([classes, kafka_class_path()])
    answer = subprocess.run(
        [str(find_java(os.environ)), "-cp", class_path, "GoldenBytes"],
        input="\n".join(json.dumps(case) for case in cases),
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        check=True,
    )
    return answer.stdout.splitlines()


if __name__ == "__main__":
    sys.exit(main())

"""PySpark reads the text of a type without a JVM, where an app is declared; all else of it stays as it is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

DECLARED = """
from pyspark.sql.functions import pandas_udf, udf
import pandas as pd

@udf("double")
def half(n): return n / 2

@pandas_udf("double")
def third(n: pd.Series) -> pd.Series: return n / 3

pairs = udf(lambda n: [], "array<struct<a:int,b:string>>")
print(half.returnType.simpleString(), third.returnType.simpleString(), pairs.returnType.simpleString())
"""
WANTED = "double double array<struct<a:int,b:string>>\n"
APP = "import penstock\napp = penstock.App('types')\n"


def python(folder: Path, text: str) -> subprocess.CompletedProcess[str]:
    (folder / "script.py").write_text(text)
    command = [sys.executable, "script.py"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize("text", [APP + DECLARED, DECLARED.replace("\n@udf", APP + "\n@udf")], ids=["first", "later"])
def test_functions_are_declared_before_spark_runs(tmp_path: Path, text: str) -> None:
    """Whether PySpark is imported after Penstock or before it."""
    answer = python(tmp_path, text)
    assert (answer.stdout, answer.stderr) == (WANTED, "")


def test_pyspark_alone_stays_as_it_is(tmp_path: Path) -> None:
    """Also with Penstock: a column needs a running Spark, and PySpark says so."""
    assert "SESSION_OR_CONTEXT_NOT_EXISTS" in python(tmp_path, DECLARED).stderr
    written = "from pyspark.sql.types import StringType, StructType\nStructType().add('n', StringType()).toDDL()\n"
    assert "SESSION_OR_CONTEXT_NOT_EXISTS" in python(tmp_path, APP + written).stderr


def test_a_type_that_is_none_is_named_with_its_line(tmp_path: Path) -> None:
    load = "from penstock.process.app_loader import load_app\nload_app('app.py')\n"
    (tmp_path / "app.py").write_text(APP + "from pyspark.sql.functions import udf\nwrong = udf(abs, 'dobule')\n")
    said = python(tmp_path, load).stderr.splitlines()[-1]
    assert said.endswith(
        "app.py cannot be imported: line 4: SchemaError: "
        "the type 'dobule' cannot be read before Spark runs: no type of Spark: dobule"
    )
    (tmp_path / "app.py").write_text(APP + "from pyspark.sql import functions as F\nwrong = F.col('n')\n")
    assert python(tmp_path, load).stderr.rstrip().endswith("use them inside the function of a query)")

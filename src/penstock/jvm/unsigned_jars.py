"""Signed jars without their signatures: Java archives no class of a signed one, and checks it at every start."""

from __future__ import annotations

import os
import re
import zipfile
from pathlib import Path

_SIGNATURE = re.compile(r"META-INF/[^/]+\.(SF|RSA|DSA|EC)", re.IGNORECASE)


def unsigned_copy(jar: Path, cache: Path) -> Path:
    """The same classes without a signature, from the cache; the jar itself where the cache cannot be written to."""
    facts = jar.stat()
    copy = cache / "unsigned" / f"{jar.stem}-{facts.st_size}-{facts.st_mtime_ns}.jar"
    if copy.exists():
        return copy
    partial = copy.with_suffix(f".{os.getpid()}")
    try:
        copy.parent.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(jar) as signed, zipfile.ZipFile(partial, "w") as plain:
            for entry in signed.infolist():
                if not _SIGNATURE.fullmatch(entry.filename):
                    plain.writestr(entry, signed.read(entry))
        os.replace(partial, copy)
    except OSError:
        return jar
    return copy

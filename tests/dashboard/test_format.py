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


@pytest.fixture(scope="module")
def forecasts(tmp_path_factory: pytest.TempPathFactory) -> Call:
    return caller("forecast.ts", tmp_path_factory.mktemp("forecast"))


def lag(soonest: float | None, latest: float | None, *, is_falling_behind: bool = False, **others: Any) -> Any:
    forecast = {"catch_up_seconds": soonest, "catch_up_seconds_at_most": latest}
    return {"seconds_behind": 100, **forecast, "is_falling_behind": is_falling_behind, "rates": RATES, **others}


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
    cases: list[tuple[str, float | None, list[Any]]] = [
        ("\N{EN DASH}", None, [lag(None, None), "ERR"]),
        ("12 min", 730, [lag(715, 730), "OK"]),
        ("5\N{EN DASH}12 min", 720, [lag(300, 720), "WARN"]),
        ("95 s \N{EN DASH} 12 min", 720, [lag(95, 720), "WARN"]),
        ("3 d", 262_000, [lag(255_000, 262_000), "WARN"]),
        ("≥ 5 min", sys.float_info.max, [lag(300, None), "WARN"]),
        # JSON has no infinity.
        ("never", None, [lag(None, None, is_falling_behind=True), "OK"]),
        ("never", None, [lag(None, None, is_falling_behind=True, seconds_behind=5), "WARN"]),
        ("keeps up", 0, [lag(None, None, is_falling_behind=True, seconds_behind=5), "OK"]),
        ("keeps up", 0, [lag(0, 0, seconds_behind=0), "OK"]),
    ]
    texts, numbers, arguments = zip(*cases, strict=True)
    assert tuple(formats("catchUp", *arguments)) == texts
    assert tuple(formats("catchUpOrder", *arguments)) == numbers


def test_an_age_is_shown_where_it_is_more_than_the_time_of_waiting(formats: Call) -> None:
    cases = [
        (432_000, {"seconds_behind": 20, "oldest_unread_age_seconds": 432_000}),
        (None, {"seconds_behind": 20, "oldest_unread_age_seconds": 21}),
        (None, {"seconds_behind": 3_600, "oldest_unread_age_seconds": 3_600}),
        (60, {"seconds_behind": None, "oldest_unread_age_seconds": 60}),
        (None, {"seconds_behind": 0, "oldest_unread_age_seconds": None}),
    ]
    assert formats("ageBeyondTimeLag", *([lag] for _, lag in cases)) == [age for age, _ in cases]


def test_axes_have_one_unit(formats: Call) -> None:
    assert formats("timeTicks", [[0, 30, 60]], [[0, 600, 1_200]], [[0, 5_400, 10_800]], [[0, 86_400, 172_800]]) == [
        ["0", "30 s", "60 s"],
        ["0", "10 min", "20 min"],
        ["0", "1.5 h", "3 h"],
        ["0", "1 d", "2 d"],
    ]


def test_a_forecast_is_a_line_to_zero_or_two_if_the_rates_disagree(forecasts: Call) -> None:
    at = 1_000_000
    sharp, wide, cut, open_ended, *none = forecasts(
        "forecastLines",
        [60, lag(100, 105), at, at + 500_000],
        [60, lag(50, 100), at, at + 500_000],
        [60, lag(100, 100), at, at + 25_000],
        [60, lag(100, None), at, at + 500_000],
        [60, lag(None, None, is_falling_behind=True), at, at + 500_000],
        [0, lag(0, 0), at, at + 500_000],
        [None, lag(100, 100), at, at + 500_000],
    )
    assert sharp == {"times": [at, at + 105_000], "lines": [{"label": "forecast", "values": [60, 0]}]}
    assert wide["times"] == [at, at + 50_000, at + 100_000]
    assert [line["label"] for line in wide["lines"]] == ["soonest forecast", "latest forecast"]
    assert [line["values"] for line in wide["lines"]] == [[60, 0, None], [60, 30, 0]]
    assert (cut["times"], cut["lines"][0]["values"]) == ([at, at + 25_000], [60, 45])
    assert [line["label"] for line in open_ended["lines"]] == ["soonest forecast"]
    assert none == [{"times": [], "lines": []}] * 3


def test_messages_are_lost_at_the_age_that_retention_allows(forecasts: Call) -> None:
    """Messages that are an hour old are deleted; a group that reads half of what is written has twice the time."""
    stopped = lag(None, None, seconds_behind=600, retention_left_seconds=3_000)
    slow = lag(None, None, seconds_behind=600, retention_left_seconds=6_000)
    slow["rates"] = {**RATES, "consumed_1m": 5, "consumed_10m": 6}
    unknown = lag(None, None, seconds_behind=600, retention_left_seconds=None)
    assert forecasts("retentionLimit", [stopped], [slow], [unknown]) == [3_600, 3_600, None]
    partitions = [{"partition": number, "time_lag": own} for number, own in enumerate([unknown, slow, stopped])]
    first, nobody = forecasts("firstLoss", [partitions], [partitions[:1]])
    assert (first["partition"], nobody) == (2, None)

"""`warren evaluate`: lines in, verdicts out, as a user sees it."""

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from warren import evaluate
from warren.cli import main

T = 1_700_000_000_000
SLOW = {
    "offsets": list(range(10, 110, 10)),
    "times_ms": [T + 60_000 * n for n in range(10)],
    "lags": [1, 1, 1, 1, 1, 2, 2, 2, 3, 3],
    "current_lag": 4,
    "now_ms": T + 540_000,
}


class Answers:
    """What the command printed, and its exit code."""

    def __init__(self, code: int, out: str, errors: str) -> None:
        self.code = code
        self.lines = [json.loads(line) for line in out.splitlines()]
        self.errors = errors.splitlines()


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    def run(*lines: dict[str, Any] | str | bytes, flags: Sequence[str] = ()) -> Answers:
        path = tmp_path / "windows.jsonl"
        encoded = [line if isinstance(line, str | bytes) else json.dumps(line) for line in lines]
        path.write_bytes(b"\n".join(line.encode() if isinstance(line, str) else line for line in encoded) + b"\n")
        code = main(["evaluate", str(path), *flags])
        return Answers(code, *capsys.readouterr())

    return run


def test_a_line_in_a_line_out(run: Any) -> None:
    answers = run(SLOW, SLOW | {"offsets": [10] * 10})
    assert answers.lines == [
        {
            "status": "WARN",
            "complete": 1.0,
            "reason": "falling behind: lag rose from 1 to 3 and never went down; now 4",
        },
        {"status": "STALL", "complete": 1.0, "reason": "10 commits in 9 min, all at offset 10; lag 4"},
    ]
    assert (answers.code, answers.errors) == (0, [])


@pytest.mark.parametrize(
    ("name", "changes", "status"),
    [
        ("the window as it is", {}, "WARN"),
        ("caught up now", {"current_lag": 0}, "OK"),
        ("lag 0 in the window", {"lags": [1, 1, 1, 0, 1, 2, 2, 2, 3, 3]}, "OK"),
        ("at T+1200", {"now_ms": T + 1_200_000}, "STOP"),
        ("at T+1200, the head was at the offset", {"now_ms": T + 1_200_000, "recent_heads": [100, 104]}, "WARN"),
        ("at T+1200, the head never was", {"now_ms": T + 1_200_000, "recent_heads": [101, 104]}, "STOP"),
        ("no recent heads", {"now_ms": T + 1_200_000, "recent_heads": []}, "STOP"),
        ("recent heads null", {"now_ms": T + 1_200_000, "recent_heads": None}, "STOP"),
        ("rewound", {"offsets": [100, *range(1, 10)]}, "REWIND"),
        ("lags unknown", {"lags": [None] * 10}, "OK"),
        ("one lag known", {"lags": [None] * 9 + [5]}, "OK"),
        ("fewer than half of the lags known", {"lags": [None] * 6 + [5] * 4}, "OK"),
        ("half of the lags known", {"lags": [None] * 5 + [5] * 5}, "WARN"),
        ("stalled with one lag known", {"offsets": [10] * 10, "lags": [None] * 9 + [5]}, "STALL"),
        ("current lag unknown", {"current_lag": None}, "OK"),
        ("a key nobody knows", {"colour": "red", "topic": {"a": []}}, "WARN"),
        ("an own allowed_lag", {"allowed_lag": 4}, "OK"),
        ("an own minimum_complete", {"minimum_complete": 1, "intervals": 20}, "OK"),
        ("an own intervals: only the newest are judged", {"intervals": 3, "lags": [0] * 7 + [2, 3, 3]}, "WARN"),
        ("no commits", {"offsets": [], "times_ms": [], "lags": []}, "OK"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_verdicts(run: Any, name: str, changes: dict[str, Any], status: str) -> None:
    answers = run(SLOW | changes)
    assert [line["status"] for line in answers.lines] == [status], name
    assert (answers.code, answers.errors) == (0, [])


def test_flags_are_defaults_that_a_line_may_override(run: Any) -> None:
    line = {key: value for key, value in SLOW.items() if key != "now_ms"}
    now = f"--now-ms={T + 540_000}"
    assert [a["status"] for a in run(line, flags=[now]).lines] == ["WARN"]
    assert [a["status"] for a in run(line, SLOW, flags=[f"--now-ms={T + 1_200_000}"]).lines] == ["STOP", "WARN"]
    allowed = run(line, line | {"allowed_lag": 0}, flags=[now, "--allowed-lag=4"])
    assert [a["status"] for a in allowed.lines] == ["OK", "WARN"]
    partial = run(
        line, line | {"intervals": 10}, line | {"minimum_complete": 0.5},
        flags=[now, "--intervals=20", "--minimum-complete=0.6"],
    )  # fmt: skip
    assert [(a["status"], a["complete"]) for a in partial.lines] == [("OK", 0.5), ("WARN", 1.0), ("WARN", 0.5)]


def test_without_a_time_it_is_now(run: Any) -> None:
    assert run({key: value for key, value in SLOW.items() if key != "now_ms"}).lines[0]["status"] == "STOP"


@pytest.mark.parametrize(
    ("name", "bad", "why"),
    [
        ("not JSON", "{oops", "JSON is malformed: object keys must be strings"),
        ("not UTF-8", b'{"offsets": "\xff"}', "Expected `array`, got `str` - at `$.offsets`"),
        ("nested beyond all measure", '{"topic": ' + "[" * 100_000, "recursion depth exceeded"),
        ("a list of lists", "[" * 100_000, "Expected `object`, got `array`"),
        ("a number with too many digits", '{"offsets": [' + "9" * 5_000 + "]}", "Integer value out of range"),
        ("not an object", "[1, 2]", "Expected `object`, got `array`"),
        ("no offsets", {k: v for k, v in SLOW.items() if k != "offsets"}, "missing required field `offsets`"),
        ("lengths differ", SLOW | {"lags": [1]}, "differ in length: 10, 10, 1"),
        ("a negative offset", SLOW | {"offsets": [-1] * 10}, "Expected `int` >= 0 - at `$.offsets[0]`"),
        ("a null offset", SLOW | {"offsets": [None] * 10}, "Expected `int`, got `null` - at `$.offsets[0]`"),
        ("a fraction", SLOW | {"times_ms": [1.5] * 10}, "Expected `int`, got `float` - at `$.times_ms[0]`"),
        ("a boolean", SLOW | {"lags": [True] * 10}, "Expected `int | null`, got `bool` - at `$.lags[0]`"),
        ("a text", SLOW | {"lags": ["5"] * 10}, "Expected `int | null`, got `str` - at `$.lags[0]`"),
        (
            "beyond 64 bits",
            SLOW | {"offsets": [2**63] * 10},
            "Expected `int` <= 4611686018427387903 - at `$.offsets[0]`",
        ),
        (
            "current lag as text",
            SLOW | {"current_lag": "many"},
            "Expected `int | null`, got `str` - at `$.current_lag`",
        ),
        ("a negative current lag", SLOW | {"current_lag": -1}, "Expected `int` >= 0 - at `$.current_lag`"),
        (
            "recent heads as a number",
            SLOW | {"recent_heads": 5},
            "Expected `array | null`, got `int` - at `$.recent_heads`",
        ),
        ("no intervals", SLOW | {"intervals": 0}, "Expected `int` >= 1 - at `$.intervals`"),
        ("too many intervals", SLOW | {"intervals": 10_001}, "Expected `int` <= 10000 - at `$.intervals`"),
        ("more than complete", SLOW | {"minimum_complete": 1.5}, "Expected `float` <= 1.0 - at `$.minimum_complete`"),
        ("not a number", json.dumps(SLOW | {"minimum_complete": float("nan")}), "JSON is malformed: invalid character"),
        ("a negative allowance", SLOW | {"allowed_lag": -1}, "Expected `int` >= 0 - at `$.allowed_lag`"),
    ],
    ids=lambda value: value if isinstance(value, str) and len(value) < 60 else "",
)
def test_a_bad_line_is_reported_by_number_and_the_rest_is_judged(run: Any, name: str, bad: Any, why: str) -> None:
    answers = run(SLOW, "", bad, SLOW | {"current_lag": 0})
    assert [line["status"] for line in answers.lines] == ["WARN", "OK"], name
    assert answers.code == 1
    [error] = answers.errors
    assert error.startswith("line 3: ")
    assert why in error
    assert len(error) < 400


def test_every_bad_line_is_reported(run: Any) -> None:
    answers = run("x", SLOW, "y")
    assert [error.partition(":")[0] for error in answers.errors] == ["line 1", "line 3"]
    assert len(answers.lines) == 1


def test_answers_keep_the_order_of_the_lines_whatever_limits_they_have(
    run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evaluate, "CHUNK_LINES", 7)
    lines = [SLOW | {"intervals": 10 + n % 3, "current_lag": n, "allowed_lag": n % 2} for n in range(40)]
    answers = run(*lines)
    assert [line["reason"].rpartition(" ")[2] for line in answers.lines[2:]] == [str(n) for n in range(2, 40)]


def test_lines_with_many_intervals_are_judged_a_few_at_a_time(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluate, "MAX_CELLS", 30_000)
    answers = run(*[SLOW | {"intervals": 10_000}] * 10)
    assert len(answers.lines) == 10
    assert {(line["status"], line["complete"]) for line in answers.lines} == {("WARN", 0.001)}


def test_standard_input(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps(SLOW) + "\n"))
    assert main(["evaluate", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["status"] == "WARN"


def test_a_file_that_begins_with_a_byte_order_mark(run: Any) -> None:
    assert [line["status"] for line in run(b"\xef\xbb\xbf" + json.dumps(SLOW).encode()).lines] == ["WARN"]


def test_an_empty_file(run: Any) -> None:
    answers = run("")
    assert (answers.code, answers.lines, answers.errors) == (0, [], [])


def test_a_file_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", str(tmp_path / "nothing")]) == 1
    assert capsys.readouterr().err == f"cannot read {tmp_path / 'nothing'}: No such file or directory\n"

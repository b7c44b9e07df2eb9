import json
from pathlib import Path
from typing import Any

import pytest

from tests.kit.servers import new_api, server_config
from warren.snapshot.reloads import ReloadOutcome, read_outcome, write_outcome
from warren.snapshot.requests import RequestQueue
from warren.web import admin
from warren.web.http import Request
from warren.web.metrics import metrics
from warren.web.overview import overview

REFUSED = ReloadOutcome(at_ms=2_500, applied_ms=1_500, mistakes=["burrow.toml:3: no"], warnings=["hm"])


def test_a_reload_that_takes_long_is_answered_with_202_and_stays_requested(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admin, "RELOAD_WAIT_S", 0.1)
    response = admin.reload(new_api(server_config(tmp_path)), Request("/v3/admin/reload", {}))
    assert response.status == 202
    answer = json.loads(bytes(response.body))  # type: ignore[arg-type]
    assert (answer["error"], answer["reload"]) == (False, None)
    assert len(RequestQueue(tmp_path).pending()) == 1


def test_the_overview_and_the_metrics_tell_how_the_last_reload_ended(tmp_path: Path) -> None:
    api = new_api(server_config(tmp_path))
    api.follower.poll()

    def shown() -> Any:
        response = overview(api, Request("/v3/overview", {}))
        return json.loads(bytes(response.body))["overview"]["configuration"]  # type: ignore[arg-type]

    def lines() -> list[str]:
        text = b"".join(metrics(api, Request("/metrics", {})).body).decode()  # type: ignore[arg-type]
        return [line for line in text.splitlines() if line.startswith("warren_config")]

    assert (shown(), lines()) == (None, [])
    write_outcome(tmp_path, REFUSED)
    assert shown() == {
        "at": 2_500,
        "applied_at": 1_500,
        "mistakes": ["burrow.toml:3: no"],
        "warnings": ["hm"],
        "changed": [],
        "needs_restart": [],
    }
    assert lines() == [
        "warren_config_last_reload_successful 0",
        "warren_config_last_reload_success_timestamp_seconds 1.5",
    ]
    (tmp_path / "reload.json").write_text("{")
    assert read_outcome(tmp_path) is None

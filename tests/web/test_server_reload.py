"""`warren serve` reads its configuration again: after SIGHUP, and when the pipeline beside it has reloaded."""

import re
import signal
import subprocess
import sys
from pathlib import Path

from tests.kit.servers import Client
from tests.kit.warrens import sections_for, to_toml, wait_for
from warren.snapshot.reloads import ReloadOutcome, write_outcome


def test_it_follows_signals_and_reloads_of_the_pipeline_and_a_broken_file_changes_nothing(tmp_path: Path) -> None:
    def configure(*clusters: str) -> None:
        sections = sections_for(dict.fromkeys(clusters, "127.0.0.1:1"))
        (tmp_path / "burrow.toml").write_text(to_toml(sections))

    def log() -> str:
        return (tmp_path / "log").read_text()

    (tmp_path / "warren-data").mkdir()
    configure("one")
    command = [sys.executable, "-m", "warren.cli", "serve", "--config-dir", str(tmp_path)]
    with (tmp_path / "log").open("wb") as out, subprocess.Popen(command, stdout=out, stderr=out) as process:
        try:
            [url] = wait_for(lambda: re.findall(r"answering at (\S+)", log()), "it answers", 60)
            client = Client(url)

            def shows(*clusters: str) -> bool:
                return bool(client.json("/v3/kafka")["clusters"] == [*clusters])

            assert shows("one")
            configure("one", "two")
            process.send_signal(signal.SIGHUP)
            wait_for(lambda: shows("one", "two"), "the signal reloads", 30)
            configure("three")
            write_outcome(tmp_path / "warren-data", ReloadOutcome(2, 2))
            wait_for(lambda: shows("three"), "it follows the pipeline", 30)
            (tmp_path / "burrow.toml").write_text("[cluster.")
            process.send_signal(signal.SIGHUP)
            wait_for(lambda: "the configuration was not reloaded, and nothing has changed" in log(), "it says so", 30)
            assert shows("three")
        finally:
            process.terminate()
        assert process.wait(30) == 0

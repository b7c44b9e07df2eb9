"""Write the dashboards: python -m deploy.grafana.define."""

from pathlib import Path

from deploy.grafana.define.boards import BOARDS
from deploy.grafana.define.build import BACKENDS, text_of

FOLDER = Path(__file__).parents[1] / "dashboards"

if __name__ == "__main__":
    for backend in BACKENDS:
        folder = FOLDER / backend.name
        folder.mkdir(parents=True, exist_ok=True)
        for board in BOARDS:
            (folder / f"{board.name}.json").write_text(text_of(board, backend))

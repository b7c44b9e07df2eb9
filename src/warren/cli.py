"""Commands, flags and exit codes; no logic."""

import argparse
import os
import signal
import sys
import threading
import traceback
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from warren import __version__
from warren.domain.printable import printable_lines
from warren.errors import NoSnapshot, WarrenError

if TYPE_CHECKING:
    from warren.config import Config
    from warren.config.findings import Findings

EXIT_AFTER_S = 8.0
"""How long a stop waits for the cycle under way; one that has not published its manifest leaves no trace."""

_CONFIG_DIR = "the directory of burrow.toml (or burrow.yaml, burrow.json); default: the current one"
EXAMPLES = """examples:
  warren demo                              a real Kafka with every kind of consumer, monitored live
  warren check --config-dir /etc/burrow    check burrow.toml and show what it configures
  warren run --config-dir /etc/burrow      monitor the clusters of /etc/burrow/burrow.toml
  warren serve --config-dir /etc/burrow    only the HTTP API, for the snapshots of another `warren run`
  warren groups --status ERR               the groups with status ERR, most severe first
  warren group local orders                one group with its partitions and reasons
  warren history "SELECT * FROM groups"    query the history in SQL
  warren reload                            let the running Warren read burrow.toml again
  warren notify test hook                  send a sample notification to [notifier.hook]
  warren evaluate windows.jsonl            judge windows from a file
"""

HISTORY_EXAMPLES = """examples:
  the lag of a group over time
    warren history "SELECT time, total_lag FROM groups WHERE cluster = 'local' AND group = 'orders' ORDER BY time"
  the groups that were not OK for most of today
    warren history "SELECT cluster, group, count_if(status != 'OK') / count(*) AS share FROM groups
                    WHERE date = current_date() GROUP BY cluster, group ORDER BY share DESC LIMIT 20"
  all partitions, as Parquet files for a notebook
    warren history "SELECT * FROM partitions WHERE date >= '2026-01-01'" --output january

tables: groups and clusters; with a [sink.NAME] of class lake: groups, partitions, topics, commits
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns its exit code."""
    options = _parser().parse_args(arguments)
    sys.excepthook = lambda *bug: print(printable_lines("".join(traceback.format_exception(*bug))), file=sys.stderr)
    try:
        return options.command(options) or 0
    except WarrenError as error:
        print(printable_lines(str(error)), file=sys.stderr)
        return 2 if isinstance(error, NoSnapshot) else 1
    except BrokenPipeError:
        return 0
    except KeyboardInterrupt:
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="warren",
        description="Kafka consumer-lag monitoring without thresholds.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"warren {__version__}")
    parser.add_argument("--config-dir", type=Path, default=Path(), help=_CONFIG_DIR)
    parser.set_defaults(command=_run, log_level=None)
    commands = parser.add_subparsers(metavar="COMMAND", title="commands (none: run)")

    run = _command(commands, "run", "monitor the clusters: read, judge, publish, notify, and serve the HTTP API", _run)
    serve = _command(commands, "serve", "serve only the HTTP API, for the snapshots of another `warren run`", _serve)
    for command in (run, serve):
        choices = ("debug", "info", "warning", "error")
        command.add_argument("--log-level", choices=choices, help="overrides [logging] level")

    check = _command(commands, "check", "check the configuration: all mistakes, and what it configures", _check)
    check.add_argument("--strict", action="store_true", help="treat warnings, such as unknown keys, as mistakes")

    groups = _command(commands, "groups", "list the groups of the newest snapshot, most severe first", _groups)
    groups.add_argument("--cluster", help="only groups of this cluster")
    groups.add_argument("--status", help="only groups of this status: OK, WARN or ERR", type=str.upper)

    group = _command(commands, "group", "show one group with its partitions and reasons", _group)
    group.add_argument("cluster")
    group.add_argument("group")
    for command in (groups, group):
        command.add_argument("--json", action="store_true", help="one JSON document instead of a table")
        command.add_argument("--data-dir", type=Path, help="the data directory to read; default: that of burrow.toml")

    history = _command(commands, "history", "query the lake, or the built-in history, in SQL", _history)
    history.epilog = HISTORY_EXAMPLES
    history.formatter_class = argparse.RawDescriptionHelpFormatter
    history.add_argument("sql", help='such as "SELECT * FROM groups LIMIT 10"')
    history.add_argument("--sink", metavar="NAME", help="the [sink.NAME] of class lake to query, if there are several")
    history.add_argument("--limit", type=int, default=1000, help="the number of rows to show; default: 1000")
    history.add_argument("--format", choices=("table", "json", "csv"), default="table", help="default: table")
    history.add_argument("--output", type=Path, metavar="DIR", help="write all rows to DIR as Parquet instead")

    reload = _command(commands, "reload", "let a running `warren run` read its configuration again", _reload)
    reload.add_argument("--data-dir", type=Path, help="the data directory of that run; default: that of burrow.toml")

    notify = _command(commands, "notify", "send a sample notification", _notify)
    notify.add_argument("what", choices=("test",), help="send a made-up incident, and with send-close also its end")
    notify.add_argument("name", help="the NAME of a [notifier.NAME] section")

    evaluate = commands.add_parser("evaluate", help="judge windows from a JSON-lines file (- for standard input)")
    evaluate.add_argument("file")
    evaluate.add_argument("--now-ms", type=int, help="the time to judge at; default: now")
    for name, default in (("--intervals", 10), ("--minimum-complete", 0.0), ("--allowed-lag", 0)):
        evaluate.add_argument(name, type=type(default), default=default)
    evaluate.set_defaults(command=_evaluate)

    hashed = commands.add_parser("hash-password", help="hash a password, typed or piped, for the file of [auth]")
    hashed.set_defaults(command=_hash_password)
    demo = commands.add_parser("demo", help="start a real Kafka with a group of every kind, and Warren beside it")
    demo.add_argument("--minutes", type=float, help="stop after this many minutes")
    demo.add_argument("--port", type=int, help="the port of the dashboard and the API; default: 8000, or a free one")
    demo.add_argument("--no-browser", action="store_true", help="do not open the dashboard in a browser")
    demo.add_argument("--keep", type=Path, metavar="DIR", help="keep Kafka's and Warren's data in DIR")
    demo.set_defaults(command=_demo)
    return parser


def _command(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]", name: str, text: str, run: object
) -> argparse.ArgumentParser:
    parser = commands.add_parser(name, help=text)
    # Without a default of its own, so that an option before the command counts too.
    parser.add_argument("--config-dir", type=Path, default=argparse.SUPPRESS, help=_CONFIG_DIR)
    parser.set_defaults(command=run)
    return parser


def _read(options: argparse.Namespace) -> "tuple[Config | None, Findings]":
    """The configuration with its templates and client options checked; None if it has mistakes."""
    from warren.kafka.option_check import check_options
    from warren.notify.notifiers import check_templates

    config, findings = _read_file(options)
    if config is not None:
        check_templates(config, findings)
        check_options(config, findings)
    return None if findings.mistakes else config, findings


def _read_file(options: argparse.Namespace) -> "tuple[Config | None, Findings]":
    from warren.config import read
    from warren.config.exposure import check_exposure

    config, findings = read(options.config_dir)
    if config is not None:
        check_exposure(config, findings)
        config = replace(config, logging=replace(config.logging, level=options.log_level or config.logging.level))
    return config, findings


def _check(options: argparse.Namespace) -> int:
    from warren.config.summary import summary, verdict

    config, findings = _read(options)
    for line in findings.all():
        print(printable_lines(line))
    print(verdict(findings))
    if config is None or (options.strict and findings.warnings):
        return 1
    print(printable_lines("\n".join(summary(config))))
    return 0


def _settings(options: argparse.Namespace) -> "Config":
    """The checked configuration; logging is set up as it says."""
    from warren.config import Config
    from warren.config.load import accepted
    from warren.daemon import redirect_output
    from warren.logs import set_up_logging

    config, findings = _read_file(options)
    settings = config or Config({}, {})
    try:
        if settings.general.stdout_logfile:
            redirect_output(settings.general.stdout_logfile)
        set_up_logging(settings.logging, options.log_level)
    except OSError as error:
        where = "see [logging] filename and [general] stdout-logfile"
        raise WarrenError(f"cannot write the log: {error.filename}: {error.strerror}; {where}") from error
    return accepted(config, findings)


def _serve(options: argparse.Namespace) -> None:
    from warren.config.load import accepted
    from warren.web.server import serve_alone

    serve_alone(_settings(options), read=lambda: accepted(*_read_file(options)))


def _run(options: argparse.Namespace) -> None:
    from warren.app import running
    from warren.config import General
    from warren.daemon import pid_file
    from warren.kafka.option_check import refuse_bad_options
    from warren.notify.notifiers import refuse_bad_templates

    config = _settings(options)
    refuse_bad_options(config)
    refuse_bad_templates(config)
    stop, hangups = threading.Event(), list[object]()

    def ask_to_stop(*_: object) -> None:
        stop.set()
        exit_timer = threading.Timer(EXIT_AFTER_S, os._exit, [0])
        exit_timer.daemon = True
        exit_timer.start()

    for signal_number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(signal_number, ask_to_stop)
    # Until there is something to reload it is only noted; by default it would end the process.
    signal.signal(signal.SIGHUP, lambda *_: hangups.append(None))
    is_configured = config.general.pidfile != General().pidfile
    pid = pid_file(config.general.pidfile, is_configured=is_configured)
    with pid, running(config, lambda: _read(options)) as warren:
        signal.signal(signal.SIGHUP, warren.reloads.signal)
        if hangups:
            warren.reloads.signal()
        warren.run(stop)


def _reload(options: argparse.Namespace) -> int:
    from warren.report import reload

    is_reloaded, lines = reload(_data_dir(options))
    print(printable_lines("\n".join(lines)))
    return 0 if is_reloaded else 1


def _data_dir(options: argparse.Namespace) -> Path:
    from warren.config import load

    return options.data_dir or load(options.config_dir).pipeline.data_dir


def _groups(options: argparse.Namespace) -> None:
    from warren.report import print_groups

    print_groups(_data_dir(options), options.cluster, options.status, as_json=options.json)


def _group(options: argparse.Namespace) -> None:
    from warren.report import print_group

    print_group(_data_dir(options), options.cluster, options.group, as_json=options.json)


def _history(options: argparse.Namespace) -> None:
    from warren.config import load
    from warren.sinks.lake.query import run_query

    config = load(options.config_dir)
    run_query(config, options.sql, options.sink, options.limit, options.format, options.output)


def _evaluate(options: argparse.Namespace) -> int:
    from warren.evaluate import evaluate_file

    names = ("now_ms", "intervals", "minimum_complete", "allowed_lag")
    return evaluate_file(options.file, {name: getattr(options, name) for name in names})


def _notify(options: argparse.Namespace) -> None:
    from warren.config import load
    from warren.notify.notifiers import refuse_bad_templates, send_sample

    config = load(options.config_dir)
    refuse_bad_templates(config)
    for event in send_sample(config, options.name):
        print(f"{options.name}: {event} sent")


def _hash_password(_options: argparse.Namespace) -> None:
    from warren.config.auth import hashed_password, typed_password

    print(hashed_password(typed_password()))


def _demo(options: argparse.Namespace) -> None:
    from warren.demo.run import run_demo

    run_demo(minutes=options.minutes, keep=options.keep, port=options.port, browser=not options.no_browser)


if __name__ == "__main__":
    sys.exit(main())

"""What sections must be to each other, and that what they point to is there."""

from pathlib import Path

from warren.config.auth_file import parse_entries
from warren.config.checks import host_and_port
from warren.config.findings import Findings, shown
from warren.config.keys import keys_of
from warren.config.outward import Notifier
from warren.config.sections import ClientProfile, Consumer, lands_later
from warren.config.sinks import FILE_FORMATS, ElasticsearchSink, HttpSink, KafkaSink, LakeSink
from warren.config.tables import Section, Sections, Singles

_OWN = Path(__file__).parents[1] / "templates"
"""Templates under the names that Burrow gives its own, such as config/default-http-post.tmpl."""


def check_relations(named: Sections, single: Singles, config_dir: Path, findings: Findings) -> None:
    """Write down what sections lack in each other; the paths of files become those where they were found."""
    _check_counts(named, findings)
    _check_references(named, single, findings)
    _check_security(named, findings)
    _check_consumers(named, findings)
    _check_http_servers(named, findings)
    _check_notifiers(named, findings)
    _check_routes(named, findings)
    _check_rivals(named, single, findings)
    _check_sinks(named, findings)
    for section in (*named["tls"].values(), *named["notifier"].values(), *named["sink"].values()):
        _find_files(section, config_dir, findings)
    if "auth" in single:
        _check_auth(single["auth"], config_dir, findings)


def _check_counts(named: Sections, findings: Findings) -> None:
    if not named["cluster"]:
        findings.mistake("has no [cluster.NAME] section: there must be at least one")
    for kind in ("storage", "evaluator"):
        for section in list(named[kind].values())[1:]:
            findings.mistake(f"is one too many: there must be at most one [{kind}.NAME]", section.path)


def _check_references(named: Sections, single: Singles, findings: Findings) -> None:
    referring = {
        "cluster": ("client-profile",),
        "consumer": ("cluster", "client-profile"),
        "client-profile": ("tls", "sasl", "iam"),
        "httpserver": ("tls",),
        "zookeeper": ("tls",),
        "notifier-lock": ("cluster",),
        "incidents": ("cluster",),
        "sink": ("cluster",),
    }
    for kind, targets in referring.items():
        sections = named[kind].values() if kind in named else [single[kind]] if kind in single else []
        for section in sections:
            for target in targets:
                attribute = target.replace("-", "_")
                name = section.values.get(attribute)
                if name is not None and name not in named[target]:
                    there = ", ".join(named[target]) or "there is none"
                    what = f"= {shown(name)}: must be the name of a [{target}.NAME] section ({there})"
                    findings.mistake(what, section.path, section.written[attribute])


def _check_security(named: Sections, findings: Findings) -> None:
    users = (*named["cluster"].values(), *named["consumer"].values())
    used = {section.values.get("client_profile") for section in users}
    for name, section in named["client-profile"].items():
        tell = findings.mistake if name in used else findings.note
        for attribute, why in lands_later(ClientProfile(**section.values)).items():
            tell(f"= {shown(section.values[attribute])}: {why}", section.path, section.written[attribute])


def _check_consumers(named: Sections, findings: Findings) -> None:
    consumers = [section for section in named["consumer"].values() if section.cls is Consumer]
    read_from = {section.values.get("cluster") for section in consumers}
    for name, section in named["cluster"].items():
        if name not in read_from:
            findings.warning("has no [consumer.NAME] of class kafka, so no group will be seen", section.path)
    for section in consumers:
        if section.values.get("backfill_earliest") and not section.values.get("start_latest"):
            what = "is without effect: start-latest is false, so all commits are read anyway"
            findings.warning(what, section.path, section.written["backfill_earliest"])


def _check_http_servers(named: Sections, findings: Findings) -> None:
    taken: list[tuple[str, int, Section]] = []
    for section in named["httpserver"].values():
        host, port = host_and_port(section.values.get("address", ""))
        # No host is all of them, and port 0 is any that is free.
        clash = [by for its, at, by in taken if port and at == port and (its == host or not its or not host)]
        if clash:
            what = f"= {shown(section.values['address'])}: is taken by [{'.'.join(clash[0].path)}]"
            findings.mistake(what, section.path, section.written["address"])
        taken.append((host, port, section))
    for section in named["httpserver"].values():
        tls = named["tls"].get(section.values.get("tls", ""))
        missing = [name for name in ("certfile", "keyfile") if tls and name not in tls.written]
        if missing:
            what = f"= {shown(section.values['tls'])}: an HTTP server needs its {' and '.join(missing)} too"
            findings.mistake(what, section.path, section.written["tls"])


def _check_notifiers(named: Sections, findings: Findings) -> None:
    needed = {
        "http": ("template-open", "url-open"),
        "email": ("template-open", "server", "from", "to"),
        "null": ("template-open",),
        "alertmanager": ("url-open",),
        "apprise": ("url-open",),
    }
    for section in named["notifier"].values():
        kind = section.values.get("class_name")
        for name in needed.get(str(kind), ()):
            key = keys_of(Notifier)[name]
            if key.attribute not in section.written:
                findings.mistake(f"{name} is missing: a notifier of class {kind} needs it", section.path)
        has_half = "template_open" in section.written and "template_close" not in section.written
        if section.values.get("send_close") and has_half:
            findings.mistake("template-close is missing: send-close needs it", section.path)
        if kind == "slack":
            _check_slack(section, findings)


def _check_slack(section: Section, findings: Findings) -> None:
    if ("url_open" in section.written) == ("token" in section.written):
        what = "must have either url-open, the URL of a webhook, or token, that of a bot"
        findings.mistake(what, section.path)
    elif "token" in section.written and "channel" not in section.written:
        findings.mistake("channel is missing: a bot must know where to speak", section.path)


def _check_routes(named: Sections, findings: Findings) -> None:
    for section in named["route"].values():
        for name in section.values.get("notifiers", ()):
            if name not in named["notifier"]:
                there = ", ".join(named["notifier"]) or "there is none"
                what = f"= {shown(name)}: must be names of [notifier.NAME] sections ({there})"
                findings.mistake(what, section.path, section.written["notifiers"])


def _check_rivals(named: Sections, single: Singles, findings: Findings) -> None:
    lock = single.get("notifier-lock")
    if lock is not None and "zookeeper" in single:
        findings.warning("is without effect: [zookeeper] is there, and its lock counts", lock.path)
    if not named["notifier"]:
        for kind in ("zookeeper", "notifier-lock"):
            if kind in single:
                findings.note("is not used: there is no [notifier.NAME]", single[kind].path)


def _check_sinks(named: Sections, findings: Findings) -> None:
    for section in named["sink"].values():
        values = section.values
        if issubclass(section.cls, HttpSink) and "urls" not in section.written:
            findings.mistake(f"urls is missing: a sink of class {section.cls.class_name} needs it", section.path)
        if values.get("data_stream") and "%" in values.get("index_name", ElasticsearchSink.index_name):
            what = "is true: index-name must be the name of the stream then, without a date"
            findings.mistake(what, section.path, section.written["data_stream"])
        if issubclass(section.cls, LakeSink):
            _check_lake(section, findings)
        if section.cls is KafkaSink:
            _check_topics(section, findings)


def _check_topics(section: Section, findings: Findings) -> None:
    topic, of_changes = section.values.get("topic"), section.values.get("changes_topic")
    if not {"topic", "changes_topic"} & section.written.keys():
        findings.mistake("topic is missing: a sink of class kafka needs it, or changes-topic", section.path)
    elif of_changes is not None and of_changes == topic:
        what = f"= {shown(topic)}: must be another one than topic"
        findings.mistake(what, section.path, section.written["changes_topic"])


def _check_lake(section: Section, findings: Findings) -> None:
    kind = section.values.get("format", LakeSink.format)
    is_there = [name for name in ("path", "database") if name in section.written]
    if not is_there:
        findings.mistake("path is missing: a sink of class lake needs it, or a database of a catalog", section.path)
    elif len(is_there) == 2:
        findings.mistake("has both a path and a database: one of them is allowed", section.path)
    elif kind == "parquet" and "path" not in is_there:
        findings.mistake("path is missing: Parquet files are written below a path", section.path)
    elif kind == "iceberg" and "." not in section.values.get("database", "."):
        what = f"= {shown(section.values['database'])}: must be of a catalog, as in catalog.database"
        findings.mistake(what, section.path, section.written["database"])
    if kind in FILE_FORMATS:
        what = f"= {shown(kind)}: has no transactions; must be parquet, delta, iceberg or another table format"
        findings.mistake(what, section.path, section.written["format"])


def _find_files(section: Section, config_dir: Path, findings: Findings) -> dict[str, bytes]:
    """Find files from where Warren runs, as Burrow does, from beside burrow.toml, or among Warren's own.

    Gives what they hold.
    """
    held: dict[str, bytes] = {}
    for attribute, value in section.values.items():
        if isinstance(value, Path):
            found = next((path for path in (value, config_dir / value, _OWN / value) if path.exists()), value)
            section.values[attribute] = found.absolute()
            try:
                held[attribute] = found.read_bytes()
            except OSError as error:
                what = f"= {shown(str(value))}: cannot be read: {error.strerror}"
                findings.mistake(what, section.path, section.written[attribute])
    return held


def _check_auth(section: Section, config_dir: Path, findings: Findings) -> None:
    written = shown(str(section.values.get("file")))
    for content in _find_files(section, config_dir, findings).values():
        section.values["entries"], mistakes = parse_entries(content)
        for what in mistakes:
            findings.mistake(f"= {written}: {what}", section.path, section.written["file"])

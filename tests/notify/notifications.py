"""Notifications about groups with hostile names, and what the check of templates finds."""

from pathlib import Path

from msgspec.structs import replace

from warren.config import Config
from warren.config.findings import Findings
from warren.incidents.model import Event, Notification, StormStatus
from warren.notify.notifiers import check_templates
from warren.notify.templates.sample import sample_notification, sample_storm

HOSTILE = (
    "<!channel> & <@U123>",
    "say \"hi\" \\ 'you'",
    "`code` *bold* _it_ ~no~",
    "two\r\nlines\x00\u202e",
    "{{ 7 * 7 }} {% raw %}",
    "소비자 그룹 🐇",
    "&" * 20_000,
    "x" * 20_000,
    " ",
)


def hostile_notification(name: str, event: Event) -> Notification:
    """A notification whose group, topic, owner, client, team and reason have this name."""
    notification = sample_notification("hook", event)
    partitions = [
        replace(partition, topic=name, owner=name, client_id=name) for partition in notification.result.partitions
    ]
    result = replace(notification.result, group=name, partitions=partitions * 20, partition_count=100)
    return replace(notification, group=name, team=name, reason=name, result=result)


def hostile_storm(name: str, event: Event) -> Notification:
    """A storm of groups with this name."""
    notification = sample_storm("hook", event)
    assert isinstance(notification.result, StormStatus)
    groups = [replace(group, group=name) for group in notification.result.groups]
    return replace(notification, result=replace(notification.result, groups=groups))


def template_findings(config: Config) -> Findings:
    """What the check of a configuration's templates finds."""
    findings = Findings(Path("burrow.toml"))
    check_templates(config, findings)
    return findings


def is_clean(findings: Findings) -> bool:
    """Whether there is nothing to report."""
    return not (findings.mistakes or findings.warnings or findings.notes)

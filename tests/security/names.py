"""Fifty names that whoever may commit to Kafka can choose, and notifications about groups that have them."""

from msgspec.structs import replace

from warren.incidents.model import Event, Notification, StormStatus
from warren.notify.templates.sample import sample_notification, sample_storm

NAMES = {
    # Paths and URLs.
    "path traversal": "../../api/v1/users/42?x=",
    "a step up": "..",
    "this directory": ".",
    "a step up before a semicolon": "..;/admin",
    "encoded traversal": "%2e%2e%2f%2e%2e%2fadmin",
    "encoded twice": "%252e%252e%252f",
    "backslashes": "..\\..\\windows\\win.ini",
    "absolute path": "/etc/passwd",
    "query": "x?admin=true&delete=all",
    "fragment": "x#/admin",
    "another server": "https://evil.example/steal",
    "user and host": "x@evil.example",
    "host and port": "evil.example:8443/",
    "two slashes": "//evil.example/",
    "spaces and pluses": "a+b c",
    # Lines, terminals and text that is shown otherwise than it is written.
    "mail headers": "x\r\nBcc: all@example.com\r\nContent-Type: text/html\r\n\r\n<b>hi</b>",
    "a header alone": "Content-Type: text/html",
    "a log line": "x\n2026-01-01 00:00:00,000 ERROR warren.app: all is lost",
    "an HTTP request": "x HTTP/1.1\r\nHost: evil.example\r\n\r\nGET /",
    "NUL": "nul\x00byte",
    "clear the screen": "\x1b[2J\x1b[1;1H\x1b[31mroot#",
    "title of a terminal": "\x1b]0;owned\x07",
    "link of a terminal": "\x1b]8;;https://evil.example\x1b\\click\x1b]8;;\x1b\\",
    "C1 controls": "\x9b2J\x85\x90",
    "backspaces": "good\b\b\b\bevil",
    "right to left": "\u202egpj.exe\u2066x\u2069",
    "line separators": "a\u2028b\u2029c\x0b\x0cd",
    "invisible": "pay\u200bments\ufeff\u00ad\U000e0041",
    # Markup and languages.
    "script": "<script>window.taken=1</script>",
    "an image": '<img src=x onerror="window.taken=1">\'&',
    "HTML attribute": "\" onmouseover='window.taken=1' x=\"",
    "mention of a channel": "<!channel> <!here> <@U123> <#C1>",
    "link of Slack": "<https://evil.example|payments>",
    "code spans": "`x` ```y``` *bold* _it_ ~no~",
    "mention elsewhere": "@everyone @here",
    "markdown": "[click](https://evil.example) ![x](https://evil.example/x.png)",
    "entities": "&lt;!channel&gt; &amp;",
    "quotes": "say \"hi\" 'you' \\\" \\",
    "JSON": '","status":"OK","x":{"y":["',
    "template of Go": "{{.Extras}}{{printf `%s` .}}",
    "template of Jinja2": "{{ 7 * 7 }}{% raw %}{{ extras }}",
    "format": "%s%n%(name)s{0}${HOME}$(id)`id`",
    "markup of rich": "[red]x[/red][link=https://evil.example]y[/link]",
    "SQL": "x'; DROP TABLE incidents; --",
    "formula": '=HYPERLINK("https://evil.example","x")+cmd|\' /C calc\'!A0',
    # Formats of stores.
    "labels of Prometheus": 'x"} 1\nburrow_kafka_consumer_status{consumer_group="y\\',
    "line protocol": 'g,cluster=x lag=0i 1\nburrow_group,group=y status="OK" ,= \\',
    "bulk request": 'x"}}\n{"delete":{"_index":"*","_id":"1"}}\n',
    "partition of a lake": "date=2026-01-01/../..%2f",
    "very long": "x" * 32_000,
}  # fmt: skip
assert len(NAMES) == 50
"""Group ids may have any of these. So may topics in ZooKeeper; brokers allow only letters, digits, `.`, `_` and `-`."""

STEPS = ("a step up", "this directory", "a step up before a semicolon")
"""The names that would be steps of a path, however they are encoded."""
NOT_UTF8 = (b"\xff\xfe", b"caf\xe9", b"\xed\xa0\x80", b"\xc0\xaf", b"ok\xf5\x80\x80\x80")
"""Bytes that are no text at all: among them a lone surrogate, and a slash that is longer than it must be."""


def about(name: str, event: Event = Event.OPEN) -> Notification:
    """A notification in which all that consumers choose has this name."""
    notification = sample_notification("hook", event)
    partitions = [
        replace(partition, topic=name, owner=name, client_id=name) for partition in notification.result.partitions
    ]
    maxlag = partitions[0] if partitions else None
    return replace(
        notification, group=name, result=replace(notification.result, group=name, partitions=partitions, maxlag=maxlag)
    )


def storm_of(name: str) -> Notification:
    """A notification about a storm of groups of this name."""
    notification = sample_storm("hook", Event.OPEN)
    assert isinstance(notification.result, StormStatus)
    partitions = about(name).result.partitions
    groups = [replace(group, group=name) for group in notification.result.groups]
    result = replace(notification.result, groups=groups, partitions=partitions, maxlag=partitions[0])
    return replace(notification, result=result)

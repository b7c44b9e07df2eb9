"""Errors of Kafka's clients in one sentence, which the documentation has too."""

import re
from pathlib import Path

import pytest

from warren.kafka import client_errors
from warren.kafka.client_errors import explain

DOCS = Path(__file__).parents[2] / "docs" / "secured-clusters.md"
AT = "sasl_ssl://10.0.0.1:9093/bootstrap: "


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (
            f"{AT}SASL authentication error: Authentication failed during authentication",
            "10.0.0.1:9093: the broker rej",
        ),
        ("SaslAuthenticationException: Authentication failed: Invalid username or password", "the broker rejects"),
        (f"{AT}Receive failed: SSL alert number 42: ssl/tls alert bad certificate", "Warren's client certificate"),
        ("SSLHandshakeException: Received fatal alert: certificate_required", "Warren's client certificate"),
        ("PKIX path building failed\nCaused by: CertificateExpiredException: NotAfter", "has expired"),
        ("CertificateException: No subject alternative names matching IP address 10.0.0.1 found", "not for the host"),
        (
            "Not authorized to access topics: [__consumer_offsets]",
            "not allowed to read the topic __consumer_offsets: grant",
        ),
        ("Not authorized to access group: warren-reader-a", "not allowed to use the group warren-reader-a: grant"),
        ("OAUTHBEARER token refresh failed", "the token endpoint gives no token"),
    ],
)
def test_what_is_wrong_and_what_to_do_is_one_sentence(message: str, words: str) -> None:
    sentence = explain(message)
    assert sentence is not None
    assert words in sentence
    assert "\n" not in sentence


@pytest.mark.parametrize(
    "message", ["", "10.0.0.1:9092/0: Connect to ipv4#10.0.0.1:9092 failed: Connection refused", "1/1 brokers are down"]
)
def test_an_error_that_speaks_for_itself_is_left_alone(message: str) -> None:
    assert explain(message) is None


def test_the_documentation_has_every_sentence() -> None:
    section = DOCS.read_text(encoding="utf-8").partition("## When a connection fails")[2]
    documented = re.findall(r"^\| [^|]+ \| ([^|`]+) \|$", section, re.MULTILINE)[1:]
    constants = [value for name, value in vars(client_errors).items() if name.isupper() and isinstance(value, str)]
    sentences = [*constants, *(sentence for _, sentence in client_errors._PATTERNS)]
    sentences += [client_errors.missing_right(operation, ["orders"]) for operation in ("Read", "Describe")]
    assert len(documented) == 13
    assert [words for words in documented if not any(each.startswith(words) for each in sentences)] == []
    # Rights on groups and on the cluster are not needed to connect.
    undocumented = [each for each in sentences if not any(each.startswith(words) for words in documented)]
    assert all("the group" in each or "on the cluster" in each for each in undocumented), undocumented


def test_topics_on_which_a_right_is_missing_are_named_by_the_first() -> None:
    one, three = (client_errors.missing_right("Describe", topics) for topics in (["a"], ["a", "b", "c"]))
    assert one == "Warren is not allowed to see the topic a: grant Describe on it to Warren's user"
    assert three == "Warren is not allowed to see the topic a and 2 others: grant Describe on them to Warren's user"

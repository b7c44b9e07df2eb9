"""`[client-profile.NAME]` with `[tls.NAME]`, `[sasl.NAME]` and `[iam.NAME]`."""

import re
from pathlib import Path

import pytest
import trustme

from tests.config.written import CONSUMER, loaded, mistakes, notes, warnings
from warren.config.kafka import Connection
from warren.config.summary import summary

CLUSTER = """
[cluster.local]
class-name = "kafka"
servers = ["localhost:9092"]
client-profile = "p"
"""
SCRAM = '[sasl.s]\nmechanism = "scram-sha-256"\nusername = "u"\npassword = "hush"\n'
PROFILE = '[client-profile.p]\ntls = "t"\nsasl = "s"\n[tls.t]\n'


@pytest.fixture
def files(tmp_path: Path) -> Path:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    for name in ("own", "other"):
        issued = authority.issue_cert(f"{name}@example.com")
        issued.cert_chain_pems[0].write_to_path(tmp_path / f"{name}.pem")
        issued.private_key_pem.write_to_path(tmp_path / f"{name}.key")
    (tmp_path / "empty").write_text("")
    return tmp_path


def located(lines: list[str]) -> list[str]:
    return [re.sub(r"^burrow\.toml:\d+: ", "", line) for line in lines]


def connection(files: Path, text: str) -> Connection:
    config = loaded(files, CLUSTER + CONSUMER + text)
    return config.connection_of(config.clusters["local"])


def test_burrows_own_sections_are_taken_as_they_are(files: Path) -> None:
    tls = 'certfile = "own.pem"\nkeyfile = "own.key"\ncafile = "ca.pem"\nnoverify = false\n'
    found = connection(files, f"{PROFILE}{tls}{SCRAM}handshake-first = true\n")
    assert found.tls is not None
    assert found.sasl is not None
    assert (found.tls.certfile, found.sasl.mechanism, found.iam) == (files / "own.pem", "SCRAM-SHA-256", None)
    assert "hush" not in repr(found)
    assert warnings(files, CLUSTER + CONSUMER + PROFILE + tls + SCRAM) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('[tls.t]\ncafile = "empty"', '[tls.t] cafile = "empty": has no certificate in PEM format'),
        ('[tls.t]\ncafile = "own.key"', '[tls.t] cafile = "own.key": has no certificate in PEM format'),
        (
            '[tls.t]\ncertfile = "own.pem"\nkeyfile = "other.key"',
            '[tls.t] keyfile = "other.key": is not the key of the certificate in certfile',
        ),
        (
            '[client-profile.p]\ntls = "t"\n[tls.t]\ncertfile = "own.pem"',
            '[client-profile.p] tls = "t": a client that has a certfile needs its keyfile too, and the other way round',
        ),
        (
            '[sasl.s]\nmechanism = "GSSAPI"\nusername = "u"\npassword = "p"',
            '[sasl.s] mechanism = "GSSAPI": must be one of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER',
        ),
        ('[sasl.s]\nusername = "u"', "[sasl.s] password is missing: the mechanism PLAIN needs it"),
        (
            '[sasl.s]\nmechanism = "OAUTHBEARER"\nclient-id = "u"\nclient-secret = "hush"',
            "[sasl.s] token-endpoint-url is missing: the mechanism OAUTHBEARER needs it",
        ),
        ('[iam.i]\nprofile = "ops"', "[iam.i] region is missing: must be a region of AWS such as eu-west-1"),
        (
            f'[client-profile.p]\ntls = "t"\nsasl = "s"\niam = "i"\n[tls.t]\n{SCRAM}[iam.i]\nregion = "eu-west-1"',
            "[client-profile.p] iam has both sasl and iam: only one of them is allowed",
        ),
        (
            '[client-profile.p.librdkafka]\n"sasl.password" = "hush"',
            "[client-profile.p] librdkafka has sasl.password: it is set by the keys of [sasl.NAME] or [iam.NAME]",
        ),
        (
            "[client-profile.p.java]\ngroup.id = 1",
            "[client-profile.p] java has group.id: Warren sets it, and works with no other value",
        ),
    ],
)
def test_mistakes_are_named_and_show_no_secret(files: Path, text: str, expected: str) -> None:
    given = text if "[client-profile.p" in text else f"[client-profile.p]\n{text}"
    assert located(mistakes(files, CLUSTER + CONSUMER + given)) == [expected]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "[client-profile.p]\n[tls.t]\nnoverify = true",
            "[tls.t] noverify = true: certificates are not verified, so anyone on the way can pose as the server",
        ),
        (
            '[client-profile.p]\nsasl = "s"\n[sasl.s]\nusername = "u"\npassword = "hush"',
            "[client-profile.p] sasl sends secrets for all to read: PLAIN needs TLS, so set tls",
        ),
        (
            '[client-profile.p.java]\n"ssl.protocoll" = "TLSv1.3"',
            "[client-profile.p] java has ssl.protocoll, which Java's client does not have; did you mean ssl.protocol?",
        ),
        (
            '[client-profile.p]\n[iam.i]\nregion = "eu-west-1"\nrole-arn = "a"\nprofile = "b"',
            "[iam.i] profile has no effect: role-arn is used",
        ),
    ],
)
def test_what_is_probably_not_intended_is_a_warning(files: Path, text: str, expected: str) -> None:
    assert located(warnings(files, CLUSTER + CONSUMER + text)) == [expected]
    assert notes(files, CLUSTER + CONSUMER + text) == []


def test_amazon_msk_without_its_package_is_a_mistake(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = '[client-profile.p]\niam = "i"\n[iam.i]\nregion = "eu-west-1"'
    assert connection(files, text).iam is not None
    monkeypatch.setattr("warren.config.kafka.find_spec", lambda _: None)
    assert located(mistakes(files, CLUSTER + CONSUMER + text)) == [
        "[client-profile.p] iam = \"i\": Amazon MSK needs a package that is not installed: pip install 'warren[msk]'"
    ]


def test_the_summary_says_how_a_cluster_is_secured(files: Path) -> None:
    config = loaded(files, f'{CLUSTER}{CONSUMER}{PROFILE}cafile = "ca.pem"\nnoverify = true\n{SCRAM}')
    assert next(summary(config)) == "cluster local: localhost:9092 (TLS, not verified, as u by SCRAM-SHA-256)"


def test_every_example_of_the_docs_is_accepted(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEY_PASSWORD", "")
    (files / "own.pem").rename(files / "warren.pem")
    (files / "own.key").rename(files / "warren-key.pem")
    (files / "secret").write_text("hush\n")
    examples = re.findall(r"```toml\n(.*?)```", Path("docs/secured-clusters.md").read_text(), re.DOTALL)
    assert len(examples) == 5
    for example in examples:
        text = re.sub(r"file:/run/secrets/[\w-]+", "file:secret", example)
        name = re.findall(r"\[client-profile\.(\w+)\]", text)[0]
        cluster = CLUSTER.replace('"p"', f'"{name}"')
        assert warnings(files, cluster + CONSUMER + text) == []

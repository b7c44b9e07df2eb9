"""The email notifier, with a real SMTP server: TLS, authentication, refusals."""

import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest
import trustme
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session
from msgspec import structs

from warren.cli import main
from warren.config import Notifier
from warren.config.secrets import Secret
from warren.errors import BusyError, RefusedError
from warren.incidents.model import Event
from warren.notify.senders.email import EmailSender
from warren.notify.templates.sample import sample_notification

OPEN = "Subject: {{.Result.Status}} {{.Group}}\n\n{{.Group}} lags {{.Result.TotalLag}} ✉\n"


@dataclass
class Mailbox:
    """The mails that the server took, and how it answers."""

    mails: list[EmailMessage] = field(default_factory=list)
    to: list[list[str]] = field(default_factory=list)
    users: list[str] = field(default_factory=list)
    was_tls: list[bool] = field(default_factory=list)
    answer: str = "250 OK"
    rcpt: str = "250 OK"
    port: int = 0

    async def handle_RCPT(self, _: SMTP, __: Session, envelope: Envelope, address: str, ___: list[str]) -> str:  # noqa: N802
        if self.rcpt.startswith("250"):
            envelope.rcpt_tos.append(address)
        return self.rcpt

    async def handle_DATA(self, _: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802
        if self.answer.startswith("250"):
            assert isinstance(envelope.content, bytes)
            self.mails.append(message_from_bytes(envelope.content, policy=policy.default))
            self.to.append(list(envelope.rcpt_tos))
            self.was_tls.append(session.ssl is not None)
        return self.answer

    def authenticate(self, _: SMTP, __: Session, ___: object, mechanism: str, data: object) -> AuthResult:
        is_known = isinstance(data, LoginPassword) and (data.login, data.password) == (b"warren", b"s3cret")
        self.users.append(mechanism)
        return AuthResult(success=is_known, handled=False)


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@contextmanager
def serving(authority: trustme.CA, *, tls: bool = True, auth: bool = False) -> Iterator[Mailbox]:
    mailbox = Mailbox()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    more: dict[str, Any] = {"tls_context": context, "require_starttls": True} if tls else {}
    if auth:
        more |= {"authenticator": mailbox.authenticate, "auth_required": True, "auth_require_tls": tls}
    with socket.create_server(("127.0.0.1", 0)) as free:
        mailbox.port = free.getsockname()[1]
    controller = Controller(mailbox, hostname="127.0.0.1", port=mailbox.port, **more)
    controller.start()
    try:
        yield mailbox
    finally:
        controller.stop()


@pytest.fixture
def notifier(tmp_path: Path, authority: trustme.CA) -> Notifier:
    (tmp_path / "open.tmpl").write_text(OPEN)
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    return Notifier(
        "mail", "email", tmp_path / "open.tmpl", server="127.0.0.1", from_="warren@example.com",
        to="oncall@example.com, team@example.com", extra_ca=tmp_path / "ca.pem",
    )  # fmt: skip


def test_a_mail_over_tls_with_a_password(authority: trustme.CA, notifier: Notifier) -> None:
    with serving(authority, auth=True) as mailbox:
        asked = replace(notifier, port=mailbox.port, auth_type="plain", username="warren", password=Secret("s3cret"))
        notification = sample_notification("mail", Event.OPEN)
        EmailSender(asked).send(notification)
        EmailSender(asked).send(notification)
        wrong = EmailSender(replace(asked, password=Secret("guess")))
        with pytest.raises(Exception, match="535") as refused:
            wrong.send(notification)
        assert not isinstance(refused.value, RefusedError), "a password can be put right while the notification waits"
        assert "guess" not in str(refused.value)
    mail, again = mailbox.mails
    assert (mail["Subject"], mail["From"]) == ("ERR sample-group", "warren@example.com")
    assert mailbox.to[0] == ["oncall@example.com", "team@example.com"]
    assert mail.get_content().strip() == "sample-group lags 46200 ✉"
    assert mail["Message-ID"] == again["Message-ID"], "sent again it is the same mail"
    assert mail["X-Warren-Event"] == "open"
    assert mailbox.was_tls == [True, True]
    assert mailbox.users[0] == "PLAIN"


def test_a_server_with_an_unknown_certificate_gets_nothing(authority: trustme.CA, notifier: Notifier) -> None:
    with serving(authority) as mailbox:
        stranger = replace(notifier, port=mailbox.port, extra_ca=None)
        with pytest.raises(ssl.SSLCertVerificationError):
            EmailSender(stranger).send(sample_notification("mail", Event.OPEN))
        EmailSender(replace(stranger, noverify=True)).send(sample_notification("mail", Event.OPEN))
    assert len(mailbox.mails) == 1


@pytest.mark.filterwarnings("ignore:Requiring AUTH while not requiring TLS")
def test_a_password_is_not_sent_in_clear_text_to_another_machine(
    authority: trustme.CA, notifier: Notifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(authority, tls=False, auth=True) as mailbox:
        known = replace(notifier, port=mailbox.port, auth_type="plain", username="warren", password=Secret("s3cret"))
        EmailSender(known).send(sample_notification("mail", Event.OPEN))
        assert len(mailbox.mails) == 1, "to this machine it may"
        monkeypatch.setattr("warren.notify.senders.email.LOCAL_SERVERS", ())
        with pytest.raises(BusyError, match="the server does not offer TLS, so the password is not sent"):
            EmailSender(known).send(sample_notification("mail", Event.OPEN))
    assert len(mailbox.mails) == 1


@pytest.mark.parametrize(
    ("answer", "rcpt", "is_final"),
    [
        ("554 no", "250 OK", True),
        ("451 later", "250 OK", False),
        ("250 OK", "550 nobody", True),
        ("250 OK", "450 busy", False),
    ],
)
def test_which_answers_are_final(
    authority: trustme.CA, notifier: Notifier, answer: str, rcpt: str, is_final: bool
) -> None:
    with serving(authority, tls=False) as mailbox:
        mailbox.answer, mailbox.rcpt = answer, rcpt
        with pytest.raises(RefusedError if is_final else BusyError):
            EmailSender(replace(notifier, port=mailbox.port)).send(sample_notification("mail", Event.OPEN))


@pytest.mark.parametrize(
    ("template", "subject", "kind", "body"),
    [
        (
            "Subject: a\nContent-Type: text/html; charset=utf-8\nMIME-version: 1.0;\n\n<b>x</b>\n",
            "a",
            "html",
            "<b>x</b>\n",
        ),
        ("subject: a\ntext\n", "a", "plain", "text\n"),
        ("text: {{.Group}}\n", "ERR: sample-group on sample-cluster", "plain", "text: sample-group\n"),
        ("", "ERR: sample-group on sample-cluster", "plain", "\n"),
        ("Subject: {{.Group}}\r\n\r\nbody\n", "sample-group", "plain", "body\n"),
    ],
)
def test_the_first_lines_of_a_template_are_headers(
    tmp_path: Path, notifier: Notifier, template: str, subject: str, kind: str, body: str
) -> None:
    (tmp_path / "open.tmpl").write_bytes(template.encode())
    mail = EmailSender(notifier).to_mail(sample_notification("mail", Event.OPEN))
    assert (mail["Subject"], mail.get_content_subtype(), mail.get_content()) == (subject, kind, body)


def test_a_name_cannot_start_a_header(notifier: Notifier) -> None:
    group = "g\r\nBcc: all@example.com\r\n\r\nhello"
    sample = sample_notification("mail", Event.REPORT)
    notification = structs.replace(sample, group=group, incident="", result=structs.replace(sample.result, group=group))
    mail = EmailSender(notifier).to_mail(notification)
    assert mail["Bcc"] is None
    assert "\n" not in str(mail["Subject"])
    assert mail.as_bytes()


def test_a_sample_is_sent_from_the_command_line(
    tmp_path: Path, authority: trustme.CA, notifier: Notifier, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving(authority, tls=False) as mailbox:
        (tmp_path / "burrow.toml").write_text(
            f"""[cluster.local]
class-name = "kafka"
servers = ["localhost:9092"]
[notifier.mail]
class-name = "email"
server = "127.0.0.1"
port = {mailbox.port}
from = "warren@example.com"
to = "oncall@example.com"
template-open = "open.tmpl"
template-close = "config/default-email.tmpl"
send-close = true
"""
        )
        assert main(["notify", "test", "mail", "--config-dir", str(tmp_path)]) == 0
        assert capsys.readouterr().out == "mail: open sent\nmail: close sent\n"
        assert [mail["X-Warren-Event"] for mail in mailbox.mails] == ["open", "close"]
        mailbox.answer = "554 no"
        assert main(["notify", "test", "mail", "--config-dir", str(tmp_path)]) == 1
        assert "554" in capsys.readouterr().err
        assert main(["notify", "test", "nobody", "--config-dir", str(tmp_path)]) == 1
        assert "configured notifiers: mail" in capsys.readouterr().err

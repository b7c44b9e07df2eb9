"""The email notifier: each message is a mail, over TLS where the server has it."""

import logging
import smtplib
import ssl
from email.message import EmailMessage
from email.utils import formatdate

from warren.config import Notifier
from warren.delivery.tls import tls_context
from warren.errors import RefusedError
from warren.incidents.model import Notification
from warren.notify.links import Links
from warren.notify.templates.render import MessageTemplates, templates_of

log = logging.getLogger(__name__)

PORT, TLS_PORT = 25, 465
LOCAL = ("localhost", "127.0.0.1", "::1")
"""Where a password may go unencrypted."""


class EmailSender:
    """Sends one notifier's letters, each over a connection of its own."""

    def __init__(self, notifier: Notifier, links: Links | None = None) -> None:
        assert notifier.server is not None
        self._notifier = notifier
        self._server = notifier.server
        self._port = notifier.port or PORT
        self._composer: MessageTemplates = templates_of(notifier, links)
        self._tls = tls_context(extra_ca=notifier.extra_ca, is_verified=not notifier.noverify)

    def __call__(self, letter: Notification) -> None:
        """Send a letter; RefusedError when the server will never take it."""
        mail = self.mail(letter)
        try:
            with self._connected() as smtp:
                refused = smtp.send_message(mail)
            for who, (code, words) in refused.items():
                # To send it again would send it to the others twice.
                log.error("notifier %s: %s did not get it: %d %s", self._notifier.name, who, code, _text(words))
        except smtplib.SMTPRecipientsRefused as error:
            said = "; ".join(f"{who}: {code} {_text(words)}" for who, (code, words) in error.recipients.items())
            if all(code >= 500 for code, _ in error.recipients.values()):
                raise RefusedError(said) from None
            raise ConnectionError(said) from None
        except (smtplib.SMTPSenderRefused, smtplib.SMTPDataError) as error:
            said = f"the server answered {error.smtp_code} {_text(error.smtp_error)}"
            raise (RefusedError if error.smtp_code >= 500 else ConnectionError)(said) from None

    def mail(self, letter: Notification) -> EmailMessage:
        """A letter as a mail: the lines a template begins with, up to an empty one, may be headers."""
        headers, body = _split(self._composer.body(letter))
        mail = EmailMessage()
        mail["From"] = self._notifier.from_ or ""
        mail["To"] = ", ".join(one.strip() for one in (self._notifier.to or "").split(",") if one.strip())
        status = letter.result.status
        mail["Subject"] = headers.get("subject") or _one_line(f"{status}: {letter.group} on {letter.cluster}")
        mail["Date"] = formatdate(letter.due_ms / 1000)
        # The same when it is sent again: mailboxes show it once.
        mail["Message-ID"] = f"<{letter.token}@warren>"
        mail["X-Warren-Event"] = str(letter.event)
        subtype = "html" if headers.get("content-type", "").lower().startswith("text/html") else "plain"
        mail.set_content(body, subtype=subtype)
        return mail

    def _connected(self) -> smtplib.SMTP:
        timeout = float(self._notifier.timeout)
        if self._port == TLS_PORT:
            smtp: smtplib.SMTP = smtplib.SMTP_SSL(self._server, self._port, timeout=timeout, context=self._tls)
        else:
            smtp = smtplib.SMTP(self._server, self._port, timeout=timeout)
        try:
            smtp.ehlo()
            if self._port != TLS_PORT and smtp.has_extn("starttls"):
                smtp.starttls(context=self._tls)
                smtp.ehlo()
            self._log_in(smtp)
        except BaseException:
            smtp.close()
            raise
        return smtp

    def _log_in(self, smtp: smtplib.SMTP) -> None:
        kind = self._notifier.auth_type
        if not kind:
            return
        smtp.user, smtp.password = self._notifier.username or "", self._notifier.password or ""
        if kind == "crammd5":
            smtp.auth("CRAM-MD5", smtp.auth_cram_md5)
            return
        if not isinstance(smtp.sock, ssl.SSLSocket) and self._server not in LOCAL:
            raise ConnectionError("the server has no TLS: a password is not sent there")
        smtp.auth("PLAIN", smtp.auth_plain)

    def close(self) -> None:
        """There is nothing to give back."""


def _split(text: str) -> tuple[dict[str, str], str]:
    """The headers that a text begins with, and what follows the empty line after them."""
    headers: dict[str, str] = {}
    lines = text.split("\n")
    for number, line in enumerate(lines):
        name, colon, value = line.partition(":")
        if not colon or name.lower() not in ("subject", "content-type", "mime-version"):
            return headers, "\n".join(lines[number + 1 if headers and not line.strip() else number :])
        headers[name.lower()] = _one_line(value)
    return headers, ""


def _one_line(text: str) -> str:
    """Names come from Kafka: none of them may begin a header of its own."""
    return " ".join(text.split())


def _text(words: bytes | str) -> str:
    return words.decode("utf-8", "replace") if isinstance(words, bytes) else words

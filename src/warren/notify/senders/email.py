"""The email notifier: each notification is a mail, sent over TLS if the server offers it, or never without."""

import logging
import smtplib
import ssl
from collections.abc import Callable, Container
from email.message import EmailMessage
from email.utils import formatdate
from html import escape

from warren.config import Notifier
from warren.config.notifiers import LOCAL_SERVERS, MAIL_TLS_PORT
from warren.config.secrets import revealed
from warren.delivery.http_client import tls_context
from warren.domain.printable import printable
from warren.errors import BusyError, RefusedError
from warren.incidents.model import Notification
from warren.notify.names import with_names
from warren.notify.senders.sender import Sender
from warren.notify.summary import one_line

log = logging.getLogger(__name__)

PORT = 25
_HEADERS = ("subject", "content-type", "mime-version")
"""Headers that a template may set."""
MAX_HEADER_CHARS = 400


class EmailSender(Sender):
    """Sends mails, each over a connection of its own."""

    def __init__(self, notifier: Notifier, external_url: str | None = None) -> None:
        super().__init__(notifier, external_url)
        assert notifier.server is not None
        self._server = notifier.server
        self._port = notifier.port or PORT
        self._tls = tls_context(notifier)

    def send(self, notification: Notification) -> None:
        """Send a notification as a mail."""
        mail = self.to_mail(notification)
        try:
            with self._connect() as smtp:
                refused = smtp.send_message(mail)
            for address, (code, answer) in refused.items():
                # Another attempt would send a second mail to the other addresses.
                name = self._notifier.name
                log.error("notifier %s: the server refused %s: %d %s", name, address, code, _to_text(answer))
        except smtplib.SMTPRecipientsRefused as error:
            answers = [f"{to}: {code} {_to_text(answer)}" for to, (code, answer) in error.recipients.items()]
            is_final = all(code >= 500 for code, _ in error.recipients.values())
            raise (RefusedError if is_final else BusyError)("; ".join(answers)) from None
        except (smtplib.SMTPSenderRefused, smtplib.SMTPDataError) as error:
            message = f"the server answered {error.smtp_code} {_to_text(error.smtp_error)}"
            raise (RefusedError if error.smtp_code >= 500 else BusyError)(message) from None

    def to_mail(self, notification: Notification) -> EmailMessage:
        """A notification as a mail. A template may start with header lines, up to an empty line.

        Names have no part in which headers there are, and no markup in a mail of HTML.
        """
        own, _ = self._render(notification, lambda _: "name", _HEADERS)
        headers, body = self._render(notification, printable, own)
        is_html = own.get("content-type", "").lower().startswith("text/html")
        if is_html:
            _, body = self._render(notification, lambda name: escape(printable(name)), own)
        subject = f"{notification.result.status}: {one_line(notification.group)} on {one_line(notification.cluster)}"
        mail = EmailMessage()
        mail["From"] = self._notifier.from_ or ""
        mail["To"] = ", ".join(filter(None, map(str.strip, (self._notifier.to or "").split(","))))
        mail["Subject"] = headers.get("subject") or subject
        mail["Date"] = formatdate(notification.due_ms / 1000)
        # The same when it is sent again, so that mailboxes show it once.
        mail["Message-ID"] = f"<{notification.token}@warren>"
        mail["X-Warren-Event"] = str(notification.event)
        mail.set_content(body, subtype="html" if is_html else "plain")
        return mail

    def _render(
        self, notification: Notification, rewrite: Callable[[str], str], names: Container[str]
    ) -> tuple[dict[str, str], str]:
        """The headers of some names and the body, with the names from Kafka rewritten."""
        return _split_headers(self._templates.body(with_names(notification, rewrite)), names)

    def _connect(self) -> smtplib.SMTP:
        timeout = float(self._notifier.timeout)
        if self._port == MAIL_TLS_PORT:
            smtp: smtplib.SMTP = smtplib.SMTP_SSL(self._server, self._port, timeout=timeout, context=self._tls)
        else:
            smtp = smtplib.SMTP(self._server, self._port, timeout=timeout)
        try:
            smtp.ehlo()
            if self._port != MAIL_TLS_PORT and smtp.has_extn("starttls"):
                smtp.starttls(context=self._tls)
                smtp.ehlo()
            if self._notifier.require_tls and not isinstance(smtp.sock, ssl.SSLSocket):
                raise BusyError("the server does not offer TLS, which require-tls demands: nothing is sent")
            self._log_in(smtp)
        except BaseException:
            smtp.close()
            raise
        return smtp

    def _log_in(self, smtp: smtplib.SMTP) -> None:
        auth_type = self._notifier.auth_type
        if not auth_type:
            return
        smtp.user, smtp.password = self._notifier.username or "", revealed(self._notifier.password)
        if auth_type == "crammd5":
            smtp.auth("CRAM-MD5", smtp.auth_cram_md5)
        elif isinstance(smtp.sock, ssl.SSLSocket) or self._server in LOCAL_SERVERS:
            smtp.auth("PLAIN", smtp.auth_plain)
        else:
            raise BusyError("the server does not offer TLS, so the password is not sent")


def _split_headers(text: str, names: Container[str]) -> tuple[dict[str, str], str]:
    """The header lines of some names that a text starts with, and the body after them."""
    headers: dict[str, str] = {}
    lines = text.split("\n")
    for index, line in enumerate(lines):
        name, colon, value = line.partition(":")
        if not colon or name.lower() not in names:
            return headers, "\n".join(lines[index + 1 if headers and not line.strip() else index :])
        headers[name.lower()] = one_line(value, MAX_HEADER_CHARS)
    return headers, ""


def _to_text(answer: bytes | str) -> str:
    return answer.decode("utf-8", "replace") if isinstance(answer, bytes) else answer

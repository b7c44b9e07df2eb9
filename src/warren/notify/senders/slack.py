"""The slack notifier: a bot that keeps each incident in one thread, or a webhook that posts single messages."""

import json

from warren.config.secrets import revealed
from warren.delivery.http_client import HttpResponse
from warren.errors import BusyError, RefusedError
from warren.incidents.model import Event, Notification
from warren.notify.names import with_names
from warren.notify.senders.sender import HttpClientSender
from warren.notify.senders.slack_message import Payload, from_template, to_message, to_short_message
from warren.notify.slack_markup import escape_markup
from warren.notify.summary import link_to, one_line

API = "https://slack.com/api"
# Slack's error codes.
_TRY_AGAIN = frozenset({"ratelimited", "internal_error", "service_unavailable", "fatal_error", "request_timeout"})
_CANNOT_UPDATE = frozenset({"message_not_found", "cant_update_message", "edit_window_closed"})
_CANNOT_REPLY = frozenset({"message_not_found", "thread_not_found", "cannot_reply_to_message"})


class SlackError(RefusedError):
    """An error that Slack's API answered, which another attempt would not change."""

    def __init__(self, code: str) -> None:
        super().__init__(f"Slack answered {code}")
        self.code = code


class SlackSender(HttpClientSender):
    """Posts to an incoming webhook; with a bot's token to a channel, and what follows in an incident to its thread."""

    def send(self, notification: Notification) -> str | None:
        """Post a notification; returns the position of a message that starts a thread."""
        rendered = self._templates.try_render(with_names(notification, escape_markup))
        if rendered is None:
            message = to_message(notification, link_to(notification, self._external_url))
        else:
            message = from_template(rendered)
        if not self._notifier.token:
            channel = {"channel": notification.channel} if notification.channel else {}
            self._request(self._url, message | channel)
            return None
        # Other programs recognize a message that was sent twice by its key.
        identity = {"key": notification.token, "incident": notification.incident}
        metadata = {"metadata": {"event_type": "warren_incident", "event_payload": identity}}
        message |= metadata
        first = _read_receipt(notification.receipt)
        if first is None:
            return self._post(message | {"channel": notification.channel or self._notifier.channel})
        if notification.event is Event.CLOSE:
            self._update(first, message)
            message = to_short_message(notification) | metadata
        is_worse = notification.event is Event.WORSE
        try:
            # The reply is posted last: if the update has to be tried again, nothing is posted twice.
            self._post(message | {"channel": first["channel"], "thread_ts": first["ts"], "reply_broadcast": is_worse})
        except SlackError as error:
            if error.code not in _CANNOT_REPLY:
                raise
            return self._post(message | {"channel": first["channel"]})
        return None

    def _update(self, first: Payload, message: Payload) -> None:
        """Replace the first message of an incident with the closing one, if Slack still allows it."""
        # Blocks that an update does not mention would stay.
        empty: Payload = {"blocks": [], "attachments": []}
        try:
            self._call("chat.update", empty | message | first)
        except SlackError as error:
            if error.code not in _CANNOT_UPDATE:
                raise

    def _post(self, message: Payload) -> str:
        answer = self._call("chat.postMessage", message)
        return json.dumps({"channel": answer.get("channel"), "ts": answer.get("ts")})

    def _request(self, url: str, payload: Payload, headers: dict[str, str] | None = None) -> HttpResponse:
        return self._client.send("POST", url, json.dumps(payload, ensure_ascii=False).encode(), headers)

    def _call(self, method: str, payload: Payload) -> Payload:
        bearer = f"Bearer {revealed(self._notifier.token)}"
        headers = {"Authorization": bearer, "Content-Type": "application/json; charset=utf-8"}
        response = self._request(f"{API}/{method}", payload, headers)
        try:
            answer = response.json()
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            raise BusyError("the answer does not come from Slack")
        if answer.get("ok") is True:
            return answer
        code = one_line(str(answer.get("error")))
        if code in _TRY_AGAIN:
            raise BusyError(f"Slack answered {code}")
        raise SlackError(code)


def _read_receipt(receipt: str) -> Payload | None:
    """The channel and timestamp of the first message of an incident; None if there is none."""
    try:
        first = json.loads(receipt)
        return {"channel": first["channel"], "ts": first["ts"]} if first["channel"] and first["ts"] else None
    except (ValueError, TypeError, KeyError):
        return None

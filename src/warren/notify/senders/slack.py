"""The slack notifier: a webhook that says each message for itself, or a bot that keeps an incident in one thread."""

import json
from collections.abc import Callable

import httpx

from warren.config import Notifier
from warren.delivery.http_client import HttpClient
from warren.errors import BusyError, RefusedError
from warren.incidents.model import Event, Notification
from warren.notify.links import Links
from warren.notify.senders.slack_message import Payload, farewell, from_template, message
from warren.notify.summary import one_line
from warren.notify.templates.render import templates_of

API = "https://slack.com/api"
TRY_AGAIN = frozenset({"ratelimited", "internal_error", "service_unavailable", "fatal_error", "request_timeout"})
_CANNOT_CHANGE = frozenset({"message_not_found", "cant_update_message", "edit_window_closed"})
_CANNOT_ANSWER = frozenset({"message_not_found", "thread_not_found", "cannot_reply_to_message"})


class SlackError(RefusedError):
    """Slack has said no, in a word of its own."""

    def __init__(self, word: str) -> None:
        super().__init__(f"Slack answered {word}")
        self.word = word


class SlackWebhook:
    """Says each letter where its webhook leads."""

    def __init__(self, notifier: Notifier, links: Links) -> None:
        assert notifier.url_open is not None
        self._url = notifier.url_open
        self._words = _words_of(notifier, links)
        self._client = HttpClient.for_notifier(notifier)

    def __call__(self, letter: Notification) -> None:
        """Say a letter; RefusedError when Slack will never take it."""
        payload = self._words(letter)
        if letter.channel:
            payload["channel"] = letter.channel
        self._client.send("POST", self._url, _bytes(payload))

    def close(self) -> None:
        """Give the connection back."""
        self._client.close()


class SlackBot:
    """Says the first letter of an incident in a channel, and those that follow in its thread."""

    def __init__(self, notifier: Notifier, links: Links, api: str | None = None) -> None:
        self._notifier = notifier
        self._api = api or API
        self._words = _words_of(notifier, links)
        self._client = HttpClient.for_notifier(notifier)

    def __call__(self, letter: Notification) -> str | None:
        """Say a letter, and give where it stands if it begins a thread; RefusedError when Slack will never take it."""
        payload = self._words(letter) | {"metadata": _metadata(letter)}
        first = _place(letter.receipt)
        if first is None:
            return self._post(payload | {"channel": letter.channel or self._notifier.channel})
        if letter.event is Event.CLOSE:
            self._rewrite(first, payload)
            payload = farewell(letter) | {"metadata": _metadata(letter)}
        thread = {"channel": first["channel"], "thread_ts": first["ts"], "reply_broadcast": letter.event is Event.WORSE}
        try:
            # Last, so that nothing is said twice when what is before it has to be tried again.
            self._post(payload | thread)
        except SlackError as error:
            if error.word not in _CANNOT_ANSWER:
                raise
            return self._post(payload | {"channel": first["channel"]})
        return None

    def _rewrite(self, first: Payload, payload: Payload) -> None:
        """Make the first message of an incident say how it ended, if it may still be changed."""
        # Blocks that are not named would stay.
        empty: Payload = {"blocks": [], "attachments": []}
        try:
            self._ask("chat.update", empty | payload | first)
        except SlackError as error:
            if error.word not in _CANNOT_CHANGE:
                raise

    def _post(self, payload: Payload) -> str:
        said = self._ask("chat.postMessage", payload)
        return json.dumps({"channel": said.get("channel"), "ts": said.get("ts")})

    def _ask(self, method: str, payload: Payload) -> Payload:
        headers = {"Authorization": f"Bearer {self._notifier.token}", "Content-Type": "application/json; charset=utf-8"}
        said = _said(self._client.send("POST", f"{self._api}/{method}", _bytes(payload), headers))
        if said.get("ok") is True:
            return said
        word = one_line(str(said.get("error")))
        if word in TRY_AGAIN:
            raise BusyError(f"Slack answered {word}")
        raise SlackError(word)

    def close(self) -> None:
        """Give the connection back."""
        self._client.close()


def slack_sender(notifier: Notifier, links: Links) -> SlackWebhook | SlackBot:
    """A bot where there is a token for it, else a webhook."""
    return SlackBot(notifier, links) if notifier.token else SlackWebhook(notifier, links)


def _words_of(notifier: Notifier, links: Links) -> Callable[[Notification], Payload]:
    """How a notifier says a letter: by its template, or in our own form where it has none or that fails."""
    composer = templates_of(notifier, links)

    def words(letter: Notification) -> Payload:
        made = composer.made(letter)
        return message(letter, links.to(letter)) if made is None else from_template(made)

    return words


def _metadata(letter: Notification) -> Payload:
    """By which another program can tell a message that was sent again."""
    return {"event_type": "warren_incident", "event_payload": {"key": letter.token, "incident": letter.incident}}


def _place(receipt: str) -> Payload | None:
    """Where the first message of an incident stands; None when it was never said."""
    try:
        held = json.loads(receipt)
        return {"channel": held["channel"], "ts": held["ts"]} if held["channel"] and held["ts"] else None
    except (ValueError, TypeError, KeyError):
        return None


def _said(answer: httpx.Response) -> Payload:
    try:
        said = answer.json()
    except ValueError:
        said = None
    if not isinstance(said, dict):
        raise BusyError("the answer is not one of Slack")
    return said


def _bytes(payload: Payload) -> bytes:
    return json.dumps(payload, ensure_ascii=False).encode()

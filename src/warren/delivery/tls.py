"""Whom a notifier trusts."""

import ssl

from warren.config import Notifier


def tls_of(notifier: Notifier) -> ssl.SSLContext:
    """The machine's authorities and one more, or nobody's word at all, as it is configured."""
    context = ssl.create_default_context()
    if notifier.extra_ca is not None:
        context.load_verify_locations(notifier.extra_ca)
    if notifier.noverify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context

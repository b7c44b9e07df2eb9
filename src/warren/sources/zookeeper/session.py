"""Sessions with a ZooKeeper ensemble."""

from collections.abc import Sequence

from kazoo.client import KazooClient
from kazoo.retry import KazooRetry

from warren.config.security import Tls


def new_client(
    servers: Sequence[str], timeout_s: float, tls: Tls | None = None, credentials: str | None = None
) -> KazooClient:
    """A client that connects again for ever; `credentials` are `user:password` of the digest scheme."""
    return KazooClient(
        ",".join(servers),
        timeout=timeout_s,
        connection_retry=KazooRetry(max_tries=-1, delay=0.2, max_delay=5),
        auth_data=[("digest", credentials)] if credentials else None,
        **({} if tls is None else _tls_options(tls)),
    )


def _tls_options(tls: Tls) -> dict[str, object]:
    return {
        "use_ssl": True,
        "certfile": tls.certfile and str(tls.certfile),
        "keyfile": tls.keyfile and str(tls.keyfile),
        "keyfile_password": tls.keypassword and tls.keypassword.reveal(),
        "ca": tls.cafile and str(tls.cafile),
        "verify_certs": not tls.noverify,
        "check_hostname": not tls.noverify,
    }

"""The errors that Warren reports in a sentence. Anything else is a bug and shows its traceback.

WarrenError
├── ConfigError          the configuration has mistakes; it lists all of them
├── JavaError            there is no usable Java, or it did not start
├── JarsError            jars of Kafka or of Spark's Kafka connector could not be downloaded
├── SnapshotError        something is wrong with the published snapshots
│   ├── NoSnapshot       nothing has been published yet
│   ├── CorruptSnapshot  a file is missing, truncated or not what its manifest says
│   │   └── UnknownFormat  a manifest was written by another version of Warren
│   └── Fenced           another Warren has taken over the data directory
├── ClusterError         a Kafka cluster did not answer, or refused
├── ReplicationError     the replicated store of incidents could not be read or written
├── RequestError         an HTTP request is not valid, not allowed now, or asks for what is not there
├── RefusedError         a server will never accept a request: do not send it again
│   └── SlackError       Slack answered with an error code (notify/senders/slack.py)
├── BusyError            a server may accept a request later: send it again
│   └── SecretError      the file of a secret, certificate or key cannot be used now
└── DemoError            the demo's own Kafka or its consumers did not start

Errors that never leave their own module are declared there.
"""

from collections.abc import Iterable


class WarrenError(Exception):
    """An error that is reported to the user in a sentence, without a traceback."""


class ConfigError(WarrenError):
    """The configuration has mistakes; `mistakes` lists all of them."""

    def __init__(self, mistakes: Iterable[str]) -> None:
        self.mistakes = tuple(mistakes)
        super().__init__("\n".join(self.mistakes))

    def __reduce__(self) -> tuple[type["ConfigError"], tuple[tuple[str, ...]]]:
        # Exceptions are pickled by their args, and a string would be taken for a list of letters.
        return type(self), (self.mistakes,)


class JavaError(WarrenError):
    """No Java 17 or 21 could be found or installed, or it did not start."""


class JarsError(WarrenError):
    """Jars could not be downloaded; the message names them and says what to do."""


class SnapshotError(WarrenError):
    """Something is wrong with the published snapshots."""


class NoSnapshot(SnapshotError):  # noqa: N818 - reads as what it is
    """Nothing has been published in this data directory yet."""


class CorruptSnapshot(SnapshotError):  # noqa: N818
    """A file of a snapshot is missing, truncated or not what its manifest says."""


class UnknownFormat(CorruptSnapshot):
    """A manifest was written by another version of Warren: unusable for this one, but not damaged."""


class Fenced(SnapshotError):  # noqa: N818
    """Another Warren has taken over the data directory, or its store of incidents; this one must stop."""


class ClusterError(WarrenError):
    """A Kafka cluster did not answer, or refused."""


class ReplicationError(WarrenError):
    """The replicated store of incidents could not be read or written; it is read again before anything else."""


class RequestError(WarrenError):
    """An HTTP request is not valid, not allowed now, or asks for what is not there; it has the response's status."""

    def __init__(self, message: str, status: int = 400, headers: tuple[tuple[str, str], ...] = ()) -> None:
        super().__init__(message)
        self.status = status
        self.headers = headers


class DemoError(WarrenError):
    """The demo's own Kafka or its consumers did not start."""


class RefusedError(WarrenError):
    """A server will never accept a request; sending it again does not help."""


class BusyError(WarrenError):
    """A server may accept a request later, but not before `wait_s` seconds have passed."""

    def __init__(self, message: str, wait_s: float = 0.0) -> None:
        super().__init__(message)
        self.wait_s = wait_s


class SecretError(BusyError):
    """The file of a secret, certificate or key cannot be used now; the message never quotes the file."""

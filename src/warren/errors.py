"""What can go wrong in a way the user can act on; anything else is a bug and shows its traceback.

WarrenError
├── ConfigError          the configuration has mistakes (all of them, in one list)
├── JavaError            no usable Java, or it did not start
├── JarsError            jars of Kafka or of Spark's Kafka connector could not be fetched
├── SnapshotError        the published state
│   ├── NoSnapshot       nothing has been published yet
│   ├── CorruptSnapshot  a file is missing, cut short or not what its manifest says
│   └── Fenced           another writer took over the data directory
├── ClusterError         a Kafka cluster did not answer or refused
├── ReplicationError            the incidents that several Warrens share could not be read or written
├── RequestError         an HTTP request that cannot be understood or met
├── RefusedError         a server will never take a request: sending it again would not help
├── BusyError            a server may take a request later, after the wait that it asked for, if any
└── DemoError            the demo's own Kafka or consumers did not come up
"""

from collections.abc import Iterable


class WarrenError(Exception):
    """Anything Warren tells its user in a sentence, without a traceback."""


class ConfigError(WarrenError):
    """The configuration has mistakes; `mistakes` names every one of them."""

    def __init__(self, mistakes: Iterable[str]) -> None:
        self.mistakes = tuple(mistakes)
        super().__init__("\n".join(self.mistakes))

    def __reduce__(self) -> tuple[type["ConfigError"], tuple[tuple[str, ...]]]:
        # Exceptions are pickled by their args, which would turn the one text into a list of letters.
        return type(self), (self.mistakes,)


class JavaError(WarrenError):
    """No Java 17 or 21 could be found or installed, or it did not start."""


class JarsError(WarrenError):
    """Jars could not be fetched; the message names them and what to do."""


class SnapshotError(WarrenError):
    """Something is wrong with the published state."""


class NoSnapshot(SnapshotError):  # noqa: N818 - reads as what it is
    """Nothing has been published in this data directory yet."""


class CorruptSnapshot(SnapshotError):  # noqa: N818
    """A file of a snapshot is missing, cut short or not what its manifest says."""


class Fenced(SnapshotError):  # noqa: N818
    """Another writer has taken over this data directory; this one must stop."""


class ClusterError(WarrenError):
    """A Kafka cluster did not answer, or refused."""


class ReplicationError(WarrenError):
    """The incidents that several Warrens share could not be read or written; they are read anew before more is done."""


class RequestError(WarrenError):
    """An HTTP request that cannot be understood or met; says why, and is answered with its status."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


class DemoError(WarrenError):
    """The demo's own Kafka or its consumers did not come up."""


class RefusedError(WarrenError):
    """A server will never take a request; sending it again would not help."""


class BusyError(WarrenError):
    """A server does not take a request now and may do so later, but not before `wait_s` seconds have passed."""

    def __init__(self, message: str, wait_s: float = 0.0) -> None:
        super().__init__(message)
        self.wait_s = wait_s

"""What the brokers say, in each sample, about the offsets topics and about topics that are missing."""

from collections.abc import Sequence
from dataclasses import replace

from warren.errors import ClusterError
from warren.kafka.admin import Admin, AdminOf, TopicDescriptions
from warren.kafka.broker_versions import BrokerVersions
from warren.kafka.client_errors import missing_right
from warren.kafka.samples import SamplingTarget, Topic

_MAX_QUESTIONS = 5
"""How often brokers are asked for their versions that answer everything else."""


class TopicDescriber:
    """Describes topics of one cluster; raises ClusterError if Warren may not see what it needs."""

    def __init__(self, target: SamplingTarget, client: AdminOf) -> None:
        self._target = target
        self._client = client
        self._versions: BrokerVersions | None = None
        self._questions_left = _MAX_QUESTIONS
        self._seen: set[str] = set()
        """The topics that exist, or have existed."""
        self._readers = [(section, AdminOf(connection)) for section, connection in target.readers]

    def describe(self, missing_topics: Sequence[str], deadline: float) -> TopicDescriptions:
        """The offsets topics, and the topics that are missing: some may be hidden, others may be back."""
        # Offsets topics are not taken from the refresh: a new cluster creates them with its first commit.
        offsets_topics = self._target.offsets_topics
        admin = self._client.admin()
        unlisted = self._unlisted(admin, missing_topics, deadline)
        names = [name for name in (*offsets_topics, *missing_topics) if name not in unlisted]
        described = admin.describe_topics(names, deadline)
        # Brokers that answer, but do not tell their versions, want a certificate for that. They are not asked for ever.
        self._questions_left = max(self._questions_left - 1, 0)
        self._seen |= described.topics.keys()
        if unreadable := [name for name in offsets_topics if name in described.hidden]:
            raise ClusterError(missing_right("Read", unreadable))
        for section, reader in self._readers:
            # Where a profile does not fit the port, Java's client waits and says nothing; librdkafka tells why.
            try:
                reader.admin().describe_topics([name for name in offsets_topics if name not in unlisted], deadline)
            except ClusterError as error:
                raise ClusterError(f"{section}: {error}") from error
        return replace(described, absent=[*described.absent, *unlisted])

    def _unlisted(self, admin: Admin, missing_topics: Sequence[str], deadline: float) -> list[str]:
        """The topics that do not exist, as far as old brokers would create them when they are described."""
        versions, risky = self._known_versions(admin), set[str]()
        if versions is not None and versions.creates_topics:
            risky = {*self._target.offsets_topics, *missing_topics}
        elif versions is not None and versions.creates_offsets_topic:
            risky = {*self._target.offsets_topics} - self._seen
        return sorted(risky.difference(admin.topic_names(deadline))) if risky else []

    def _known_versions(self, admin: Admin) -> BrokerVersions | None:
        """What the brokers understand, as far as they tell; raises if they are too old for Warren."""
        if self._versions is None and self._questions_left:
            versions = admin.ask_versions()
            if versions is not None and versions.too_old:
                # They are asked again for the next sample, as they may be upgraded.
                raise ClusterError(versions.too_old)
            self._versions = versions
        return self._versions

    def refuse_without_topics(self, topics: Sequence[Topic], described: TopicDescriptions) -> None:
        """Raise if Warren may see none of the topics that groups consume."""
        others = {*self._target.offsets_topics, *self._target.own_topics}
        hidden = [name for name in described.hidden if name not in others]
        if hidden and all(topic.name in others for topic in topics):
            raise ClusterError(missing_right("Describe", hidden))

"""What the brokers say, in each sample, about the offsets topics and about topics that are missing."""

from collections.abc import Sequence

from warren.errors import ClusterError
from warren.kafka.admin import AdminOf, TopicDescriptions
from warren.kafka.client_errors import missing_right
from warren.kafka.samples import SamplingTarget, Topic


class TopicDescriber:
    """Describes topics of one cluster; raises ClusterError if Warren may not see what it needs."""

    def __init__(self, target: SamplingTarget, client: AdminOf) -> None:
        self._target = target
        self._client = client
        self._readers = [(section, AdminOf(connection)) for section, connection in target.readers]

    def describe(self, missing_topics: Sequence[str], deadline: float) -> TopicDescriptions:
        """The offsets topics, and the topics that are missing: some may be hidden, others may be back."""
        # Offsets topics are not taken from the refresh: a new cluster creates them with its first commit.
        offsets_topics = self._target.offsets_topics
        described = self._client.admin().describe_topics([*offsets_topics, *missing_topics], deadline)
        if unreadable := [name for name in offsets_topics if name in described.hidden]:
            raise ClusterError(missing_right("Read", unreadable))
        for section, reader in self._readers:
            # Where a profile does not fit the port, Java's client waits and says nothing; librdkafka tells why.
            try:
                reader.admin().describe_topics(offsets_topics, deadline)
            except ClusterError as error:
                raise ClusterError(f"{section}: {error}") from error
        return described

    def refuse_without_topics(self, topics: Sequence[Topic], described: TopicDescriptions) -> None:
        """Raise if Warren may see none of the topics that groups consume."""
        others = {*self._target.offsets_topics, *self._target.own_topics}
        hidden = [name for name in described.hidden if name not in others]
        if hidden and all(topic.name in others for topic in topics):
            raise ClusterError(missing_right("Describe", hidden))

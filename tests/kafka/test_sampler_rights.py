"""Samples of a real cluster with ACLs, whose topics Warren may no longer see."""

from pathlib import Path

from tests.config.written import loaded
from tests.kit.kafka import commit
from tests.kit.rights import Right, documented_rights
from tests.kit.secured import SCRAM, USERS, SecuredKafka
from tests.kit.secured_sections import secured_sections
from tests.kit.warrens import to_toml, wait_for
from warren.demo.workload.topics import create_topics
from warren.kafka.sampler import ClusterSamplers
from warren.kafka.samples import ClusterSample, SamplingTarget

USER = USERS[SCRAM]


def test_topics_that_may_no_longer_be_seen_are_not_deleted(tmp_path: Path) -> None:
    with SecuredKafka(tmp_path / "kafka") as kafka:
        kafka.grant(USER, documented_rights("To watch a cluster"))
        create_topics(kafka.bootstrap, {"orders": 1, "payments": 1})
        commit(kafka.bootstrap, "billing", "orders", {0: 0})
        config = loaded(tmp_path, to_toml(secured_sections(kafka, {"main": SCRAM})))
        connection = config.connection_of(config.clusters["main"])
        target = SamplingTarget("main", connection, topic_refresh_s=0.2)
        with ClusterSamplers([target], processes=1) as samplers:

            def sample() -> ClusterSample:
                return samplers.sample(10.0)["main"]

            def topics() -> set[str]:
                return {topic.name for topic in sample().topics}

            wait_for(lambda: {"orders", "payments"} <= topics(), "the topics are seen")
            kafka.revoke(USER, [Right("Describe", "topic")])
            hidden = "Warren may not see the topic orders (and 1 others): grant Describe on it to Warren's user"
            wait_for(lambda: sample().error == hidden, f"the right is named: {sample().error}")
            assert sample().error == hidden, "every sample says so, not only the first"
            kafka.grant(USER, [Right("Describe", "topic")])
            wait_for(lambda: sample().error is None, "it recovers by itself")
            admin = kafka.admin()
            admin.delete_topics(["payments"])["payments"].result(30)
            wait_for(lambda: "payments" not in topics(), "a topic that is deleted is gone")
            assert sample().error is None

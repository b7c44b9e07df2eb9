"""Which metrics a scrape gets: by `[metrics]` and by its own query, without a change to their samples."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.servers import Client, Town, server_config, serving
from warren.config.http import Metrics

OF_PARTITIONS = {
    "burrow_kafka_consumer_current_offset",
    "burrow_kafka_topic_partition_status",
    "burrow_kafka_consumer_partition_lag",
    "kafka_consumergroup_group_lag",
    "kafka_consumergroup_group_lag_seconds",
    "burrow_kafka_topic_partition_offset",
}
OF_GROUPS = {
    "burrow_kafka_consumer_lag_total",
    "burrow_kafka_consumer_status",
    "kafka_consumergroup_group_max_lag",
    "kafka_consumergroup_group_sum_lag",
    "kafka_consumergroup_group_max_lag_seconds",
    "warren_group_catch_up_seconds",
    "warren_group_oldest_unread_age_seconds",
    "warren_group_retention_left_seconds",
    "warren_group_lost_messages",
    "warren_group_produced_per_second",
    "warren_group_consumed_per_second",
}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    town = Town(tmp_path_factory.mktemp("choice")).grow()
    town.publish()
    return town.data


@pytest.fixture(scope="module")
def client(data: Path) -> Iterator[Client]:
    with serving(server_config(data)) as [client]:
        yield client


@pytest.fixture(scope="module")
def narrow(data: Path) -> Iterator[Client]:
    with serving(server_config(data, metrics=Metrics("group", ("burrow_*", "*_ready")))) as [client]:
        yield client


def families(client: Client, query: str = "") -> dict[str, str]:
    """The text of each family by its name, without those whose value is the age of the snapshot."""
    text = client.ask("/metrics" + query).text
    blocks = [block for block in ("\n" + text).split("\n# HELP ") if block.strip()]
    return {block.split(" ", 1)[0]: block.strip() for block in blocks if "snapshot_age" not in block.split(" ", 1)[0]}


def test_a_level_leaves_out_what_is_below_it_and_changes_no_sample(client: Client) -> None:
    whole = families(client)
    assert families(client, "?level=partition") == whole
    assert families(client, "?level=group") == {k: v for k, v in whole.items() if k not in OF_PARTITIONS}
    assert families(client, "?level=cluster") == {k: v for k, v in whole.items() if k not in OF_PARTITIONS | OF_GROUPS}
    assert whole.keys() > OF_PARTITIONS | OF_GROUPS


def test_names_choose_metrics_as_in_the_client_libraries_of_prometheus(client: Client) -> None:
    assert families(client, "?name[]=warren_ready").keys() == {"warren_ready"}
    both = families(client, "?name%5B%5D=warren_ready&name%5B%5D=burrow_kafka_consumer_*&level=group")
    assert both.keys() == {"warren_ready", "burrow_kafka_consumer_lag_total", "burrow_kafka_consumer_status"}
    assert families(client, "?name[]=nothing").keys() == set()


def test_the_file_chooses_what_a_request_does_not(narrow: Client, client: Client) -> None:
    chosen = {"burrow_kafka_consumer_lag_total", "burrow_kafka_consumer_status", "warren_ready"}
    assert families(narrow).keys() == chosen
    assert families(narrow, "?level=cluster").keys() == {"warren_ready"}
    assert families(narrow, "?level=partition&name[]=*") == families(client)


@pytest.mark.parametrize("query", ["?level=topic", "?level=", "?name[]=[", "?name[]={a"])
def test_what_cannot_be_chosen_is_refused(client: Client, query: str) -> None:
    got = client.ask("/metrics" + query)
    assert got.status == 400
    assert got.json["error"] is True

"""A reader on a real ZooKeeper: what it sees, how it survives, and how little it asks for."""

import time
from collections.abc import Iterator
from dataclasses import replace

import pytest
from kazoo.client import KazooClient
from kazoo.security import make_digest_acl

from tests.kit.warrens import wait_for
from tests.kit.znodes import OldConsumers, old_consumers
from tests.kit.zookeeper import ZooKeeperServer
from tests.kit.zookeeper_readers import reading, target_of
from warren.config.secrets import Secret
from warren.domain.matching import GroupFilter
from warren.sources.zookeeper.layouts import StormLayout, ZnodeReject
from warren.sources.zookeeper.readers import ZooKeeperReaders
from warren.sources.zookeeper.samples import Ack


@pytest.fixture
def znodes(zookeeper: ZooKeeperServer) -> Iterator[OldConsumers]:
    with old_consumers(zookeeper.address) as written:
        yield written


def test_every_change_is_given_once_with_the_time_and_the_transaction_of_its_znode(
    zookeeper: ZooKeeperServer, znodes: OldConsumers
) -> None:
    znodes.commit("billing", "orders", 0, 10)
    znodes.commit("billing", "orders", 1, 20)
    with reading(target_of(zookeeper, znodes)) as taker:
        taker.until(lambda: len(taker.changes) == 2, "both are listed")
        assert taker.sample.is_listed
        znodes.commit("billing", "orders", 1, 25)
        taker.until(lambda: len(taker.changes) == 3, "the change is seen")
        znodes.commit("billing", "orders", 1, 30)
        taker.until(lambda: len(taker.changes) == 4, "the next change is seen")
        stat = znodes.client.exists(f"{znodes.chroot}/consumers/billing/offsets/orders/1")
        row = taker.sample.changes.to_pylist()[0]
        assert (row["time_ms"], row["zxid"]) == (stat.mtime, stat.mzxid)
        wait_for(lambda: taker.take().seen.zxid >= stat.mzxid, "all up to it is seen")
    assert sorted(taker.changes) == [("billing", "orders", 0, 10), *(("billing", "orders", 1, n) for n in (20, 25, 30))]
    assert taker.tombstones == []


def test_groups_topics_and_partitions_come_and_go(zookeeper: ZooKeeperServer, znodes: OldConsumers) -> None:
    with reading(target_of(zookeeper, znodes)) as taker:
        taker.until(lambda: taker.sample.is_listed, "there is nothing, and that is known")
        znodes.commit("billing", "orders", 0, 1)
        taker.until(lambda: ("billing", "orders", 0, 1) in taker.changes, "a first group")
        znodes.commit("billing", "invoices", 3, 7)
        znodes.commit("search", "orders", 1, 2)
        taker.until(lambda: len(taker.changes) == 3, "a topic and a group")
        znodes.delete("/consumers/billing/offsets/invoices/3")
        taker.until(lambda: taker.tombstones == [("billing", "invoices", 3)], "a partition that is gone")
        znodes.commit("billing", "invoices", 3, 8)
        taker.until(lambda: ("billing", "invoices", 3, 8) in taker.changes, "and back again")
        znodes.delete("/consumers/search")
        taker.until(lambda: ("search", "orders", 1) in taker.tombstones, "a group that is gone")
        # What is left is billing, its offsets, and two topics with a partition each.
        taker.until(lambda: taker.sample.znodes == 6, "nothing else is known any more")


def test_owners_are_those_of_now(zookeeper: ZooKeeperServer, znodes: OldConsumers) -> None:
    znodes.commit("billing", "orders", 0, 1)
    znodes.own("billing", "orders", 0, "billing_host-1-abc-0")
    with reading(target_of(zookeeper, znodes)) as taker:
        taker.until(lambda: taker.owners.get("billing") == {("orders", 0): "billing_host-1-abc-0"}, "an owner")
        znodes.own("billing", "orders", 0, None)
        znodes.own("billing", "orders", 0, "billing_host-2-def-0")
        znodes.own("billing", "orders", 1, "billing_host-2-def-0")
        both = {("orders", 0): "billing_host-2-def-0", ("orders", 1): "billing_host-2-def-0"}
        taker.until(lambda: taker.owners["billing"] == both, "other owners")
        znodes.own("billing", "orders", 0, None)
        znodes.own("billing", "orders", 1, None)
        taker.until(lambda: taker.owners["billing"] == {}, "no owners")


def test_groups_that_the_section_does_not_want_are_not_asked_for(
    zookeeper: ZooKeeperServer, znodes: OldConsumers
) -> None:
    for group in ("console-consumer-1", "billing", "billing-test"):
        znodes.commit(group, "orders", 0, 1)
    wanted = replace(
        target_of(zookeeper, znodes),
        filter=GroupFilter(None, "^console-consumer-"),
        storage_filter=GroupFilter(None, "test$"),
    )
    with reading(wanted) as taker:
        taker.until(lambda: taker.sample.is_listed, "the wanted group is listed")
        assert taker.changes == [("billing", "orders", 0, 1)]
        assert taker.sample.znodes == 4


def test_znodes_that_make_no_sense_are_rejects(zookeeper: ZooKeeperServer, znodes: OldConsumers) -> None:
    znodes.commit("billing", "orders", 0, 1)
    base = "/consumers/billing/offsets"
    bad_values = [b"", b"-1", b"x", b"1" * 20, b"9223372036854775808", b"\xff\xfe", b"1" * 1_000_000, b" 1", b"1_0"]
    for partition, value in enumerate(bad_values, 1):
        znodes.write(f"{base}/orders/{partition}", value)
    bad_names = ["orders/01", "orders/-1", "orders/2147483648", "orders/x", "orders/\u0661", "or ders/0"]
    for path in bad_names:
        znodes.write(f"{base}/{path}", b"1")
    with reading(target_of(zookeeper, znodes)) as taker:
        taker.until(lambda: taker.sample.is_listed, "all are listed")
        assert taker.changes == [("billing", "orders", 0, 1)]
        reasons = {reason: taker.reasons.count(reason) for reason in taker.reasons}
        assert reasons == {
            ZnodeReject.BAD_OFFSET.value: len(bad_values),
            ZnodeReject.BAD_NAME.value: len(bad_names),
        }
        znodes.write(f"{base}/orders/1", b"5")
        taker.until(lambda: ("billing", "orders", 1, 5) in taker.changes, "one that makes sense now")


def test_a_session_that_expires_loses_nothing(zookeeper: ZooKeeperServer, znodes: OldConsumers) -> None:
    for partition in range(3):
        znodes.commit("billing", "orders", partition, 1)
    with reading(target_of(zookeeper, znodes)) as taker:
        taker.until(lambda: len(taker.changes) == 3, "all are listed")
        znodes.delete("/consumers/billing/offsets/orders/2")
        zookeeper.kill()
        taker.until(lambda: taker.sample.error, "the ensemble is away")
        assert "cannot be reached" in (taker.sample.error or "")
        time.sleep(5.0)  # longer than the session
        zookeeper.start()
        wait_for(lambda: znodes.client.connected, "the consumer is connected again")
        znodes.commit("billing", "orders", 0, 2)
        taker.until(lambda: ("billing", "orders", 0, 2) in taker.changes, "a change after the session was lost")
        taker.until(lambda: ("billing", "orders", 2) in taker.tombstones, "and one from before")
        assert taker.sample.error is None
        znodes.commit("billing", "orders", 1, 2)
        taker.until(lambda: ("billing", "orders", 1, 2) in taker.changes, "it is watched again")
    assert sorted(taker.changes) == sorted(
        [*(("billing", "orders", p, 1) for p in range(3)), ("billing", "orders", 0, 2), ("billing", "orders", 1, 2)]
    )


def test_a_root_that_is_created_again_starts_over(zookeeper: ZooKeeperServer, znodes: OldConsumers) -> None:
    znodes.commit("billing", "orders", 0, 5)
    with reading(target_of(zookeeper, znodes)) as taker:
        taker.until(lambda: len(taker.changes) == 1, "it is listed")
        before = taker.sample
        znodes.delete("/consumers")
        znodes.commit("billing", "orders", 0, 3)
        taker.until(lambda: ("billing", "orders", 0, 3) in taker.changes, "the new one is listed")
        assert taker.sample.tree_id != before.tree_id


def test_what_was_not_published_is_given_again(zookeeper: ZooKeeperServer, znodes: OldConsumers) -> None:
    znodes.commit("billing", "orders", 0, 1)
    with ZooKeeperReaders([target_of(zookeeper, znodes)]) as readers:
        first = wait_for(lambda: sample if (sample := readers.take()["zk"]).is_listed else None, "it is listed")
        again = readers.take()["zk"]
        assert again.changes.equals(first.changes)
        assert again.listing is not None
        readers.published({"zk": Ack(again.instance, again.version)})
        assert readers.take()["zk"].changes.num_rows == 0
        assert readers.take()["zk"].listing is None
        readers.forget()
        listing = readers.take()["zk"].listing
        assert listing is not None
        assert listing["offset"].to_pylist() == [1]


def test_a_section_that_has_changed_and_a_reader_that_died_start_over(
    zookeeper: ZooKeeperServer, znodes: OldConsumers
) -> None:
    znodes.commit("billing", "orders", 0, 1)
    znodes.commit("search", "orders", 0, 2)
    target = target_of(zookeeper, znodes)

    def listing(readers: ZooKeeperReaders) -> list[str]:
        sample = wait_for(
            lambda: given if (given := readers.take()["zk"]).listing is not None else None, "a list", 60.0
        )
        readers.published({"zk": Ack(sample.instance, sample.version)})
        assert sample.listing is not None
        return sorted(sample.listing["group"].to_pylist())

    with ZooKeeperReaders([target]) as readers:
        assert listing(readers) == ["billing", "search"]
        readers.change([replace(target, filter=GroupFilter("^b", None))])
        assert listing(readers) == ["billing"]
        assert readers._process is not None
        readers._process.kill()
        assert listing(readers) == ["billing"]
        readers.change([])
        assert readers.take() == {}


def test_the_ensemble_is_never_asked_for_more_than_the_rate(zookeeper: ZooKeeperServer, znodes: OldConsumers) -> None:
    for partition in range(150):
        znodes.commit("billing", "orders", partition, 0)
    with reading(replace(target_of(zookeeper, znodes), max_rate=100.0)) as taker:
        taker.until(lambda: taker.sample.is_listed, "all are listed")
        began, asked = time.monotonic(), taker.sample.requests
        offset = 0
        while time.monotonic() - began < 5.0:
            offset += 1
            for partition in range(150):
                znodes.client.set_async(f"{znodes.chroot}/consumers/billing/offsets/orders/{partition}", b"%d" % offset)
            znodes.client.sync(znodes.chroot)
        asked = taker.take().requests - asked
        assert 300 <= asked <= 100 * (time.monotonic() - began) + 20
        last = {("billing", "orders", partition, offset) for partition in range(150)}
        taker.until(lambda: last <= set(taker.changes), "the last value of each arrives")


def test_znodes_of_others_are_read_with_digest_credentials(zookeeper: ZooKeeperServer, znodes: OldConsumers) -> None:
    znodes.commit("billing", "orders", 0, 1)
    znodes.client.set_acls(f"{znodes.chroot}/consumers", [make_digest_acl("warren", "hush", all=True)])
    with reading(target_of(zookeeper, znodes)) as taker:
        taker.until(lambda: "does not allow" in (taker.sample.error or ""), "it may not be read")
    with reading(replace(target_of(zookeeper, znodes), username="warren", password=Secret("hush"))) as taker:
        taker.until(lambda: taker.changes == [("billing", "orders", 0, 1)], "it may be read")
        assert taker.sample.error is None
    admin = KazooClient(zookeeper.address, auth_data=[("digest", "warren:hush")])
    admin.start()
    admin.delete(znodes.chroot, recursive=True)
    admin.stop()


def test_spouts_of_storm_are_groups(zookeeper: ZooKeeperServer, znodes: OldConsumers) -> None:
    znodes.spout("orders-spout", "orders", 0, 100)
    znodes.spout("orders-spout", "orders", 1, 200)
    znodes.spout("wide-spout", "clicks", 2, 300, has_topic_level=True)
    storm = replace(target_of(zookeeper, znodes), layout=StormLayout(znodes.chroot))
    with reading(storm) as taker:
        taker.until(lambda: len(taker.changes) == 3, "all spouts are listed")
        znodes.spout("orders-spout", "orders", 1, 250)
        taker.until(lambda: ("orders-spout", "orders", 1, 250) in taker.changes, "a change")
        values = [
            b"", b"[]", b'{"topic":"orders","partition":3}', b'{"topic":7,"partition":3,"offset":1}', b"\xff{}",
            b'{"topic":"orders","partition":3,"offset":"1"}', b'{"topic":"orders","partition":3,"offset":1e400}',
        ]  # fmt: skip
        for number, value in enumerate(values):
            znodes.write(f"/bad-spout-{number}/partition_3", value)
        znodes.write("/bad-offset/partition_0", b'{"topic":"orders","partition":0,"offset":-1}')
        znodes.write("/bad-topic/partition_0", b'{"topic":"or/ders","partition":0,"offset":1}')
        znodes.write("/other-partition/partition_0", b'{"topic":"orders","partition":1,"offset":1}')
        znodes.write("/other-topic/orders/partition_0", b'{"topic":"clicks","partition":0,"offset":1}')
        znodes.write("/long/partition_0", b'{"topic":"orders","partition":0,"offset":1}'.ljust(5000))
        taker.until(lambda: len(taker.reasons) == len(values) + 5, "all malformed ones are rejects")
        assert {reason: taker.reasons.count(reason) for reason in taker.reasons} == {
            ZnodeReject.BAD_JSON.value: len(values),
            ZnodeReject.BAD_OFFSET.value: 1,
            ZnodeReject.BAD_NAME.value: 1,
            ZnodeReject.OTHER_NAME.value: 2,
            ZnodeReject.TOO_LONG.value: 1,
        }
    assert sorted(taker.changes) == [
        ("orders-spout", "orders", 0, 100),
        ("orders-spout", "orders", 1, 200),
        ("orders-spout", "orders", 1, 250),
        ("wide-spout", "clicks", 2, 300),
    ]

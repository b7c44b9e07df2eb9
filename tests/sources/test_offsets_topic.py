from warren.sources.offsets_topic import ReaderGroups


def test_changed_options_get_another_group_that_tells_nothing_of_them() -> None:
    groups = ReaderGroups()
    first, second = {"kafka.sasl.jaas.config": "hush"}, {"kafka.sasl.jaas.config": "shh"}
    assert groups.group_of("a", "t", first) == "warren-reader-a"
    assert groups.group_of("a", "t", dict(first)) == "warren-reader-a"
    assert groups.group_of("a", "t", second) == "warren-reader-a-1"
    assert groups.group_of("a", "t", second) == "warren-reader-a-1"
    assert groups.group_of("a", "t", first) == "warren-reader-a-2", "the consumers of before may still be there"
    assert groups.group_of("b", "t", first) == "warren-reader-b"
    assert groups.group_of("a", "u", second) == "warren-reader-a", "consumers of another topic are others"

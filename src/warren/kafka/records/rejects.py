"""The reasons for which a record is rejected."""

from enum import IntEnum


class Reject(IntEnum):
    """Why a record could not be decoded."""

    NONE = 0
    NO_KEY = 1
    KEY_TRUNCATED = 2
    KEY_VERSION = 3
    VALUE_TRUNCATED = 4
    VALUE_VERSION = 5
    BAD_LENGTH = 6
    BAD_UTF8 = 7
    BAD_PARTITION = 8
    BAD_OFFSET = 9
    BAD_TIME = 10
    BAD_MEMBER = 11


REJECT_DESCRIPTIONS: dict[Reject, str] = {
    Reject.NONE: "not rejected",
    Reject.NO_KEY: "the record has no key",
    Reject.KEY_TRUNCATED: "the key ends before its last field, or a length in it is too large",
    Reject.KEY_VERSION: "the version of the key is not known",
    Reject.VALUE_TRUNCATED: "the value ends before its last field, or a length in it is too large",
    Reject.VALUE_VERSION: "the version of the value is not known",
    Reject.BAD_LENGTH: "a length is negative, malformed, or missing where it must be given",
    Reject.BAD_UTF8: "a name is not UTF-8",
    Reject.BAD_PARTITION: "the partition number is negative",
    Reject.BAD_OFFSET: "the committed offset is negative",
    Reject.BAD_TIME: "the commit time is not between the years 1970 and 9999",
    Reject.BAD_MEMBER: "a member of the group or its assignment does not parse; its partitions have no owner",
}

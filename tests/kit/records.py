"""Encodes records of the offsets topic, field by field, in every version."""

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

TaggedFields = Mapping[int, bytes]


@dataclass(frozen=True)
class Member:
    """A member of a classic group; `assignment` is its encoded assignment."""

    member_id: str = "member-1"
    client_id: str = "client-1"
    host: str = "/127.0.0.1"
    assignment: bytes = b""
    instance_id: str | None = None
    subscription: bytes = b""
    rebalance_timeout_ms: int = 300_000
    session_timeout_ms: int = 45_000
    tags: TaggedFields = field(default_factory=dict)


def string(text: str | bytes | None) -> bytes:
    """A string with an int16 length; None is null."""
    if text is None:
        return struct.pack(">h", -1)
    raw = text.encode() if isinstance(text, str) else text
    return struct.pack(">h", len(raw)) + raw


def binary(raw: bytes | None) -> bytes:
    """Bytes with an int32 length; None is null."""
    return struct.pack(">i", -1) if raw is None else struct.pack(">i", len(raw)) + raw


def unsigned_varint(value: int) -> bytes:
    """Seven bits per byte, lowest first."""
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def compact(text: str | bytes | None) -> bytes:
    """A string or bytes of a flexible version; None is null."""
    if text is None:
        return unsigned_varint(0)
    raw = text.encode() if isinstance(text, str) else text
    return unsigned_varint(len(raw) + 1) + raw


def tagged_fields(fields: TaggedFields) -> bytes:
    """The optional fields that end each structure of a flexible version."""
    parts = [unsigned_varint(tag) + unsigned_varint(len(raw)) + raw for tag, raw in sorted(fields.items())]
    return unsigned_varint(len(fields)) + b"".join(parts)


def commit_key(group: str | bytes, topic: str | bytes, partition: int, version: int = 1) -> bytes:
    """The key of an offset commit, versions 0 and 1."""
    return struct.pack(">h", version) + string(group) + string(topic) + struct.pack(">i", partition)


def group_key(group: str | bytes, version: int = 2) -> bytes:
    """The key of a classic group (2), or of a per-group record of newer groups (3, 4, 6, 11, 17, ...)."""
    return struct.pack(">h", version) + string(group)


def member_key(group: str | bytes, member_id: str, version: int = 5) -> bytes:
    """The key of a per-member record of newer groups (5, 7, 8, 10, 19, ...)."""
    return struct.pack(">h", version) + string(group) + string(member_id)


def commit_value(
    offset: int,
    time_ms: int,
    version: int = 4,
    *,
    metadata: str | bytes = "",
    leader_epoch: int = -1,
    expire_ms: int = -1,
    tags: TaggedFields | None = None,
) -> bytes:
    """The value of an offset commit, versions 0 to 4; tags are written from version 4 on."""
    is_flexible = version >= 4
    out = struct.pack(">hq", version, offset)
    if version >= 3:
        out += struct.pack(">i", leader_epoch)
    out += compact(metadata) if is_flexible else string(metadata)
    out += struct.pack(">q", time_ms)
    if version == 1:
        out += struct.pack(">q", expire_ms)
    return out + tagged_fields(tags or {}) if is_flexible else out


def assignment(
    partitions: Mapping[str | bytes, Sequence[int]], version: int = 3, user_data: bytes | None = None
) -> bytes:
    """The assignment of a member in the consumer protocol: the partitions of each topic."""
    out = struct.pack(">hi", version, len(partitions))
    for topic, ids in partitions.items():
        out += string(topic) + struct.pack(f">i{len(ids)}i", len(ids), *ids)
    return out + binary(user_data)


def group_value(
    members: Sequence[Member] = (),
    version: int = 3,
    *,
    protocol_type: str = "consumer",
    generation: int = 1,
    protocol: str | None = "range",
    leader: str | None = "member-1",
    state_time_ms: int = 1_700_000_000_000,
    tags: TaggedFields | None = None,
) -> bytes:
    """The value of a classic group, versions 0 to 4; tags are written from version 4 on."""
    is_flexible = version >= 4
    text = compact if is_flexible else string
    out = struct.pack(">h", version) + text(protocol_type) + struct.pack(">i", generation)
    out += text(protocol) + text(leader)
    if version >= 2:
        out += struct.pack(">q", state_time_ms)
    out += unsigned_varint(len(members) + 1) if is_flexible else struct.pack(">i", len(members))
    out += b"".join(_member(member, version) for member in members)
    return out + tagged_fields(tags or {}) if is_flexible else out


def _member(member: Member, version: int) -> bytes:
    is_flexible = version >= 4
    text, raw = (compact, compact) if is_flexible else (string, binary)
    out = text(member.member_id)
    if version >= 3:
        out += text(member.instance_id)
    out += text(member.client_id) + text(member.host)
    if version >= 1:
        out += struct.pack(">i", member.rebalance_timeout_ms)
    out += struct.pack(">i", member.session_timeout_ms)
    out += raw(member.subscription) + raw(member.assignment)
    return out + tagged_fields(member.tags) if is_flexible else out

"""What a principal may do on a Kafka cluster: ACLs given and taken."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._acl import AclBinding, AclBindingFilter, AclOperation, AclPermissionType
from confluent_kafka.admin._resource import ResourcePatternType, ResourceType

DOCS = Path(__file__).parents[2] / "docs" / "rights.md"
_CLUSTER_NAME = "kafka-cluster"
_RESOURCES = {
    "cluster": ResourceType.BROKER,  # confluent-kafka's name for it
    "topic": ResourceType.TOPIC,
    "group": ResourceType.GROUP,
    "transactional-id": ResourceType.TRANSACTIONAL_ID,
}


@dataclass(frozen=True, order=True)
class Right:
    """One operation on one resource, in the words of `kafka-acls.sh`: `Describe`, `topic`, `*`.

    One that `is_denied` is an ACL as well, which outweighs all that allow it.
    """

    operation: str
    resource: str
    name: str = "*"
    is_denied: bool = False

    def __str__(self) -> str:
        return f"{self.operation} {self.resource} {self.name}"

    def to_acl(self, user: str) -> AclBinding:
        """The ACL that gives it to a user, whose name is literal, `*` for any."""
        return AclBinding(*self._pattern(), f"User:{user}", "*", self._operation(), self._permission())

    def to_filter(self, user: str) -> AclBindingFilter:
        """What finds that ACL."""
        return AclBindingFilter(*self._pattern(), f"User:{user}", "*", self._operation(), self._permission())

    def _permission(self) -> AclPermissionType:
        return AclPermissionType.DENY if self.is_denied else AclPermissionType.ALLOW

    def _pattern(self) -> tuple[ResourceType, str, ResourcePatternType]:
        name = _CLUSTER_NAME if self.resource == "cluster" else self.name
        return _RESOURCES[self.resource], name, ResourcePatternType.LITERAL

    def _operation(self) -> AclOperation:
        # DescribeConfigs and IdempotentWrite are DESCRIBE_CONFIGS and IDEMPOTENT_WRITE there.
        return AclOperation["".join(f"_{c}" if c.isupper() else c for c in self.operation).lstrip("_").upper()]


def documented_rights(heading: str, **names: str) -> list[Right]:
    """The rights that a section of the docs lists, with names in place of its placeholders: `NAME`, `TOPIC`."""
    section = DOCS.read_text(encoding="utf-8").partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \| `([\w-]+)` \| `(\S+)` \|", section, re.MULTILINE)
    assert rows, f"docs/rights.md has no rights for: {heading}"
    placeholders = re.compile("|".join(names) or "$.")
    return [Right(operation, kind, placeholders.sub(lambda m: names[m[0]], name)) for operation, kind, name in rows]


def grant(admin: AdminClient, user: str, rights: Iterable[Right]) -> None:
    """Give rights to a user."""
    for future in admin.create_acls([right.to_acl(user) for right in rights]).values():
        future.result(30)


def revoke(admin: AdminClient, user: str, rights: Iterable[Right]) -> None:
    """Take rights from a user, who must have them."""
    for future in admin.delete_acls([right.to_filter(user) for right in rights]).values():
        assert len(future.result(30)) == 1

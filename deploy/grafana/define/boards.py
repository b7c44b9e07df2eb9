"""The five dashboards: what each panel shows, whatever store answers."""

from deploy.grafana.define.asks import STATUS, Ask, How, Level, Rows
from deploy.grafana.define.panels import (
    CLUSTERS,
    COUNT,
    GREEN,
    GREY,
    MESSAGES,
    ORANGE,
    PER_SECOND,
    RED,
    SECONDS,
    Board,
    Kind,
    Panel,
    Row,
    Variable,
)
from deploy.grafana.define.pipeline import PIPELINE

CLUSTER, GROUP, PARTITION, HEAD = Level.CLUSTER, Level.GROUP, Level.PARTITION, Level.HEAD

BEHIND = "How many messages are between the head of the log and what the group has committed."
EXACT = (
    "The partitions of a moment are all of one snapshot, so their sum is exact: a jump of the line is one of the lag."
)
GROWS = "Above zero it falls behind, below zero it catches up."
GOES_BACK = "A consumer that goes back shows as none, not as a huge rate."
WORST_FIRST = "The partitions that lag most come first."

WAITING = "How long the first unread message has been waiting."
CAUGHT_UP = "How long it takes at least until nothing is unread, at present rates; nothing if the group falls behind."
RETENTION = "How long until unread messages are deleted, at present rates; nothing if that does not happen."

GROUPS = Variable("group", GROUP)

NO_TROUBLE = "Nothing in trouble"


def _count(title: str, status: str, color: str) -> Panel:
    what = Ask(CLUSTER, f"groups_{status}", legend="{cluster}")
    description = f"How many groups of each cluster have the verdict {status.upper()} now."
    colors = [(0, GREY), (1, color)]
    return Panel(title, Kind.STAT, [what], COUNT, description, 5, 4, "unknown", colors)


FURTHEST_BEHIND = Rows(
    GROUP,
    {"behind": "seconds_behind", "caught up in": "catch_up_seconds", "retention left": "retention_left_seconds"},
    "behind",
    limit=25,
)

OVERVIEW = Board(
    "overview",
    "Warren: overview",
    "Which consumer groups are in trouble, since when, and how bad it is.",
    [CLUSTERS],
    [
        _count("Groups in error", "err", RED),
        _count("Groups in warning", "warn", ORANGE),
        _count("Groups that are well", "ok", GREEN),
        Panel(
            "Messages behind", Kind.STAT, [Ask(CLUSTER, "total_lag", legend="{cluster}")], MESSAGES,
            "How far all groups of a cluster are behind together.", 5, 4, "unknown",
        ),
        Panel(
            "Clusters", Kind.STAT, [Ask(CLUSTER, "judged", legend="{cluster}")], COUNT,
            "A cluster that does not answer is not judged: its groups are neither well nor in trouble, but unknown.",
            4, 4, "unknown", words="judged", leads_to="pipeline",
        ),
        Panel(
            "Groups in trouble", Kind.TIMELINE, [Ask(GROUP, STATUS, above=1, legend="{cluster} {group}")], COUNT,
            "A bar begins when a group's verdict turned bad and ends when it was good again. Click one for the group.",
            24, 9, NO_TROUBLE, words="status", leads_to="group",
        ),
        Panel(
            "Worst groups", Kind.TABLE,
            Rows(GROUP, {"status": STATUS, "lag": "total_lag", "worst partition": "lag"}, "lag", limit=25),
            MESSAGES, f"{BEHIND} Click a group to see what it does.", 14, 10, NO_TROUBLE, leads_to="group",
        ),
        Panel(
            "Top groups by lag", Kind.BARS, Rows(GROUP, {"lag": "total_lag"}, "lag", limit=10), MESSAGES, BEHIND, 10,
            10, leads_to="group",
        ),
        Panel(
            "Furthest behind in time", Kind.TABLE,
            FURTHEST_BEHIND, SECONDS, f"{WAITING} {CAUGHT_UP} {RETENTION}", 14, 8, leads_to="group",
        ),
        Panel(
            "Top groups by time behind", Kind.BARS, Rows(GROUP, {"behind": "seconds_behind"}, "behind", limit=10),
            SECONDS, WAITING, 10, 8, leads_to="group",
        ),
        Row("Over time"),
        Panel(
            "Groups by status", Kind.STACK,
            [
                Ask(CLUSTER, "groups_err", legend="{cluster} ERR", color=RED),
                Ask(CLUSTER, "groups_warn", legend="{cluster} WARN", color=ORANGE),
                Ask(CLUSTER, "groups_ok", legend="{cluster} OK", color=GREEN),
            ],
            COUNT, "A gap means that the cluster could not be judged.", 8,
        ),
        Panel(
            "Lag by cluster", Kind.SERIES, [Ask(CLUSTER, "total_lag", legend="{cluster}")], MESSAGES,
            "How far all groups of a cluster are behind together.", 8,
        ),
        Panel(
            "Lag growth by cluster", Kind.SERIES, [Ask(CLUSTER, "total_lag", how=How.GROWTH, legend="{cluster}")],
            PER_SECOND, "Above zero the groups of the cluster fall behind, below zero they catch up.", 8,
        ),
    ],
)  # fmt: skip

WORST_PARTITIONS = Rows(
    PARTITION,
    {"status": STATUS, "lag": "lag"},
    "lag",
    {"owner": "owner", "client id": "client_id"},
    limit=50,
)

ONE_GROUP = Board(
    "group",
    "Warren: group",
    "What one consumer group does, or a few of them beside each other.",
    [CLUSTERS, GROUPS],
    [
        Panel(
            "Status", Kind.STAT, [Ask(GROUP, STATUS, legend="{group}")], COUNT,
            "The verdict on the group is that of its worst partition.", 6, 4, "unknown", words="status",
        ),
        Panel(
            "Total lag", Kind.STAT, [Ask(GROUP, "total_lag", legend="{group}")], MESSAGES, BEHIND, 6, 4, "unknown",
        ),
        Panel(
            "Worst partition", Kind.STAT, [Ask(GROUP, "lag", legend="{group}")], MESSAGES,
            "The lag of the partition that lags most. Near the total lag: one partition is stuck, not the group.", 6, 4,
            "unknown",
        ),
        Panel(
            "Lag growth", Kind.STAT, [Ask(GROUP, "total_lag", how=How.GROWTH, legend="{group}")], PER_SECOND,
            GROWS, 6, 4, "unknown", [(0, GREEN), (0.1, ORANGE)],
        ),
        Panel(
            "Time behind", Kind.STAT, [Ask(GROUP, "seconds_behind", legend="{group}")], SECONDS, WAITING, 6, 4,
            "unknown",
        ),
        Panel(
            "Caught up in", Kind.STAT, [Ask(GROUP, "catch_up_seconds", legend="{group}")], SECONDS, CAUGHT_UP, 6, 4,
            "never or unknown",
        ),
        Panel(
            "Retention left", Kind.STAT, [Ask(GROUP, "retention_left_seconds", legend="{group}")], SECONDS, RETENTION,
            6, 4, "enough or unknown", [(0, RED), (3600, ORANGE), (86_400, GREEN)],
        ),
        Panel(
            "Lost messages", Kind.STAT, [Ask(GROUP, "lost_messages", legend="{group}")], MESSAGES,
            "How many messages after what the group has committed were deleted before it read them.", 6, 4, "unknown",
            [(0, GREEN), (1, RED)],
        ),
        Panel(
            "Status over time", Kind.TIMELINE, [Ask(GROUP, STATUS, legend="{group}")], COUNT,
            "Since when it is as it is.", 24, 5, words="status",
        ),
        Panel(
            "Partitions in trouble", Kind.TIMELINE,
            [Ask(PARTITION, STATUS, above=1, legend="{group} {topic} {partition}")], COUNT,
            "STOP: it commits no more. STALL: it commits the same offset again and again. REWIND: it went back. "
            "WARN: it falls further behind.", 24, 8, NO_TROUBLE, words="status", leads_to="partitions",
        ),
        Panel(
            "Lag", Kind.SERIES,
            [
                Ask(GROUP, "total_lag", legend="{group} in all"),
                Ask(GROUP, "lag", legend="{group} worst partition"),
            ],
            MESSAGES, BEHIND, 12, 9,
        ),
        Panel(
            "Lag by topic", Kind.STACK,
            [Ask(PARTITION, "lag", ("cluster", "group", "topic"), How.SUM, legend="{group} {topic}")],
            MESSAGES, f"The sum over the partitions of each topic. {EXACT}", 12, 9, leads_to="topic",
        ),
        Panel(
            "Time behind over time", Kind.SERIES, [Ask(GROUP, "seconds_behind", legend="{group}")], SECONDS,
            f"{WAITING} It grows by a second each second while the group reads nothing.",
        ),
        Panel(
            "Forecast", Kind.SERIES,
            [
                Ask(GROUP, "catch_up_seconds", legend="{group} caught up in"),
                Ask(GROUP, "retention_left_seconds", legend="{group} retention left"),
            ],
            SECONDS,
            f"{CAUGHT_UP} {RETENTION} While less retention is left than that, messages are lost before.",
        ),
        Panel(
            "Produced and consumed", Kind.SERIES,
            [
                Ask(GROUP, "total_offset", how=How.RATE, plus="total_lag", legend="{group} produced"),
                Ask(GROUP, "total_offset", how=How.RATE, legend="{group} consumed"),
            ],
            PER_SECOND,
            "What comes into the partitions that the group reads, and what it commits. As long as more comes in than "
            f"is committed, the lag grows. {GOES_BACK}",
        ),
        Panel(
            "Lag growth over time", Kind.SERIES, [Ask(GROUP, "total_lag", how=How.GROWTH, legend="{group}")],
            PER_SECOND, GROWS,
        ),
        Panel(
            "Worst partitions", Kind.TABLE, WORST_PARTITIONS, MESSAGES,
            "Which partitions lag most, and whose they are: the owner is the host of the consumer that has it.", 24, 10,
            NO_TROUBLE, leads_to="partitions",
        ),
    ],
)  # fmt: skip

PARTITIONS = Board(
    "partitions",
    "Warren: partitions",
    "Every partition of a group.",
    [CLUSTERS, GROUPS, Variable("topic", PARTITION, has_all=True)],
    [
        Panel(
            "Status of partitions", Kind.TIMELINE, [Ask(PARTITION, STATUS, legend="{topic} {partition}")], COUNT,
            "Since when each partition is as it is.", 24, 12, words="status",
        ),
        Panel(
            "Lag by partition", Kind.SERIES, [Ask(PARTITION, "lag", legend="{topic} {partition}")], MESSAGES, BEHIND,
            8, 9, leads_to="topic",
        ),
        Panel(
            "Time behind by partition", Kind.SERIES, [Ask(PARTITION, "seconds_behind", legend="{topic} {partition}")],
            SECONDS, WAITING, 8, 9, leads_to="topic",
        ),
        Panel(
            "Lag growth by partition", Kind.SERIES,
            [Ask(PARTITION, "lag", how=How.GROWTH, legend="{topic} {partition}")], PER_SECOND,
            GROWS, 8, 9,
        ),
        Panel(
            "Consumed by partition", Kind.STACK,
            [Ask(PARTITION, "offset", how=How.RATE, legend="{topic} {partition}")], PER_SECOND,
            f"By what is committed. A partition that is missing here is not read. {GOES_BACK}", 24,
        ),
        Panel(
            "Partitions", Kind.TABLE,
            Rows(PARTITION, {**WORST_PARTITIONS.columns, "committed": "offset"}, "lag", WORST_PARTITIONS.words),
            MESSAGES, WORST_FIRST, 24, 12, leads_to="topic",
        ),
    ],
)  # fmt: skip

TOPIC = Board(
    "topic",
    "Warren: topic",
    "What comes into a topic, and who is behind on it.",
    [CLUSTERS, Variable("topic", HEAD)],
    [
        Panel(
            "Produced by partition", Kind.STACK, [Ask(HEAD, "offset", how=How.RATE, legend="{topic} {partition}")],
            PER_SECOND,
            "By the heads of the log. The height is what comes into the topic; a thick band is a hot partition.", 12, 9,
        ),
        Panel(
            "Lag by group", Kind.SERIES,
            [Ask(PARTITION, "lag", ("cluster", "group", "topic"), How.SUM, legend="{group} {topic}")], MESSAGES,
            f"How far each group is behind on this topic alone. {EXACT}", 12, 9, leads_to="group",
        ),
        Panel(
            "Head", Kind.SERIES,
            [Ask(HEAD, "offset", ("cluster", "topic"), How.SUM, legend="{topic}")], MESSAGES,
            "The sum of the ends of its partitions' logs. A fall means that the topic was made anew.", 12, 9,
        ),
        Panel(
            "Heads", Kind.TABLE, Rows(HEAD, {"head": "offset"}, "head"), COUNT, "The end of the log of each partition.",
            12, 9,
        ),
        Panel(
            "Who is behind on it", Kind.TABLE, WORST_PARTITIONS, MESSAGES, WORST_FIRST, 24, 10,
            leads_to="group",
        ),
    ],
)  # fmt: skip

BOARDS = (OVERVIEW, ONE_GROUP, PARTITIONS, TOPIC, PIPELINE)

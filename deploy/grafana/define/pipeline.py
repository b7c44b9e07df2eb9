"""The dashboard of Warren itself."""

from deploy.grafana.define.asks import Ask, Level
from deploy.grafana.define.panels import CLUSTERS, COUNT, GREEN, MILLISECONDS, ORANGE, PURPLE, RED, Board, Kind, Panel

CLUSTER = Level.CLUSTER

PIPELINE = Board(
    "pipeline",
    "Warren: pipeline",
    "Whether Warren itself is well: does it see every cluster, and are its verdicts fresh.",
    [CLUSTERS],
    [
        Panel(
            "Clusters that are judged", Kind.TIMELINE, [Ask(CLUSTER, "judged", legend="{cluster}")], COUNT,
            "While a cluster does not answer nothing is said about its groups. A gap: Warren itself was not heard of.",
            24, 6, words="judged",
        ),
        Panel(
            "Age of the verdicts", Kind.SERIES, [Ask(CLUSTER, "age_ms", legend="{cluster}")], MILLISECONDS,
            "How old they were when they were written or scraped. More than a few triggers: it does not keep up.",
        ),
        Panel(
            "Time of a cycle", Kind.SERIES, [Ask(CLUSTER, "cycle_ms", legend="{cluster}")], MILLISECONDS,
            "One cycle judges all clusters. Should it get near the trigger, give Spark more room.",
        ),
        Panel(
            "Commits not read yet", Kind.SERIES, [Ask(CLUSTER, "backlog", legend="{cluster}")], COUNT,
            "Records of the offsets topic between what is read and its end.", 8,
        ),
        Panel(
            "Commits held by open transactions", Kind.SERIES, [Ask(CLUSTER, "held_by_transaction", legend="{cluster}")],
            COUNT, "If it stays, a transaction hangs, and the commits behind it cannot be seen.", 8,
        ),
        Panel(
            "Records that could not be read", Kind.SERIES, [Ask(CLUSTER, "rejected", legend="{cluster}")], COUNT,
            "Since the data directory was made.", 8,
        ),
        Panel(
            "Partitions by status", Kind.STACK,
            [
                Ask(CLUSTER, f"partitions_{status}", legend=f"{{cluster}} {status.upper()}", color=color)
                for status, color in (
                    ("stop", RED), ("stall", RED), ("rewind", PURPLE), ("warn", ORANGE), ("ok", GREEN),
                )
            ],
            COUNT, "How much is judged at all.",
        ),
        Panel(
            "Incidents that are open", Kind.SERIES, [Ask(CLUSTER, "incidents", legend="{cluster}")], COUNT,
            "How many groups are in trouble and known to be.",
        ),
        Panel(
            "Sinks", Kind.TIMELINE, [Ask(Level.SINK, "up", legend="{sink}")], COUNT,
            "Whether each sink delivers what it should.", 12, 6, words="well",
        ),
        Panel(
            "Intervals that wait for a sink", Kind.SERIES, [Ask(Level.SINK, "waiting", legend="{sink}")], COUNT,
            "One is always under way. What waits is delivered later, nothing is lost.", 12, 6,
        ),
        Panel(
            "Messages of notifiers", Kind.SERIES, [Ask(Level.NOTIFIER, "messages", legend="{notifier} {state}")], COUNT,
            "Sent, waiting to be taken, or given up.",
        ),
    ],
)  # fmt: skip

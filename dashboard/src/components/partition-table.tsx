// The partitions of a group as a table.
import { useMemo } from "preact/hooks"
import { exact, severity, short } from "../format"
import { route, setParams, topicLink } from "../route"
import type { PartitionExplanation } from "../schema"
import { Badge, Card, Since } from "./common"
import { partitionKey } from "./partition-map"
import { Behind } from "./time-lag"
import { type Column, type Order, orderText, parseOrder, Table } from "./table"

/** What hurts most comes first: a long wait, not many messages. */
const DEFAULT_ORDER: Order = { by: "seconds", isDescending: true }
const COLUMNS: Column[] = [
  { id: "status", title: "Status", width: "0 0 7rem" },
  { id: "topic", title: "Topic", width: "1 1 9rem" },
  { id: "partition", title: "Partition", width: "0 0 5.5rem", isNumber: true },
  { id: "seconds", title: "Time lag", width: "0 0 6.5rem", isNumber: true },
  { id: "lag", title: "Lag", width: "0 0 5.5rem", isNumber: true },
  { id: "committed", title: "Committed", width: "0 0 7.5rem", isNumber: true, isMinor: true },
  { id: "head", title: "Head", width: "0 0 7.5rem", isNumber: true, isMinor: true },
  { id: "since", title: "Since", width: "0 0 6.5rem", isNumber: true, isMinor: true },
  { id: "client", title: "Client", width: "1 1 8rem", isMinor: true },
  { id: "owner", title: "Owner", width: "1 1 7rem", isMinor: true },
]

export function PartitionTable({
  cluster,
  partitions,
  selected,
  select,
}: {
  cluster: string
  partitions: PartitionExplanation[]
  selected: string | null
  select: (key: string) => void
}) {
  const sort = route.value.params.get("sort")
  const order = useMemo(() => parseOrder(sort, DEFAULT_ORDER), [sort])
  const rows = useMemo(() => [...partitions].sort(comparator(order)), [partitions, order])
  return (
    <Card title="Partitions">
      <Table
        label="Partitions of this group"
        columns={COLUMNS}
        count={rows.length}
        keyAt={(row) => partitionKey(rows[row]!)}
        cells={(row) => rowCells(cluster, rows[row]!, select, selected)}
        order={order}
        sort={(next) => setParams({ sort: orderText(next) })}
        selected={selected}
        empty="This group has no partitions."
      />
    </Card>
  )
}

function comparator(order: Order): (a: PartitionExplanation, b: PartitionExplanation) => number {
  const sign = order.isDescending ? -1 : 1
  const numbers: Record<string, (partition: PartitionExplanation) => number> = {
    status: (partition) => severity(partition.status),
    partition: (partition) => partition.partition,
    seconds: (partition) => partition.time_lag.seconds_behind ?? -1,
    lag: (partition) => partition.current_lag ?? -1,
    committed: (partition) => partition.committed ?? -1,
    head: (partition) => partition.head ?? -1,
    since: (partition) => -partition.since,
  }
  const texts: Record<string, (partition: PartitionExplanation) => string> = {
    topic: (partition) => partition.topic,
    client: (partition) => partition.client_id,
    owner: (partition) => partition.owner,
  }
  const text = texts[order.by]
  if (text) return (a, b) => sign * text(a).localeCompare(text(b)) || a.partition - b.partition
  const value = numbers[order.by] ?? numbers.status!
  return (a, b) => sign * (value(a) - value(b)) || worstFirst(a, b)
}

/** The most severe partitions first, then those furthest behind in time. */
export const worstFirst = (a: PartitionExplanation, b: PartitionExplanation): number =>
  severity(b.status) - severity(a.status) ||
  (b.time_lag.seconds_behind ?? -1) - (a.time_lag.seconds_behind ?? -1) ||
  (b.current_lag ?? -1) - (a.current_lag ?? -1) ||
  a.partition - b.partition

function rowCells(
  cluster: string,
  partition: PartitionExplanation,
  select: (key: string) => void,
  selected: string | null,
) {
  const key = partitionKey(partition)
  return [
    <Badge status={partition.status} />,
    <a href={topicLink(cluster, partition.topic)} class="name" title={partition.topic}>
      <bdi>{partition.topic}</bdi>
    </a>,
    <button
      type="button"
      data-row={key}
      class="pick"
      aria-expanded={key === selected}
      title={partition.reason}
      onClick={() => select(key)}
    >
      {partition.partition}
    </button>,
    <Behind lag={partition.time_lag} />,
    partition.current_lag === null ? (
      "–"
    ) : (
      <span title={exact(partition.current_lag)}>{short(partition.current_lag)}</span>
    ),
    partition.committed === null ? "–" : exact(partition.committed),
    partition.head === null ? "–" : exact(partition.head),
    <Since at={partition.since} />,
    <bdi title={partition.client_id}>{partition.client_id || "–"}</bdi>,
    <bdi title={partition.owner}>{partition.owner || "–"}</bdi>,
  ]
}

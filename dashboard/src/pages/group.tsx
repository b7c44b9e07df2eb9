// One group: its status and the reason, its partitions, history and incidents.
import { useMemo, useState } from "preact/hooks"
import { pathTo } from "../api"
import { Chart } from "../components/chart"
import { Badge, Card, Fact, Optional, parseRange, RANGES, RangePicker, Since } from "../components/common"
import { IncidentState } from "../components/incident"
import { PartitionMap, partitionKey } from "../components/partition-map"
import { type Column, type Order, orderText, parseOrder, Table } from "../components/table"
import { Timeline } from "../components/timeline"
import { dateTime, exact, STATUS_TEXT, severity, short, duration } from "../format"
import { now, useAnswer } from "../polling"
import { route, silenceLink, topicLink, setParams } from "../route"
import type { GroupExplanation, PartitionExplanation } from "../schema"
import { GroupIncidents } from "./incidents"

const EXPLAIN = "/v3/kafka/{cluster}/consumer/{consumer}/explain"
const DEFAULT_ORDER: Order = { by: "status", isDescending: true }
const COLUMNS: Column[] = [
  { id: "status", title: "Status", width: "0 0 7rem" },
  { id: "topic", title: "Topic", width: "1 1 9rem" },
  { id: "partition", title: "Partition", width: "0 0 5.5rem", isNumber: true },
  { id: "lag", title: "Lag", width: "0 0 5.5rem", isNumber: true },
  { id: "committed", title: "Committed", width: "0 0 7.5rem", isNumber: true, isMinor: true },
  { id: "head", title: "Head", width: "0 0 7.5rem", isNumber: true, isMinor: true },
  { id: "since", title: "Since", width: "0 0 6.5rem", isNumber: true, isMinor: true },
  { id: "client", title: "Client", width: "1 1 8rem", isMinor: true },
  { id: "owner", title: "Owner", width: "1 1 7rem", isMinor: true },
]
const COMMITS_TO: Record<string, string> = { kafka: "Kafka", kafka_zk: "ZooKeeper", storm_zk: "ZooKeeper, by Storm" }

export function GroupPage() {
  const [cluster, group] = route.value.names as [string, string]
  const { data, error } = useAnswer(pathTo(EXPLAIN, { cluster, consumer: group }))
  if (error)
    return (
      <div class="empty">
        <h1>
          <bdi>{group}</bdi>
        </h1>
        <p>
          {error.status === 404
            ? `Group not found in ${cluster}: it may have been deleted, or has not committed for a long time.`
            : error.message}
        </p>
        <p>
          <a href="#/groups">All groups</a>
        </p>
      </div>
    )
  if (!data) return <p class="empty">Loading the group…</p>
  return <Group explanation={data.explanation} />
}

function Group({ explanation }: { explanation: GroupExplanation }) {
  const { cluster, group, partitions } = explanation
  const { params } = route.value
  const incidents = useAnswer(pathTo("/v3/incidents", {}, { cluster, group, limit: 10 })).data?.incidents ?? []
  const current = incidents.find((incident) => !incident.closed)
  const worst = useMemo(() => [...partitions].sort(bySeverity)[0], [partitions])
  const selectedKey = params.get("partition")
  const selected = partitions.find((partition) => partitionKey(partition) === selectedKey) ?? null
  const select = (key: string) => setParams({ partition: key === selectedKey ? "" : key })
  const bad = partitions.filter((partition) => partition.status !== "OK")
  return (
    <div class="group">
      <header class="title">
        <div>
          <p class="mild">
            <a href="#/groups">Groups</a> /{" "}
            <a href={`#/groups?cluster=${encodeURIComponent(cluster)}`}>
              <bdi>{cluster}</bdi>
            </a>
          </p>
          <h1>
            <bdi>{group}</bdi> <Badge status={explanation.status} unknownSince={explanation.unknown_since} />
          </h1>
          <p class="verdict">
            {capitalize(STATUS_TEXT[explanation.status])}, since <b>{dateTime(explanation.since)}</b>, for{" "}
            <Since at={explanation.since} />.{" "}
            {worst && worst.status !== "OK" && (
              <>
                Most severe partition: <bdi>{worst.topic}</bdi> {worst.partition}: {worst.reason}.
              </>
            )}
          </p>
          {explanation.unknown_since && (
            <p class="trouble">
              The group could not be judged for <Since at={explanation.unknown_since} />: this is its last known state.
            </p>
          )}
          {current && <IncidentState incident={current} />}
        </div>
        <div class="share">
          <CopyLink />
          <a href={silenceLink(cluster, group)}>Silence…</a>
        </div>
      </header>
      <dl class="facts">
        <Fact label="Lag">
          <b title={exact(explanation.totallag)}>{short(explanation.totallag)}</b>
        </Fact>
        <Fact label="Partitions">
          {exact(partitions.length)}
          {bad.length ? `, ${exact(bad.length)} not OK` : ""}
        </Fact>
        <Fact label="Time lag">
          <Optional value={null} show={(s) => duration(s)} />
        </Fact>
        <Fact label="Catches up">
          <Optional value={null} show={(s) => duration(s)} />
        </Fact>
        <Fact label="Members">
          {exact(new Set(partitions.map((partition) => partition.client_id + partition.owner).filter(Boolean)).size)}
        </Fact>
        <Fact label="Commits to">{explanation.commits_to.map((to) => COMMITS_TO[to] ?? to).join(", ") || "–"}</Fact>
      </dl>
      <Card title="Partitions at a glance">
        <PartitionMap partitions={partitions} selected={selectedKey} select={select} />
        <p class="legend mild">
          One cell per partition, filled by its lag. <Badge status="WARN" /> <Badge status="STOP" />{" "}
          <Badge status="STALL" /> <Badge status="REWIND" />
        </p>
      </Card>
      {selected && (
        <Window cluster={cluster} group={group} partition={selected} close={() => setParams({ partition: "" })} />
      )}
      <History cluster={cluster} group={group} />
      <GroupIncidents cluster={cluster} group={group} incidents={incidents} />
      <Partitions cluster={cluster} partitions={partitions} selected={selectedKey} select={select} />
    </div>
  )
}

const capitalize = (text: string) => text[0]!.toUpperCase() + text.slice(1)
const bySeverity = (a: PartitionExplanation, b: PartitionExplanation) =>
  severity(b.status) - severity(a.status) || (b.current_lag ?? -1) - (a.current_lag ?? -1)

function CopyLink() {
  const [message, setMessage] = useState("")
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(location.href)
      setMessage("Copied")
    } catch {
      setMessage("Copy the address of this page")
    }
    setTimeout(() => setMessage(""), 3000)
  }
  return (
    <>
      <button type="button" onClick={copy}>
        Copy link to this view
      </button>
      <output>{message}</output>
    </>
  )
}

function Window({
  cluster,
  group,
  partition,
  close,
}: {
  cluster: string
  group: string
  partition: PartitionExplanation
  close: () => void
}) {
  const query = { topic: partition.topic, partition: partition.partition }
  const { data } = useAnswer(pathTo(EXPLAIN, { cluster, consumer: group }, query))
  const current = data?.explanation.partitions[0] ?? partition
  const slots = current.window ?? []
  const judgedAt = data?.explanation.judged_at ?? now.value
  const times = [...slots.map((slot) => slot.timestamp), judgedAt]
  const committed = [...slots.map((slot) => slot.offset), current.committed]
  const heads = [...slots.map((slot) => (slot.lag === null ? null : slot.offset + slot.lag)), current.head]
  return (
    <Card
      title={`Partition ${partition.partition}`}
      more={
        <button type="button" onClick={close} aria-label="Close this partition">
          ✕
        </button>
      }
    >
      <p>
        <a href={topicLink(cluster, partition.topic)}>
          <bdi>{partition.topic}</bdi>
        </a>{" "}
        {partition.partition} <Badge status={current.status} /> for <Since at={current.since} />.{" "}
        {capitalize(current.reason)}.
      </p>
      <dl class="facts">
        <Fact label="Lag">{current.current_lag === null ? "unknown" : exact(current.current_lag)}</Fact>
        <Fact label="Committed">{current.committed === null ? "never" : exact(current.committed)}</Fact>
        <Fact label="Head">{current.head === null ? "unknown" : exact(current.head)}</Fact>
        <Fact label="Head sampled">
          {current.head_at === null
            ? "never"
            : `${duration(Math.max(judgedAt - current.head_at, 0))} before the verdict`}
        </Fact>
        <Fact label="Log start">{current.log_start === null ? "unknown" : exact(current.log_start)}</Fact>
        <Fact label="Owner">
          <bdi>{current.owner || "–"}</bdi>
        </Fact>
        <Fact label="Client">
          <bdi>{current.client_id || "–"}</bdi>
        </Fact>
      </dl>
      {slots.length > 0 ? (
        <Chart
          label={`The last ${slots.length} commits, and the head at each`}
          times={times}
          lines={[
            { label: "head", colour: "mild", values: heads, hasPoints: true, dash: [6, 4] },
            { label: "committed", colour: "accent", values: committed, hasPoints: true },
          ]}
          fromZero={false}
          height={220}
        />
      ) : (
        <p class="empty">No commits yet.</p>
      )}
    </Card>
  )
}

function History({ cluster, group }: { cluster: string; group: string }) {
  const range = parseRange(route.value.params.get("range"))
  const { data } = useAnswer(
    pathTo("/v3/kafka/{cluster}/consumer/{consumer}/history", { cluster, consumer: group }, { hours: RANGES[range] }),
  )
  const points = data?.history ?? []
  const to = now.value
  const from = Math.max(to - RANGES[range] * 3_600_000, points[0]?.time ?? 0)
  return (
    <Card title="History" more={<RangePicker range={range} pick={(option) => setParams({ range: option })} />}>
      {points.length === 0 ? (
        <p class="empty">No history yet.</p>
      ) : (
        <>
          <Chart
            label={`Lag over the last ${range}`}
            times={points.map((point) => point.time)}
            lines={[{ label: "lag", colour: "accent", values: points.map((point) => point.totallag), isFilled: true }]}
            from={from}
            to={to}
          />
          <Timeline points={points} from={from} to={to} />
        </>
      )}
    </Card>
  )
}

function Partitions({
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
  return (a, b) =>
    sign * (value(a) - value(b)) || (b.current_lag ?? -1) - (a.current_lag ?? -1) || a.partition - b.partition
}

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

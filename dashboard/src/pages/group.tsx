// One group: what is wrong with it, since when, how bad, and who owns it.
import { useMemo, useState } from "preact/hooks"
import { type Explanation, groupPath, type Incident, type Moment, type Partition } from "../api"
import { now, useLive } from "../live"
import { Chart } from "../parts/chart"
import { IncidentState } from "../parts/incident"
import { keyOf, PartitionMap } from "../parts/partition-map"
import { Badge, Card, Fact, Later, RANGES, RangePicker, rangeOf, Since } from "../parts/small"
import { type Column, type Order, orderOf, orderText, Table } from "../parts/table"
import { Timeline } from "../parts/timeline"
import { place, silenceLink, topicLink, wish } from "../route"
import { GroupIncidents } from "./incidents"
import { clock, exact, MEANING, RANK, short, span } from "../words"

const FIRST: Order = { by: "status", isDown: true }
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

export function GroupPage() {
  const [cluster, group] = place.value.names as [string, string]
  const { data, refusal } = useLive<{ explanation: Explanation }>(groupPath(cluster, group, "explain"))
  if (refusal)
    return (
      <div class="empty">
        <h1>
          <bdi>{group}</bdi>
        </h1>
        <p>
          {refusal.status === 404
            ? `There is no such group in ${cluster} now: it may have been deleted, or not have committed for long.`
            : refusal.message}
        </p>
        <p>
          <a href="#/groups">All groups</a>
        </p>
      </div>
    )
  if (!data) return <p class="empty">Loading the group.</p>
  return <Known explanation={data.explanation} />
}

function Known({ explanation }: { explanation: Explanation }) {
  const { cluster, group, partitions } = explanation
  const { wishes } = place.value
  const mine = new URLSearchParams({ cluster, group, limit: "10" })
  const incidents = useLive<{ incidents: Incident[] }>(`v3/incidents?${mine}`).data?.incidents ?? []
  const current = incidents.find((one) => !one.closed)
  const worst = useMemo(() => [...partitions].sort(worseFirst)[0], [partitions])
  const wanted = wishes.get("partition")
  const chosen = partitions.find((one) => keyOf(one) === wanted) ?? null
  const choose = (key: string) => wish({ partition: key === wanted ? "" : key })
  const bad = partitions.filter((one) => one.status !== "OK")
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
            <bdi>{group}</bdi> <Badge status={explanation.status} />
          </h1>
          <p class="verdict">
            {explanation.status === "OK" ? "Keeps up" : `${cap(MEANING[explanation.status])}`} since{" "}
            <b>{clock(explanation.since)}</b>, for <Since at={explanation.since} />.{" "}
            {worst && worst.status !== "OK" && (
              <>
                Worst: <bdi>{worst.topic}</bdi> {worst.partition}: {worst.reason}.
              </>
            )}
          </p>
          {explanation.unknown_since && (
            <p class="trouble">
              The cluster cannot be judged for <Since at={explanation.unknown_since} />: this is what was last known.
            </p>
          )}
          {current && <IncidentState incident={current} />}
        </div>
        <div class="share">
          <Share />
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
          <Later value={null} show={(s) => span(s)} />
        </Fact>
        <Fact label="Catches up">
          <Later value={null} show={(s) => span(s)} />
        </Fact>
        <Fact label="Members">
          {exact(new Set(partitions.map((one) => one.client_id + one.owner).filter(Boolean)).size)}
        </Fact>
      </dl>
      <Card title="Partitions at a glance">
        <PartitionMap partitions={partitions} chosen={wanted} choose={choose} />
        <p class="legend mild">
          A cell is a partition, filled as far as it lags. <Badge status="WARN" /> <Badge status="STOP" />{" "}
          <Badge status="STALL" /> <Badge status="REWIND" />
        </p>
      </Card>
      {chosen && <Window cluster={cluster} group={group} partition={chosen} close={() => wish({ partition: "" })} />}
      <History cluster={cluster} group={group} />
      <GroupIncidents cluster={cluster} group={group} incidents={incidents} />
      <Partitions cluster={cluster} partitions={partitions} chosen={wanted} choose={choose} />
    </div>
  )
}

const cap = (words: string) => words[0]!.toUpperCase() + words.slice(1)
const worseFirst = (a: Partition, b: Partition) =>
  RANK[b.status] - RANK[a.status] || (b.current_lag ?? -1) - (a.current_lag ?? -1)

function Share() {
  const [said, say] = useState("")
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(location.href)
      say("Copied")
    } catch {
      say("Copy the address of this page")
    }
    setTimeout(() => say(""), 3000)
  }
  return (
    <>
      <button type="button" onClick={copy}>
        Copy link to this view
      </button>
      <output>{said}</output>
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
  partition: Partition
  close: () => void
}) {
  const path = `explain?topic=${encodeURIComponent(partition.topic)}&partition=${partition.partition}`
  const { data } = useLive<{ explanation: Explanation }>(groupPath(cluster, group, path))
  const one = data?.explanation.partitions[0] ?? partition
  const slots = one.window ?? []
  const judged = data?.explanation.judged_at ?? now.value
  const times = [...slots.map((slot) => slot.timestamp), judged]
  const committed = [...slots.map((slot) => slot.offset), one.committed]
  const heads = [...slots.map((slot) => (slot.lag === null ? null : slot.offset + slot.lag)), one.head]
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
        {partition.partition} <Badge status={one.status} /> for <Since at={one.since} />. {cap(one.reason)}.
      </p>
      <dl class="facts">
        <Fact label="Lag">{one.current_lag === null ? "unknown" : exact(one.current_lag)}</Fact>
        <Fact label="Committed">{one.committed === null ? "never" : exact(one.committed)}</Fact>
        <Fact label="Head">{one.head === null ? "unknown" : exact(one.head)}</Fact>
        <Fact label="Log begins">{one.log_start === null ? "unknown" : exact(one.log_start)}</Fact>
        <Fact label="Owner">
          <bdi>{one.owner || "nobody"}</bdi>
        </Fact>
        <Fact label="Client">
          <bdi>{one.client_id || "–"}</bdi>
        </Fact>
      </dl>
      {slots.length > 0 ? (
        <Chart
          label={`The last ${slots.length} commits and the log's head at each`}
          times={times}
          lines={[
            { label: "head", colour: "mild", values: heads, hasPoints: true, dash: [6, 4] },
            { label: "committed", colour: "accent", values: committed, hasPoints: true },
          ]}
          fromZero={false}
          height={220}
        />
      ) : (
        <p class="empty">No commit has been seen yet.</p>
      )}
    </Card>
  )
}

function History({ cluster, group }: { cluster: string; group: string }) {
  const range = rangeOf(place.value.wishes.get("range"))
  const { data } = useLive<{ history: Moment[] }>(groupPath(cluster, group, `history?hours=${RANGES[range]}`))
  const moments = data?.history ?? []
  const to = now.value
  const from = Math.max(to - RANGES[range] * 3_600_000, moments[0]?.time ?? 0)
  return (
    <Card title="History" more={<RangePicker range={range} pick={(one) => wish({ range: one })} />}>
      {moments.length === 0 ? (
        <p class="empty">No history yet: the first point is on its way.</p>
      ) : (
        <>
          <Chart
            label={`Lag over the last ${range}`}
            times={moments.map((one) => one.time)}
            lines={[{ label: "lag", colour: "accent", values: moments.map((one) => one.totallag), isFilled: true }]}
            from={from}
            to={to}
          />
          <Timeline moments={moments} from={from} to={to} />
        </>
      )}
    </Card>
  )
}

function Partitions({
  cluster,
  partitions,
  chosen,
  choose,
}: {
  cluster: string
  partitions: Partition[]
  chosen: string | null
  choose: (key: string) => void
}) {
  const sorted = place.value.wishes.get("sort")
  const order = useMemo(() => orderOf(sorted, FIRST), [sorted])
  const rows = useMemo(() => [...partitions].sort(comparing(order)), [partitions, order])
  return (
    <Card title="Partitions">
      <Table
        label="Partitions of this group"
        columns={COLUMNS}
        count={rows.length}
        keyAt={(row) => keyOf(rows[row]!)}
        cells={(row) => cellsOf(cluster, rows[row]!, choose, chosen)}
        order={order}
        sort={(next) => wish({ sort: orderText(next) })}
        chosen={chosen}
        empty="This group has no partition."
      />
    </Card>
  )
}

function comparing(order: Order): (a: Partition, b: Partition) => number {
  const sign = order.isDown ? -1 : 1
  const numbers: Record<string, (one: Partition) => number> = {
    status: (one) => RANK[one.status],
    partition: (one) => one.partition,
    lag: (one) => one.current_lag ?? -1,
    committed: (one) => one.committed ?? -1,
    head: (one) => one.head ?? -1,
    since: (one) => -one.since,
  }
  const texts: Record<string, (one: Partition) => string> = {
    topic: (one) => one.topic,
    client: (one) => one.client_id,
    owner: (one) => one.owner,
  }
  const text = texts[order.by]
  if (text) return (a, b) => sign * text(a).localeCompare(text(b)) || a.partition - b.partition
  const value = numbers[order.by] ?? numbers.status!
  return (a, b) =>
    sign * (value(a) - value(b)) || (b.current_lag ?? -1) - (a.current_lag ?? -1) || a.partition - b.partition
}

function cellsOf(cluster: string, one: Partition, choose: (key: string) => void, chosen: string | null) {
  const key = keyOf(one)
  return [
    <Badge status={one.status} />,
    <a href={topicLink(cluster, one.topic)} class="name" title={one.topic}>
      <bdi>{one.topic}</bdi>
    </a>,
    <button
      type="button"
      data-row={key}
      class="pick"
      aria-expanded={key === chosen}
      title={one.reason}
      onClick={() => choose(key)}
    >
      {one.partition}
    </button>,
    one.current_lag === null ? "–" : <span title={exact(one.current_lag)}>{short(one.current_lag)}</span>,
    one.committed === null ? "–" : exact(one.committed),
    one.head === null ? "–" : exact(one.head),
    <Since at={one.since} />,
    <bdi title={one.client_id}>{one.client_id || "–"}</bdi>,
    <bdi title={one.owner}>{one.owner || "–"}</bdi>,
  ]
}

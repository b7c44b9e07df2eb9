// All groups: found, filtered and sorted here, in the browser, by whole columns.
import { useEffect, useMemo, useRef } from "preact/hooks"
import type { GroupStatus, Groups } from "../api"
import { now, useLive } from "../live"
import { Badge, GroupName, Later, Spark } from "../parts/small"
import { type Column, firstRow, type Order, orderOf, orderText, Table } from "../parts/table"
import { place, wish } from "../route"
import { clock, exact, RANK, rate, short, span } from "../words"

const COLUMNS: Column[] = [
  { id: "status", title: "Status", width: "0 0 6.5rem" },
  { id: "group", title: "Group", width: "1 1 12rem" },
  { id: "totallag", title: "Lag", width: "0 0 5.5rem", isNumber: true },
  { id: "spark", title: "Last hour", width: "0 0 7rem", isMinor: true, isFixed: true },
  { id: "growth", title: "Growth", width: "0 0 6rem", isNumber: true, isMinor: true },
  { id: "seconds", title: "Time lag", width: "0 0 6rem", isNumber: true, isMinor: true },
  { id: "forecast", title: "Catches up", width: "0 0 6.5rem", isNumber: true, isMinor: true, isFixed: true },
  { id: "partitions", title: "Partitions", width: "0 0 6.5rem", isNumber: true, isMinor: true },
  { id: "since", title: "Since", width: "0 0 7rem", isNumber: true, isMinor: true },
]
const STATUSES: GroupStatus[] = ["ERR", "WARN", "OK"]
const FIRST: Order = { by: "status", isDown: true }

interface Wanted {
  text: string
  cluster: string
  status: string
}

/** The rows that are wanted, in order. */
export function chosenRows(groups: Groups, wanted: Wanted, order: Order): number[] {
  const words = wanted.text.toLowerCase().split(/\s+/).filter(Boolean)
  const cluster = wanted.cluster ? groups.clusters.indexOf(wanted.cluster) : -1
  const rows: number[] = []
  for (let i = 0; i < groups.group.length; i++) {
    if (wanted.cluster && groups.cluster[i] !== cluster) continue
    if (wanted.status && groups.status[i] !== wanted.status) continue
    if (words.length) {
      const name = groups.group[i]!.toLowerCase()
      if (!words.every((word) => name.includes(word))) continue
    }
    rows.push(i)
  }
  return rows.sort(comparing(groups, order))
}

function comparing(groups: Groups, order: Order): (a: number, b: number) => number {
  const sign = order.isDown ? -1 : 1
  const byName = (a: number, b: number) => (groups.group[a]! < groups.group[b]! ? -1 : 1)
  if (order.by === "group") return (a, b) => sign * byName(a, b)
  const value = Float64Array.from(groups.group, (_, row) => weight(groups, order.by, row))
  return (a, b) => {
    const [x, y] = [value[a]!, value[b]!]
    if (x !== y) return sign * (x - y)
    return groups.totallag[b]! - groups.totallag[a]! || byName(a, b)
  }
}

function weight(groups: Groups, by: string, row: number): number {
  if (by === "totallag") return groups.totallag[row]!
  if (by === "growth") return groups.growth[row] ?? Number.NEGATIVE_INFINITY
  if (by === "seconds") return groups.seconds?.[row] ?? Number.NEGATIVE_INFINITY
  if (by === "partitions") return groups.partitions[row]!
  // A younger verdict has a larger time: sorted by how long it lasts.
  if (by === "since") return -groups.since[row]!
  return RANK[groups.status[row]!]
}

export function GroupsPage() {
  const { wishes } = place.value
  const wanted: Wanted = {
    text: wishes.get("q") ?? "",
    cluster: wishes.get("cluster") ?? "",
    status: wishes.get("status") ?? "",
  }
  const topic = wishes.get("topic") ?? ""
  const sorted = wishes.get("sort")
  const order = useMemo(() => orderOf(sorted, FIRST), [sorted])
  const { data } = useLive<{ groups: Groups }>(topic ? `v3/groups?topic=${encodeURIComponent(topic)}` : "v3/groups")
  const groups = data?.groups ?? null
  const rows = useMemo(
    () => (groups ? chosenRows(groups, wanted, order) : []),
    [groups, wanted.text, wanted.cluster, wanted.status, order],
  )
  const search = useRef<HTMLInputElement>(null)
  useEffect(() => {
    const focus = (event: KeyboardEvent) => {
      const isTyping = event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement
      if (event.key === "/" && !isTyping && !event.ctrlKey && !event.metaKey) {
        event.preventDefault()
        search.current?.focus()
      }
    }
    addEventListener("keydown", focus)
    return () => removeEventListener("keydown", focus)
  }, [])
  const down = (event: KeyboardEvent) => {
    if (event.key === "ArrowDown" || event.key === "Enter") firstRow()?.focus()
    if (event.key === "Escape") wish({ q: "" })
  }
  if (!groups) return <p class="empty">Loading the groups.</p>
  return (
    <div class="groups">
      <form class="filters" role="search" onSubmit={(event) => event.preventDefault()}>
        <label>
          <span>Search</span>
          <input
            ref={search}
            type="search"
            value={wanted.text}
            placeholder="name ( / )"
            onInput={(event) => wish({ q: event.currentTarget.value })}
            onKeyDown={down}
          />
        </label>
        <label>
          <span>Cluster</span>
          <select value={wanted.cluster} onChange={(event) => wish({ cluster: event.currentTarget.value })}>
            <option value="">all</option>
            {groups.clusters.map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </label>
        <label>
          <span>Status</span>
          <select value={wanted.status} onChange={(event) => wish({ status: event.currentTarget.value })}>
            <option value="">all</option>
            {STATUSES.map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </label>
        <label>
          <span>Topic</span>
          <input
            type="search"
            value={topic}
            placeholder="whole name"
            onChange={(event) => wish({ topic: event.currentTarget.value })}
          />
        </label>
        <output>
          {exact(rows.length)} of {exact(groups.group.length)} groups
        </output>
      </form>
      <Table
        label="Consumer groups"
        columns={COLUMNS}
        count={rows.length}
        keyAt={(row) => `${groups.cluster[rows[row]!]}/${groups.group[rows[row]!]}`}
        cells={(row) => cellsOf(groups, rows[row]!)}
        order={order}
        sort={(next) => wish({ sort: orderText(next) })}
        isTall
        empty="No group is like that."
      />
    </div>
  )
}

function cellsOf(groups: Groups, row: number) {
  const [status, since] = [groups.status[row]!, groups.since[row]!]
  const cluster = groups.clusters[groups.cluster[row]!]!
  return [
    <Badge status={status} />,
    <>
      <GroupName cluster={cluster} group={groups.group[row]!} />
      <small class="mild">
        <bdi>{cluster}</bdi>
      </small>
    </>,
    <span title={exact(groups.totallag[row]!)}>{short(groups.totallag[row]!)}</span>,
    <Spark levels={groups.spark[row]!} status={status} />,
    rate(groups.growth[row]),
    <Later value={groups.seconds?.[row]} show={(s) => span(s * 1000)} />,
    <Later value={groups.forecast?.[row]} show={(s) => span(s * 1000)} />,
    exact(groups.partitions[row]!),
    <time dateTime={new Date(since).toISOString()} title={clock(since)}>
      {span(now.value - since)}
    </time>,
  ]
}

// All groups: searched, filtered and sorted in the browser.
import { useEffect, useMemo, useRef } from "preact/hooks"
import { pathTo } from "../api"
import { Badge, GroupName, Optional, Sparkline } from "../components/common"
import { type Column, firstRow, type Order, orderText, parseOrder, Table } from "../components/table"
import { dateTime, exact, GROUP_STATUSES, rate, severity, short, duration } from "../format"
import { now, useAnswer } from "../polling"
import { route, setParams } from "../route"
import type { GroupColumns } from "../schema"

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
const DEFAULT_ORDER: Order = { by: "status", isDescending: true }

interface Filters {
  text: string
  cluster: string
  status: string
}

/** The rows that match, sorted. */
export function matchingRows(groups: GroupColumns, filters: Filters, order: Order): number[] {
  const words = filters.text.toLowerCase().split(/\s+/).filter(Boolean)
  const cluster = filters.cluster ? groups.clusters.indexOf(filters.cluster) : -1
  const rows: number[] = []
  for (let i = 0; i < groups.group.length; i++) {
    if (filters.cluster && groups.cluster[i] !== cluster) continue
    if (filters.status && groups.status[i] !== filters.status) continue
    if (words.length) {
      const name = groups.group[i]!.toLowerCase()
      if (!words.every((word) => name.includes(word))) continue
    }
    rows.push(i)
  }
  return rows.sort(comparator(groups, order))
}

function comparator(groups: GroupColumns, order: Order): (a: number, b: number) => number {
  const sign = order.isDescending ? -1 : 1
  const byName = (a: number, b: number) => (groups.group[a]! < groups.group[b]! ? -1 : 1)
  if (order.by === "group") return (a, b) => sign * byName(a, b)
  const value = Float64Array.from(groups.group, (_, row) => sortValue(groups, order.by, row))
  return (a, b) => {
    const [x, y] = [value[a]!, value[b]!]
    if (x !== y) return sign * (x - y)
    return groups.totallag[b]! - groups.totallag[a]! || byName(a, b)
  }
}

function sortValue(groups: GroupColumns, by: string, row: number): number {
  if (by === "totallag") return groups.totallag[row]!
  if (by === "growth") return groups.growth[row] ?? Number.NEGATIVE_INFINITY
  if (by === "seconds") return groups.seconds_behind[row] ?? Number.NEGATIVE_INFINITY
  if (by === "partitions") return groups.partitions[row]!
  // Sorted by the age of the status: a newer status has a larger time.
  if (by === "since") return -groups.since[row]!
  return severity(groups.status[row]!)
}

export function GroupsPage() {
  const { params } = route.value
  const filters: Filters = {
    text: params.get("q") ?? "",
    cluster: params.get("cluster") ?? "",
    status: params.get("status") ?? "",
  }
  const topic = params.get("topic") ?? ""
  const sort = params.get("sort")
  const order = useMemo(() => parseOrder(sort, DEFAULT_ORDER), [sort])
  const { data } = useAnswer(pathTo("/v3/groups", {}, topic ? { topic } : {}))
  const groups = data?.groups ?? null
  const rows = useMemo(
    () => (groups ? matchingRows(groups, filters, order) : []),
    [groups, filters.text, filters.cluster, filters.status, order],
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
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "ArrowDown" || event.key === "Enter") firstRow()?.focus()
    if (event.key === "Escape") setParams({ q: "" })
  }
  if (!groups) return <p class="empty">Loading groups…</p>
  return (
    <div class="groups">
      <form class="filters" role="search" onSubmit={(event) => event.preventDefault()}>
        <label>
          <span>Search</span>
          <input
            ref={search}
            type="search"
            value={filters.text}
            placeholder="name ( / )"
            onInput={(event) => setParams({ q: event.currentTarget.value })}
            onKeyDown={onKeyDown}
          />
        </label>
        <label>
          <span>Cluster</span>
          <select value={filters.cluster} onChange={(event) => setParams({ cluster: event.currentTarget.value })}>
            <option value="">all</option>
            {groups.clusters.map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </label>
        <label>
          <span>Status</span>
          <select value={filters.status} onChange={(event) => setParams({ status: event.currentTarget.value })}>
            <option value="">all</option>
            {GROUP_STATUSES.map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </label>
        <label>
          <span>Topic</span>
          <input
            type="search"
            value={topic}
            placeholder="full name"
            onChange={(event) => setParams({ topic: event.currentTarget.value })}
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
        cells={(row) => rowCells(groups, rows[row]!)}
        order={order}
        sort={(next) => setParams({ sort: orderText(next) })}
        isTall
        empty="No group matches."
      />
    </div>
  )
}

function rowCells(groups: GroupColumns, row: number) {
  const [status, since] = [groups.status[row]!, groups.since[row]!]
  const cluster = groups.clusters[groups.cluster[row]!]!
  return [
    <Badge status={status} unknownSince={groups.unknown_since[row] ?? null} />,
    <>
      <GroupName cluster={cluster} group={groups.group[row]!} />
      <small class="mild">
        <bdi>{cluster}</bdi>
      </small>
    </>,
    <span title={exact(groups.totallag[row]!)}>{short(groups.totallag[row]!)}</span>,
    <Sparkline levels={groups.spark[row]!} status={status} />,
    rate(groups.growth[row]),
    <Optional value={groups.seconds_behind[row]} show={(s) => duration(s * 1000)} />,
    <Optional value={groups.catch_up_seconds[row]} show={(s) => duration(s * 1000)} />,
    exact(groups.partitions[row]!),
    <time dateTime={new Date(since).toISOString()} title={dateTime(since)}>
      {duration(now.value - since)}
    </time>,
  ]
}

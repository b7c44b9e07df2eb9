// What the server answers, as types, and the one way to ask it.

export type GroupStatus = "OK" | "WARN" | "ERR" | "NOTFOUND"
export type Status = GroupStatus | "STOP" | "STALL" | "REWIND"

export interface Named {
  cluster: string
  group: string
  status: GroupStatus
}

export interface Cluster {
  name: string
  status: GroupStatus
  totallag: number
  groups: Partial<Record<Status, number>>
  partitions: Partial<Record<Status, number>>
  unknown_since?: number | null
  error_message?: string | null
  catching_up?: boolean
}

export interface Worst extends Named {
  totallag: number
  growth: number | null
  since: number
  partition_status: Status
  topic: string
  partition: number
  reason: string
}

export interface Changed extends Named {
  before: GroupStatus | null
  since: number
}

export interface Overview {
  now: number
  not_ready: string | null
  sequence: number | null
  judged_at: number | null
  trigger_ms: number | null
  cycle_ms: number | null
  backlog: number
  rejects: Record<string, number>
  groups: number
  partitions: number
  clusters: Cluster[]
  worst: Worst[]
  changed: Changed[]
}

/** Every group, a list a column. */
export interface Groups {
  sequence: number | null
  judged_at: number | null
  clusters: string[]
  cluster: number[]
  group: string[]
  status: GroupStatus[]
  totallag: number[]
  maxlag: number[]
  since: number[]
  partitions: number[]
  growth: (number | null)[]
  spark: string[]
  seconds: (number | null)[] | null
  forecast: (number | null)[] | null
}

export interface Partition {
  topic: string
  partition: number
  owner: string
  client_id: string
  status: Status
  since: number
  reason: string
  committed: number | null
  head: number | null
  log_start: number | null
  current_lag: number | null
  complete: number
  window?: { offset: number; timestamp: number; lag: number | null }[]
}

export interface Explanation extends Named {
  since: number
  judged_at: number
  unknown_since: number | null
  totallag: number
  partitions: Partition[]
}

export interface Incident {
  id: string
  cluster: string
  group: string
  opened: number
  closed: number | null
  status: GroupStatus
  worst: GroupStatus
  changes: { time: number; status: GroupStatus }[]
  partition_count: number
  partitions: { topic: string; partition: number; status: Status; lag: number | null }[]
}

export interface Moment {
  time: number
  status: GroupStatus
  worst: Status
  since: number
  totallag: number
  maxlag: number
}

export interface ClusterMoments {
  time_ms: number[]
  cluster: string[]
  totallag: number[]
  groups_ok: number[]
  groups_warn: number[]
  groups_err: number[]
}

export interface Topic {
  cluster: string
  topic: string
  judged_at: number
  rate: number | null
  partitions: { partition: number; head: number | null; log_start: number | null; rate: number | null }[]
  consumers: (Named & {
    totallag: number
    since: number
    statuses: Partial<Record<Status, number>>
    lags: [number, number | null][]
  })[]
}

export class Refused extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message)
  }
}

/** Asks for a path below the page's own, so that it works behind a proxy that adds a prefix. */
export async function ask<T>(path: string, signal?: AbortSignal): Promise<T> {
  const answer = await fetch(path, { signal, headers: { Accept: "application/json" } })
  const said = await answer.json().catch(() => null)
  if (!answer.ok) throw new Refused(answer.status, said?.message ?? `the server answered ${answer.status}`)
  return said as T
}

const name = encodeURIComponent

export const groupPath = (cluster: string, group: string, what: string) =>
  `v3/kafka/${name(cluster)}/consumer/${name(group)}/${what}`
export const topicPath = (cluster: string, topic: string) => `v3/kafka/${name(cluster)}/topic/${name(topic)}/detail`

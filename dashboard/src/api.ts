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
  notifying: { state: Duty; why: string }
  sinks: Sink[]
}

/** Where lag is sent to. */
export interface Sink {
  name: string
  class: string
  state: "starting" | "well" | "behind" | "trouble"
  interval: number
  points: number
  delivered: number | null
  waiting: number
  waiting_bytes: number
  oldest: number | null
  dropped: number
  refused: number
  trouble: string
}

/** Whether this Warren notifies. */
export type Duty = "alone" | "active" | "standby" | "away" | "stopped" | "unknown"

export interface Notifiers {
  duty: { state: Duty; since: number | null; why: string }
  notifiers: {
    name: string
    class: string
    waiting: number
    sent: number
    given_up: number
    last_sent: number | null
    trouble: string
  }[]
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
  team: string
  acknowledged: { time: number; by: string; why: string } | null
  silenced: boolean
  changes: { time: number; status: GroupStatus }[]
  partition_count: number
  partitions: { topic: string; partition: number; status: Status; lag: number | null }[]
}

export interface Message {
  notifier: string
  event: string
  due: number
  sent: number | null
  given_up: number | null
  attempts: number
  trouble: string
  why: string
  channel: string
}

/** An incident with what was said of it. */
export interface ToldIncident extends Incident {
  message_count: number
  messages: Message[]
}

export interface Silence {
  id: string
  cluster: string
  group: string
  from: number
  until: number
  by: string
  why: string
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
  return answered(await fetch(path, { signal, headers: { Accept: "application/json" } }))
}

/** Wants something changed. */
export async function tell(method: "POST" | "DELETE", path: string, body?: object): Promise<void> {
  const sent = body && { body: JSON.stringify(body), headers: { "Content-Type": "application/json" } }
  await answered(await fetch(path, { method, ...sent }))
}

async function answered<T>(answer: Response): Promise<T> {
  const said = await answer.json().catch(() => null)
  if (!answer.ok) throw new Refused(answer.status, said?.message ?? `the server answered ${answer.status}`)
  return said as T
}

const name = encodeURIComponent

export const groupPath = (cluster: string, group: string, what: string) =>
  `v3/kafka/${name(cluster)}/consumer/${name(group)}/${what}`
export const incidentPath = (id: string) => `v3/incidents/${name(id)}`
export const topicPath = (cluster: string, topic: string) => `v3/kafka/${name(cluster)}/topic/${name(topic)}/detail`

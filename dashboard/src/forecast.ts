// How the lag of a group goes on at present rates.
import type { PartitionExplanation, TimeLag } from "./schema"

/** Lines from a lag down to 0, at common times. */
export interface ForecastLines {
  times: number[]
  lines: { label: string; values: (number | null)[] }[]
}

const NO_LINES: ForecastLines = { times: [], lines: [] }
const MIN_SPREAD = 1.1

/** The way from a lag at a time to the times at which it is 0, soonest and latest; it is cut off at `until`. */
export function forecastLines(value: number | null, lag: TimeLag, at: number, until: number): ForecastLines {
  const { catch_up_seconds: soonest, catch_up_seconds_at_most: latest } = lag
  if (!value || !soonest) return NO_LINES
  const isExact = latest !== null && latest <= soonest * MIN_SPREAD
  const ends = isExact
    ? { forecast: latest }
    : { "soonest forecast": soonest, ...(latest !== null && { "latest forecast": latest }) }
  const endTimes = Object.values(ends).map((seconds) => Math.min(at + seconds * 1000, until))
  const times = [at, ...new Set(endTimes.filter((time) => time > at))].sort((a, b) => a - b)
  const lines = Object.entries(ends).map(([label, seconds]) => ({
    label,
    values: times.map((time) => valueAt(value, seconds, time - at)),
  }))
  return { times, lines }
}

function valueAt(value: number, seconds: number, elapsedMs: number): number | null {
  const left = 1 - elapsedMs / (seconds * 1000)
  return left < -1e-9 ? null : Math.max(value * left, 0)
}

/** The partition whose unread messages are deleted first; null if none are, or if that is unknown. */
export function firstLoss(partitions: PartitionExplanation[]): PartitionExplanation | null {
  const left = (partition: PartitionExplanation | null) => partition?.time_lag.retention_left_seconds ?? Infinity
  return partitions.reduce<PartitionExplanation | null>((best, next) => (left(next) < left(best) ? next : best), null)
}

/** The time lag at which unread messages are deleted; null if that is unknown. */
export function retentionLimit(lag: TimeLag): number | null {
  const { seconds_behind: behind, retention_left_seconds: left, rates } = lag
  if (behind === null || left === null) return null
  // While it reads, its time lag grows by less than a second per second.
  const consumed = Math.min(rates.consumed_1m ?? 0, rates.consumed_10m ?? 0)
  const growth = rates.produced_10m ? 1 - consumed / rates.produced_10m : 1
  return behind + left * Math.min(Math.max(growth, 0), 1)
}

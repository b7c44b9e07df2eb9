// The status of a group over time, as a strip.
import { dateTime, STATUS_TEXT, STATUS_ICON, duration } from "../format"
import type { GroupHistoryPoint, Status } from "../schema"

interface Period {
  status: Status
  isKnown: boolean
  from: number
  to: number
}

/** Periods of one status; where points are missing for long, there is a gap. */
export function periodsOf(points: GroupHistoryPoint[], end: number): Period[] {
  const periods: Period[] = []
  const gap = Math.max(...points.map((point, i) => (i ? point.time - points[i - 1]!.time : 0)).slice(-20), 60_000) * 3
  for (const point of points) {
    const last = periods.at(-1)
    const isNext = last !== undefined && point.time - last.to <= gap
    if (isNext && last.status === point.status && last.isKnown === point.known) {
      last.to = point.time
      continue
    }
    // The status began between two points; `since` says when.
    const began = point.status === last?.status ? point.time : Math.min(point.since, point.time)
    const from = isNext ? Math.max(began, last.to) : point.time
    if (isNext) last.to = from
    periods.push({ status: point.status, isKnown: point.known, from, to: point.time })
  }
  const last = periods.at(-1)
  if (last && end - last.to <= gap) last.to = Math.max(end, last.to)
  return periods
}

/** The strip is as wide as the time from `from` to `to`, which may be in the future; the status is known up to `end`. */
export function Timeline({
  points,
  from,
  to,
  end,
}: {
  points: GroupHistoryPoint[]
  from: number
  to: number
  end: number
}) {
  const periods = periodsOf(points, end).filter((period) => period.to >= from)
  const x = (at: number) => `${((Math.max(at, from) - from) / (to - from)) * 100}%`
  const width = (period: Period) => `${((period.to - Math.max(period.from, from)) / (to - from)) * 100}%`
  const bad = periods.filter((period) => period.status !== "OK")
  const summary = bad.length
    ? `Not OK ${bad.length === 1 ? "once" : `${bad.length} times`}, ${duration(bad.reduce((sum, p) => sum + p.to - Math.max(p.from, from), 0))} in total`
    : "OK in all of the recorded time"
  return (
    <figure class="timeline">
      <svg width="100%" height="26" role="img" aria-label={summary}>
        {periods.map((period) => (
          <svg
            key={period.from}
            x={x(period.from)}
            width={width(period)}
            height="26"
            class={`is-${period.status.toLowerCase()} ${period.isKnown ? "" : "is-unknown"}`}
          >
            <title>{`${period.isKnown ? "" : "unknown, last "}${period.status} (${STATUS_TEXT[period.status]}) from ${dateTime(period.from)} for ${duration(period.to - period.from)}`}</title>
            <rect width="100%" height="26" />
            {period.status !== "OK" && (
              <text x="4" y="18">
                {STATUS_ICON[period.status]} {period.status}
              </text>
            )}
          </svg>
        ))}
      </svg>
      <figcaption>{summary}</figcaption>
    </figure>
  )
}

// A group's verdicts over time, as a strip.
import type { GroupStatus, Moment } from "../api"
import { clock, MEANING, SIGN, span } from "../words"

interface Stretch {
  status: GroupStatus
  from: number
  to: number
}

/** Stretches of one verdict; where nothing was written for long, nothing is said. */
export function stretches(moments: Moment[], end: number): Stretch[] {
  const found: Stretch[] = []
  const gap =
    Math.max(...moments.map((moment, i) => (i ? moment.time - moments[i - 1]!.time : 0)).slice(-20), 60_000) * 3
  for (const moment of moments) {
    const last = found.at(-1)
    const isNext = last !== undefined && moment.time - last.to <= gap
    if (isNext && last.status === moment.status) {
      last.to = moment.time
      continue
    }
    // The verdict began between two points; `since` says when.
    const from = isNext ? Math.max(Math.min(moment.since, moment.time), last.to) : moment.time
    if (isNext) last.to = from
    found.push({ status: moment.status, from, to: moment.time })
  }
  const last = found.at(-1)
  if (last && end - last.to <= gap) last.to = Math.max(end, last.to)
  return found
}

export function Timeline({ moments, from, to }: { moments: Moment[]; from: number; to: number }) {
  const parts = stretches(moments, to).filter((part) => part.to >= from)
  const x = (at: number) => `${((Math.max(at, from) - from) / (to - from)) * 100}%`
  const width = (part: Stretch) => `${((part.to - Math.max(part.from, from)) / (to - from)) * 100}%`
  const bad = parts.filter((part) => part.status !== "OK")
  const spoken = bad.length
    ? `Not OK ${bad.length === 1 ? "once" : `${bad.length} times`}, in all ${span(bad.reduce((sum, p) => sum + p.to - Math.max(p.from, from), 0))}`
    : "OK all the time that is known"
  return (
    <figure class="timeline">
      <svg width="100%" height="26" role="img" aria-label={spoken}>
        {parts.map((part) => (
          <svg
            key={part.from}
            x={x(part.from)}
            width={width(part)}
            height="26"
            class={`is-${part.status.toLowerCase()}`}
          >
            <title>{`${part.status} (${MEANING[part.status]}) from ${clock(part.from)} for ${span(part.to - part.from)}`}</title>
            <rect width="100%" height="26" />
            {part.status !== "OK" && (
              <text x="4" y="18">
                {SIGN[part.status]} {part.status}
              </text>
            )}
          </svg>
        ))}
      </svg>
      <figcaption>{spoken}</figcaption>
    </figure>
  )
}

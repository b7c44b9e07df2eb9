// The small things that every page is made of.
import type { ComponentChildren } from "preact"
import type { Status } from "../api"
import { now } from "../live"
import { groupLink } from "../route"
import { clock, MEANING, SIGN, span } from "../words"

export function Badge({ status }: { status: Status }) {
  return (
    <span class={`badge is-${status.toLowerCase()}`} title={MEANING[status]}>
      <span aria-hidden="true">{SIGN[status]}</span> {status}
    </span>
  )
}

/** How long ago a moment was; the moment itself for whoever points at it. */
export function Since({ at }: { at: number }) {
  return (
    <time dateTime={new Date(at).toISOString()} title={clock(at)}>
      {span(now.value - at)}
    </time>
  )
}

export function GroupName({ cluster, group }: { cluster: string; group: string }) {
  return (
    <a class="name" data-row href={groupLink(cluster, group)} title={group}>
      <bdi>{group || "(no name)"}</bdi>
    </a>
  )
}

const LEVELS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"

/** The way of a group's lag in the last hour. */
export function Spark({ levels, status }: { levels: string; status: Status }) {
  const points: string[] = []
  const step = 96 / Math.max(levels.length - 1, 1)
  for (let i = 0; i < levels.length; i++) {
    const level = LEVELS.indexOf(levels[i]!)
    if (level >= 0) points.push(`${(2 + i * step).toFixed(1)},${(22 - (level * 20) / 35).toFixed(1)}`)
  }
  return (
    <svg class={`spark is-${status.toLowerCase()}`} viewBox="0 0 100 24" preserveAspectRatio="none" aria-hidden="true">
      {points.length > 1 && <polyline points={points.join(" ")} />}
    </svg>
  )
}

export function Card({
  title,
  more,
  children,
}: {
  title: string
  more?: ComponentChildren
  children: ComponentChildren
}) {
  const id = `card-${title.toLowerCase().replace(/\W+/g, "-")}`
  return (
    <section class="card" aria-labelledby={id}>
      <header>
        <h2 id={id}>{title}</h2>
        {more}
      </header>
      {children}
    </section>
  )
}

export function Fact({ label, children }: { label: string; children: ComponentChildren }) {
  return (
    <div class="fact">
      <dt>{label}</dt>
      <dd>{children}</dd>
    </div>
  )
}

/** A number that Warren will know one day; its place is kept. */
export function Later({ value, show }: { value: number | null | undefined; show: (value: number) => string }) {
  if (value === null || value === undefined) return <span class="mild">–</span>
  return <>{show(value)}</>
}

export const RANGES = { "1h": 1, "24h": 24, "7d": 168 } as const
export type Range = keyof typeof RANGES
export const rangeOf = (wanted: string | null): Range => (wanted && wanted in RANGES ? (wanted as Range) : "1h")

export function RangePicker({ range, pick }: { range: Range; pick: (range: Range) => void }) {
  return (
    <fieldset class="ranges">
      <legend class="hidden">How far to look back</legend>
      {(Object.keys(RANGES) as Range[]).map((one) => (
        <button type="button" key={one} aria-pressed={one === range} onClick={() => pick(one)}>
          {one.replace("h", " h").replace("d", " d")}
        </button>
      ))}
    </fieldset>
  )
}

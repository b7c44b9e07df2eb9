// Small components that all pages use.
import type { ComponentChildren } from "preact"
import { dateTime, STATUS_TEXT, STATUS_ICON, duration } from "../format"
import { now } from "../polling"
import { groupLink } from "../route"
import type { Status } from "../schema"

/** A status; of a group that cannot be judged its last one, with a question mark. */
export function Badge({ status, unknownSince }: { status: Status; unknownSince?: number | null }) {
  const title = unknownSince
    ? `unknown for ${duration(now.value - unknownSince)}; it was ${status}`
    : STATUS_TEXT[status]
  return (
    <span class={`badge is-${status.toLowerCase()} ${unknownSince ? "is-unknown" : ""}`} title={title}>
      <span aria-hidden="true">{STATUS_ICON[status]}</span> {status}
      {unknownSince ? "?" : ""}
    </span>
  )
}

/** How long ago a time was, with the time itself as tooltip. */
export function Since({ at }: { at: number }) {
  return (
    <time dateTime={new Date(at).toISOString()} title={dateTime(at)}>
      {duration(now.value - at)}
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

/** A group's lag in the last hour as a line. */
export function Sparkline({ levels, status }: { levels: string; status: Status }) {
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

export const RANGES = { "1h": 1, "24h": 24, "7d": 168 } as const
export type Range = keyof typeof RANGES
const RANGE_TEXT: Record<Range, string> = { "1h": "1 h", "24h": "24 h", "7d": "7 d" }
export const parseRange = (text: string | null): Range => (text && text in RANGES ? (text as Range) : "1h")

export function RangePicker({ range, pick }: { range: Range; pick: (range: Range) => void }) {
  return <Picker label="Time range" options={RANGE_TEXT} picked={range} pick={pick} />
}

/** Buttons of which one is pressed. */
export function Picker<Option extends string>({
  label,
  options,
  picked,
  pick,
}: {
  label: string
  options: Record<Option, string>
  picked: Option
  pick: (option: Option) => void
}) {
  return (
    <fieldset class="ranges">
      <legend class="hidden">{label}</legend>
      {(Object.keys(options) as Option[]).map((option) => (
        <button type="button" key={option} aria-pressed={option === picked} onClick={() => pick(option)}>
          {options[option]}
        </button>
      ))}
    </fieldset>
  )
}

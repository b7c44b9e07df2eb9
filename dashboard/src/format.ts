// Numbers, times and statuses as text.
import { STATUS_VALUES, type Status, type TimeLag, type TimeLagMethod } from "./schema"

const numberFormat = new Intl.NumberFormat("en")

export const exact = (value: number) => numberFormat.format(value)

/** A count in few characters: 12,345 is 12.3k. */
export function short(value: number | null | undefined): string {
  if (value === null || value === undefined) return "–"
  const size = Math.abs(value)
  for (const [unit, suffix, from] of [
    [1e12, "T", 1e12],
    [1e9, "G", 1e9],
    [1e6, "M", 1e6],
    [1e3, "k", 1e4],
  ] as const) {
    if (size >= from) return `${(value / unit).toFixed(size >= unit * 100 ? 0 : 1)}${suffix}`
  }
  return numberFormat.format(Math.round(value))
}

/** Messages per second. */
export function perSecond(value: number | null | undefined): string {
  if (value === null || value === undefined) return "–"
  if (Math.abs(value) < 0.05) return "0/s"
  return `${Math.abs(value) < 10 ? value.toFixed(1) : short(value)}/s`
}

/** How fast a lag grows or shrinks: messages per second with a sign. */
export function growth(value: number | null | undefined): string {
  if (value === null || value === undefined || Math.abs(value) < 0.05) return perSecond(value)
  return `${value > 0 ? "+" : "−"}${perSecond(Math.abs(value))}`
}

/** A duration in its two largest units, without the second one if that is 0. */
export function duration(ms: number): string {
  const s = Math.max(Math.round(ms / 1000), 0)
  if (s < 60) return `${s} s`
  if (s < 3600) return inUnits(s, 60, "min", s < 600 ? 1 : 60, "s")
  return s < 86_400 ? inUnits(s, 3600, "h", 60, "min") : inUnits(s, 86_400, "d", 3600, "h")
}

function inUnits(s: number, large: number, largeName: string, small: number, smallName: string): string {
  const rest = Math.floor((s % large) / small)
  return `${Math.floor(s / large)} ${largeName}${small < large && rest ? ` ${rest} ${smallName}` : ""}`
}

/** Units of time in seconds, and up to when each is used where one must do. */
const TIME_UNITS = [
  { name: "s", seconds: 1, below: 120 },
  { name: "min", seconds: 60, below: 7200 },
  { name: "h", seconds: 3600, below: 172_800 },
  { name: "d", seconds: 86_400, below: Number.POSITIVE_INFINITY },
]
const timeUnit = (seconds: number) => TIME_UNITS.find((unit) => Math.round(seconds) < unit.below)!

/** Labels of an axis in seconds, all in the same unit. */
export function timeTicks(ticks: number[]): string[] {
  const unit = timeUnit(Math.max(...ticks))
  return ticks.map((tick) => (tick === 0 ? "0" : `${numberFormat.format(tick / unit.seconds)} ${unit.name}`))
}

/** How long the first unread message has been waiting. */
export function timeLag(seconds: number | null, method?: TimeLagMethod): string {
  if (seconds === null) return "–"
  if (method === "at_least") return `≥ ${duration(seconds * 1000)}`
  return seconds > 0 && seconds < 1 ? "< 1 s" : duration(seconds * 1000)
}

/** How the time lag is known. */
export const TIME_LAG_METHOD_TEXT: Record<TimeLagMethod, string> = {
  unknown: "The time lag is not known",
  caught_up: "No message is unread",
  head_history: "Since the first unread message was written: when the head passed the committed offset",
  append_time: "Since the first unread message was written, by the broker's clock (LogAppendTime)",
  record_time: "Since the first unread message was made, by its producer's clock (CreateTime)",
  at_least: "At least: the first unread message is older than the samples of the head, or a partition is unknown",
}

/** The age of the oldest unread message, if by its own timestamp it is older than it has been waiting, else null. */
export function ageBeyondTimeLag(lag: Pick<TimeLag, "seconds_behind" | "oldest_unread_age_seconds">): number | null {
  const age = lag.oldest_unread_age_seconds
  const waiting = lag.seconds_behind ?? 0
  return age !== null && age > 1.1 * waiting + 5 ? age : null
}

/** When a group or partition is caught up, as far as its rates tell. */
export type Forecast = Pick<
  TimeLag,
  "seconds_behind" | "catch_up_seconds" | "catch_up_seconds_at_most" | "is_falling_behind"
>

const KEEPS_UP_S = 60

/** Whether it is no further behind than a consumer that reads at the rate of writing is between two commits. */
export const keepsUp = (lag: Forecast, status: Status) =>
  status === "OK" && lag.seconds_behind !== null && lag.seconds_behind < KEEPS_UP_S

/** How long until nothing is unread at present rates. */
export function catchUp(lag: Forecast, status: Status): string {
  const [soonest, latest] = [lag.catch_up_seconds, lag.catch_up_seconds_at_most]
  if (keepsUp(lag, status)) return "keeps up"
  if (lag.is_falling_behind) return "never"
  if (soonest === null) return "–"
  const from = rounded(soonest)
  if (latest === null) return `≥ ${from.text}`
  const to = rounded(latest)
  if (from.text === to.text) return to.text
  return from.unit === to.unit ? `${from.count}–${to.text}` : `${from.text} – ${to.text}`
}

function rounded(seconds: number): { count: string; unit: string; text: string } {
  const { name: unit, seconds: size } = timeUnit(seconds)
  const count = `${Math.round(seconds / size)}`
  return { count, unit, text: `${count} ${unit}` }
}

/** For sorting: never is the longest, perhaps never the next, and unknown the shortest. */
export function catchUpOrder(lag: Forecast, status: Status): number {
  if (keepsUp(lag, status)) return 0
  if (lag.is_falling_behind) return Number.POSITIVE_INFINITY
  if (lag.catch_up_seconds === null) return Number.NEGATIVE_INFINITY
  return lag.catch_up_seconds_at_most ?? Number.MAX_VALUE
}

/** What the forecast is made from. */
export function catchUpBasis(lag: Forecast, status: Status): string {
  if (keepsUp(lag, status)) return "It reads as fast as messages are written"
  if (lag.is_falling_behind)
    return "It reads no faster than messages are written, in the last minute and in the last ten"
  if (lag.catch_up_seconds === null) return "The rates are not known yet"
  if (lag.catch_up_seconds_at_most === null)
    return "At the rates of the last minute or of the last ten; by the other it does not catch up"
  return "At the rates of the last minute and of the last ten"
}

export const capitalize = (text: string) => text[0]!.toUpperCase() + text.slice(1)

export const dateTime = (ms: number) => new Date(ms).toLocaleString("sv-SE", { hour12: false })

/** An icon for each status, so that none depends on its colour alone. */
export const STATUS_ICON: Record<Status, string> = {
  OK: "✓",
  WARN: "▲",
  ERR: "✖",
  STOP: "■",
  STALL: "‖",
  REWIND: "◀◀",
  NOTFOUND: "?",
}

export const STATUS_TEXT: Record<Status, string> = {
  OK: "keeps up",
  WARN: "falls behind",
  ERR: "a partition has stopped, stalled or rewound",
  STOP: "has stopped committing",
  STALL: "commits, but does not advance",
  REWIND: "went back to earlier offsets",
  NOTFOUND: "unknown",
}

/** The server's order of severity, for sorting. */
export const severity = (status: Status) => STATUS_VALUES.indexOf(status)

/** The statuses of groups, most severe first. */
export const GROUP_STATUSES = (["OK", "WARN", "ERR"] as Status[]).sort((a, b) => severity(b) - severity(a))

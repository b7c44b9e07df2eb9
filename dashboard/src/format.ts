// Numbers, times and statuses as text.
import { STATUS_VALUES, type Status } from "./schema"

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

/** Messages per second, with a sign. */
export function rate(value: number | null | undefined): string {
  if (value === null || value === undefined) return "–"
  if (Math.abs(value) < 0.05) return "0/s"
  const sign = value > 0 ? "+" : "−"
  const size = Math.abs(value)
  return `${sign}${size < 10 ? size.toFixed(1) : short(size)}/s`
}

/** A duration in its two largest units. */
export function duration(ms: number): string {
  const s = Math.max(Math.round(ms / 1000), 0)
  if (s < 60) return `${s} s`
  if (s < 3600) return `${Math.floor(s / 60)} min${s < 600 && s % 60 ? ` ${s % 60} s` : ""}`
  if (s < 86_400) return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`
  return `${Math.floor(s / 86_400)} d ${Math.floor((s % 86_400) / 3600)} h`
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

// Numbers, times and verdicts as people read them.
import type { Status } from "./api"

const whole = new Intl.NumberFormat("en")

export const exact = (value: number) => whole.format(value)

/** A count in few characters: 12,345 is 12.3k. */
export function short(value: number | null | undefined): string {
  if (value === null || value === undefined) return "–"
  const size = Math.abs(value)
  for (const [unit, letter, from] of [
    [1e12, "T", 1e12],
    [1e9, "G", 1e9],
    [1e6, "M", 1e6],
    [1e3, "k", 1e4],
  ] as const) {
    if (size >= from) return `${(value / unit).toFixed(size >= unit * 100 ? 0 : 1)}${letter}`
  }
  return whole.format(Math.round(value))
}

/** Messages a second, with a sign: what grows is trouble. */
export function rate(value: number | null | undefined): string {
  if (value === null || value === undefined) return "–"
  if (Math.abs(value) < 0.05) return "0/s"
  const sign = value > 0 ? "+" : "−"
  const size = Math.abs(value)
  return `${sign}${size < 10 ? size.toFixed(1) : short(size)}/s`
}

/** How long something lasts, in its two largest units. */
export function span(ms: number): string {
  const s = Math.max(Math.round(ms / 1000), 0)
  if (s < 60) return `${s} s`
  if (s < 3600) return `${Math.floor(s / 60)} min${s < 600 && s % 60 ? ` ${s % 60} s` : ""}`
  if (s < 86_400) return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`
  return `${Math.floor(s / 86_400)} d ${Math.floor((s % 86_400) / 3600)} h`
}

export const clock = (ms: number) => new Date(ms).toLocaleString("sv-SE", { hour12: false })

/** A sign for each verdict, so that none is told by its colour alone. */
export const SIGN: Record<Status, string> = {
  OK: "✓",
  WARN: "▲",
  ERR: "✖",
  STOP: "■",
  STALL: "‖",
  REWIND: "◀◀",
  NOTFOUND: "?",
}

export const MEANING: Record<Status, string> = {
  OK: "keeps up",
  WARN: "falls behind",
  ERR: "a partition has stopped, stalled or rewound",
  STOP: "commits no more",
  STALL: "commits, but does not move",
  REWIND: "went back",
  NOTFOUND: "not known",
}

/** How bad a verdict is, for sorting. */
export const RANK: Record<Status, number> = { NOTFOUND: 0, OK: 1, WARN: 2, REWIND: 3, STALL: 4, STOP: 5, ERR: 6 }

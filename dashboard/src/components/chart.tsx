// A line chart over time.
import { useEffect, useRef } from "preact/hooks"
import uPlot from "uplot"
import "uplot/dist/uPlot.min.css"
import { theme } from "../theme"
import { exact, short, timeLag, timeTicks } from "../format"

export interface Line {
  label: string
  /** The name of a CSS variable. */
  colour: string
  values: (number | null)[]
  isFilled?: boolean
  hasPoints?: boolean
  dash?: number[]
}

const HEIGHT = 200
const DAY_S = 86_400
const TIME_STEPS_S = [
  1,
  2,
  5,
  10,
  20,
  30,
  60,
  120,
  300,
  600,
  1200,
  1800,
  3600,
  7200,
  10_800,
  21_600,
  43_200,
  ...[1, 2, 5, 10, 20, 50, 100, 200, 500, 1000].map((days) => days * DAY_S),
]

/** The label of a tick: its time, with seconds if ticks are that close, and the date where a new day begins. */
function tickLabel(tick: number, before: number | undefined, step: number): string {
  const [day, time] = new Date(tick * 1000).toLocaleString("sv-SE").split(" ") as [string, string]
  const isNewDay =
    before !== undefined && new Date(before * 1000).toDateString() !== new Date(tick * 1000).toDateString()
  if (step >= DAY_S) return day.slice(5)
  const shown = step < 60 ? time : time.slice(0, 5)
  return isNewDay ? `${shown}\n${day.slice(5)}` : shown
}

/** Marks the area above a limit. */
function drawLimit(plot: uPlot, limit: number | null, colour: (name: string) => string) {
  if (limit === null) return
  const { ctx, bbox } = plot
  const y = Math.min(plot.valToPos(limit, "y", true), bbox.top + bbox.height)
  ctx.save()
  ctx.fillStyle = colour("err-ground")
  ctx.fillRect(bbox.left, bbox.top, bbox.width, y - bbox.top)
  ctx.fillStyle = colour("level-err")
  ctx.fillRect(bbox.left, y, bbox.width, devicePixelRatio)
  ctx.fillStyle = colour("err")
  ctx.font = `${12 * devicePixelRatio}px system-ui, sans-serif`
  ctx.textAlign = "left"
  ctx.textBaseline = "bottom"
  ctx.fillText("messages are lost", bbox.left + 6 * devicePixelRatio, y - 2 * devicePixelRatio)
  ctx.restore()
}

export function Chart({
  times,
  lines,
  from,
  to,
  label,
  height = HEIGHT,
  fromZero = true,
  isTime = false,
  limit = null,
}: {
  /** In milliseconds. */
  times: number[]
  lines: Line[]
  from?: number
  to?: number
  label: string
  height?: number
  fromZero?: boolean
  /** Whether the values are seconds. */
  isTime?: boolean
  /** The value from which on messages are lost: the area above it is marked. */
  limit?: number | null
}) {
  const element = useRef<HTMLDivElement>(null)
  const plot = useRef<uPlot | null>(null)
  const data: uPlot.AlignedData = [times.map((ms) => ms / 1000), ...lines.map((line) => line.values)]
  const shape = lines.map((line) => `${line.label}/${line.colour}`).join("|")
  const bounds = useRef({ from, to, limit })
  bounds.current = { from, to, limit }

  useEffect(() => {
    const container = element.current!
    const style = getComputedStyle(container)
    const colour = (name: string) => style.getPropertyValue(`--${name}`).trim()
    const axis = { stroke: colour("mild"), grid: { stroke: colour("line"), width: 1 }, ticks: { show: false } }
    const created = new uPlot(
      {
        width: container.clientWidth,
        height,
        cursor: { y: false, drag: { x: false, y: false } },
        legend: { live: true },
        scales: {
          x: {
            range: (_, low, high) => [
              (bounds.current.from ?? low * 1000) / 1000,
              (bounds.current.to ?? high * 1000) / 1000,
            ],
          },
          y: {
            range: (_, low, high) => {
              if (low === null || high === null) return [0, 1]
              const highest = Math.max(high, bounds.current.limit ?? high)
              const share = bounds.current.limit === null ? 0.08 : 0.2
              const room = Math.max((highest - (fromZero ? 0 : low)) * share, 1)
              return [fromZero ? 0 : low - room, highest + room]
            },
          },
        },
        axes: [
          {
            ...axis,
            space: 90,
            values: (_, ticks, __, ___, step) => ticks.map((tick, i) => tickLabel(tick, ticks[i - 1], step)),
          },
          isTime
            ? { ...axis, size: 62, incrs: TIME_STEPS_S, values: (_, ticks) => timeTicks(ticks) }
            : {
                ...axis,
                size: 62,
                values: (_, ticks) => ticks.map((tick) => (Number.isInteger(tick) ? short(tick) : "")),
              },
        ],
        series: [
          { value: (_, s) => (s ? new Date(s * 1000).toLocaleTimeString("sv-SE") : "") },
          ...lines.map((line) => ({
            label: line.label,
            stroke: colour(line.colour),
            fill: line.isFilled ? `${colour(line.colour)}22` : undefined,
            width: 2,
            dash: line.dash,
            points: { show: line.hasPoints ?? false, size: 6 },
            value: (_: uPlot, value: number | null) =>
              value === null ? "–" : isTime ? timeLag(value) : exact(Math.round(value)),
          })),
        ],
        hooks: { drawClear: [(own) => drawLimit(own, bounds.current.limit, colour)] },
      },
      data,
      container,
    )
    plot.current = created
    const observer = new ResizeObserver(() => created.setSize({ width: container.clientWidth, height }))
    observer.observe(container)
    return () => {
      observer.disconnect()
      created.destroy()
    }
  }, [shape, height, fromZero, isTime, theme.value])

  useEffect(() => plot.current?.setData(data))
  return <div class="chart" role="img" aria-label={label} ref={element} />
}

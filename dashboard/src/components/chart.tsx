// A line chart over time.
import { useEffect, useRef } from "preact/hooks"
import uPlot from "uplot"
import "uplot/dist/uPlot.min.css"
import { theme } from "../theme"
import { exact, short } from "../format"

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

/** The label of a tick: its time, with seconds if ticks are that close, and the date where a new day begins. */
function tickLabel(tick: number, before: number | undefined, step: number): string {
  const [day, time] = new Date(tick * 1000).toLocaleString("sv-SE").split(" ") as [string, string]
  const isNewDay =
    before !== undefined && new Date(before * 1000).toDateString() !== new Date(tick * 1000).toDateString()
  if (step >= DAY_S) return day.slice(5)
  const shown = step < 60 ? time : time.slice(0, 5)
  return isNewDay ? `${shown}\n${day.slice(5)}` : shown
}

export function Chart({
  times,
  lines,
  from,
  to,
  label,
  height = HEIGHT,
  fromZero = true,
}: {
  /** In milliseconds. */
  times: number[]
  lines: Line[]
  from?: number
  to?: number
  label: string
  height?: number
  fromZero?: boolean
}) {
  const element = useRef<HTMLDivElement>(null)
  const plot = useRef<uPlot | null>(null)
  const data: uPlot.AlignedData = [times.map((ms) => ms / 1000), ...lines.map((line) => line.values)]
  const shape = lines.map((line) => `${line.label}/${line.colour}`).join("|")
  const range = useRef({ from, to })
  range.current = { from, to }

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
              (range.current.from ?? low * 1000) / 1000,
              (range.current.to ?? high * 1000) / 1000,
            ],
          },
          y: {
            range: (_, low, high) => {
              if (low === null || high === null) return [0, 1]
              const room = Math.max((high - (fromZero ? 0 : low)) * 0.08, 1)
              return [fromZero ? 0 : low - room, high + room]
            },
          },
        },
        axes: [
          {
            ...axis,
            space: 90,
            values: (_, ticks, __, ___, step) => ticks.map((tick, i) => tickLabel(tick, ticks[i - 1], step)),
          },
          { ...axis, size: 62, values: (_, ticks) => ticks.map((tick) => (Number.isInteger(tick) ? short(tick) : "")) },
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
            value: (_: uPlot, value: number | null) => (value === null ? "–" : exact(value)),
          })),
        ],
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
  }, [shape, height, fromZero, theme.value])

  useEffect(() => plot.current?.setData(data))
  return <div class="chart" role="img" aria-label={label} ref={element} />
}

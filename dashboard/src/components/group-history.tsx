// The lag of a group over time, in messages or in seconds, with its forecast; and its status over time.
import { pathTo } from "../api"
import { firstLoss, forecastLines, retentionLimit } from "../forecast"
import { catchUp, duration, keepsUp, short, timeLag } from "../format"
import { now, useAnswer } from "../polling"
import { route, setParams } from "../route"
import type { GroupExplanation } from "../schema"
import { Chart } from "./chart"
import { Card, parseRange, Picker, RANGES, RangePicker } from "./common"
import { Timeline } from "./timeline"

const UNITS = { messages: "messages", seconds: "seconds" }
type Unit = keyof typeof UNITS

const FUTURE_SHARE = 0.5
/** How far above the recorded time lags the limit of retention is drawn: further up, they would be a flat line. */
const MAX_LIMIT_FACTOR = 3

export function GroupHistory({ explanation }: { explanation: GroupExplanation }) {
  const { cluster, group, time_lag: lag } = explanation
  const { params } = route.value
  const range = parseRange(params.get("range"))
  const { data } = useAnswer(
    pathTo("/v3/kafka/{cluster}/consumer/{consumer}/history", { cluster, consumer: group }, { hours: RANGES[range] }),
  )
  const points = data?.history ?? []
  // History from before there were time lags has none.
  const hasSeconds = points.some((point) => point.seconds_behind !== null)
  const unit: Unit = params.get("unit") === "messages" || !hasSeconds ? "messages" : "seconds"
  const isTime = unit === "seconds"
  const to = now.value
  const from = Math.max(to - RANGES[range] * 3_600_000, points[0]?.time ?? 0)
  const current = isTime ? lag.seconds_behind : explanation.totallag
  const at = Math.max(explanation.judged_at, points.at(-1)?.time ?? 0)
  const ahead = forecastLines(hasForecast(explanation) ? current : null, lag, at, to + (to - from) * FUTURE_SHARE)
  const end = Math.max(to, ahead.times.at(-1) ?? 0)
  const past = points.map((point) => (isTime ? point.seconds_behind : point.totallag))
  const limit = isTime ? drawnLimit(explanation, past) : null
  return (
    <Card
      title="History"
      more={
        <div class="pickers">
          {hasSeconds && (
            <Picker
              label="Unit of the lag"
              options={UNITS}
              picked={unit}
              pick={(option) => setParams({ unit: option })}
            />
          )}
          <RangePicker range={range} pick={(option) => setParams({ range: option })} />
        </div>
      }
    >
      {points.length === 0 ? (
        <p class="empty">No history yet.</p>
      ) : (
        <>
          <p>{outlook(explanation)}</p>
          <Chart
            label={`${isTime ? "Time lag" : "Lag"} over the last ${range}, now ${isTime ? timeLag(current, lag.seconds_behind_method) : short(current)}`}
            times={[...points.map((point) => point.time), ...ahead.times]}
            lines={[
              {
                label: isTime ? "time lag" : "lag",
                colour: "accent",
                values: [...past, ...ahead.times.map((_, i) => (i ? null : current))],
                isFilled: true,
              },
              ...ahead.lines.map((line) => ({
                label: line.label,
                colour: "accent",
                values: [...points.map(() => null), ...line.values],
                dash: [2, 5],
              })),
            ]}
            from={from}
            to={end}
            isTime={isTime}
            limit={limit}
          />
          <Timeline points={points} from={from} to={end} end={to} />
        </>
      )}
    </Card>
  )
}

/** The time lag at which messages are lost, if it is near enough to be drawn. */
function drawnLimit({ partitions, time_lag: lag }: GroupExplanation, past: (number | null)[]): number | null {
  const limit = retentionLimit(firstLoss(partitions)?.time_lag ?? lag)
  const highest = Math.max(lag.seconds_behind ?? 0, ...past.map((value) => value ?? 0))
  // Where another partition is further behind than that, its topic keeps messages for longer.
  const isNear = limit !== null && limit >= (lag.seconds_behind ?? 0) && limit <= highest * MAX_LIMIT_FACTOR
  return isNear ? limit : null
}

const hasForecast = ({ status, time_lag: lag, unknown_since: unknownSince }: GroupExplanation) =>
  !unknownSince && !keepsUp(lag, status)

/** When the group is caught up and when it loses messages, in words. */
function outlook(explanation: GroupExplanation): string {
  const { partitions, status, time_lag: lag } = explanation
  if (!hasForecast(explanation)) return ""
  const sentences = []
  if (lag.is_falling_behind) sentences.push("At present rates it does not catch up.")
  else if (lag.catch_up_seconds) sentences.push(`At present rates it catches up in ${catchUp(lag, status)}.`)
  const first = firstLoss(partitions)
  const limit = first && retentionLimit(first.time_lag)
  if (first && limit !== null) {
    const left = duration(first.time_lag.retention_left_seconds! * 1000)
    const at = duration(limit * 1000)
    sentences.push(`${first.topic} ${first.partition} loses messages in ${left}, at a time lag of ${at}.`)
  }
  return sentences.join(" ")
}

// The lag and the status of a group over time.
import { pathTo } from "../api"
import { now, useAnswer } from "../polling"
import { route, setParams } from "../route"
import { Chart } from "./chart"
import { Card, parseRange, RANGES, RangePicker } from "./common"
import { Timeline } from "./timeline"

export function GroupHistory({ cluster, group }: { cluster: string; group: string }) {
  const range = parseRange(route.value.params.get("range"))
  const { data } = useAnswer(
    pathTo("/v3/kafka/{cluster}/consumer/{consumer}/history", { cluster, consumer: group }, { hours: RANGES[range] }),
  )
  const points = data?.history ?? []
  const to = now.value
  const from = Math.max(to - RANGES[range] * 3_600_000, points[0]?.time ?? 0)
  return (
    <Card title="History" more={<RangePicker range={range} pick={(option) => setParams({ range: option })} />}>
      {points.length === 0 ? (
        <p class="empty">No history yet.</p>
      ) : (
        <>
          <Chart
            label={`Lag over the last ${range}`}
            times={points.map((point) => point.time)}
            lines={[{ label: "lag", colour: "accent", values: points.map((point) => point.totallag), isFilled: true }]}
            from={from}
            to={to}
          />
          <Timeline points={points} from={from} to={to} />
        </>
      )}
    </Card>
  )
}

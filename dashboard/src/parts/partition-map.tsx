// All partitions of a group at a glance: a cell each, marked by its verdict, filled as far as it lags.
import type { Partition } from "../api"
import { exact, MEANING, SIGN } from "../words"

export const keyOf = (one: { topic: string; partition: number }) => `${one.topic}/${one.partition}`

export function PartitionMap({
  partitions,
  chosen,
  choose,
}: {
  partitions: Partition[]
  chosen: string | null
  choose: (key: string) => void
}) {
  const most = Math.max(...partitions.map((one) => one.current_lag ?? 0), 1)
  const size = partitions.length > 600 ? 14 : partitions.length > 150 ? 20 : 30
  const columns = Math.max(Math.floor(1000 / (size + 2)), 1)
  const topics = [...new Set(partitions.map((one) => one.topic))]
  const bad = partitions.filter((one) => one.status !== "OK")
  const spoken = `${partitions.length} partitions, ${bad.length ? `${bad.length} not OK` : "all OK"}. The table below lists them.`
  return (
    <div class="map" role="img" aria-label={spoken}>
      {topics.map((topic) => {
        const own = partitions.filter((one) => one.topic === topic)
        const wide = Math.min(columns, own.length)
        return (
          <div key={topic}>
            <p class="mild">
              <bdi>{topic}</bdi> · {own.length}
            </p>
            <svg
              viewBox={`0 0 ${wide * (size + 2)} ${Math.ceil(own.length / wide) * (size + 2)}`}
              style={{ maxWidth: `${wide * (size + 2)}px` }}
            >
              {own.map((one, place) => {
                const lag = one.current_lag ?? 0
                // By the logarithm: a little lag is seen beside a huge one.
                const fill = lag > 0 ? Math.max((Math.log1p(lag) / Math.log1p(most)) * (size - 2), 2) : 0
                const key = keyOf(one)
                return (
                  <g
                    key={key}
                    class={`cell is-${one.status.toLowerCase()} ${key === chosen ? "is-chosen" : ""}`}
                    transform={`translate(${(place % wide) * (size + 2) + 1} ${Math.floor(place / wide) * (size + 2) + 1})`}
                    onClick={() => choose(key)}
                  >
                    <title>{`${one.topic} ${one.partition}: ${one.status} (${MEANING[one.status]}), lag ${one.current_lag === null ? "unknown" : exact(lag)}`}</title>
                    <rect class="ground" width={size} height={size} rx="2" />
                    <rect class="level" y={size - 1 - fill} x="1" width={size - 2} height={fill} />
                    {one.status !== "OK" && (
                      <text x={size / 2} y={size * 0.72} text-anchor="middle" font-size={size * 0.55}>
                        {SIGN[one.status]}
                      </text>
                    )}
                  </g>
                )
              })}
            </svg>
          </div>
        )
      })}
    </div>
  )
}

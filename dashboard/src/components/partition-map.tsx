// All partitions of a group: partition cell per partition, coloured by status and filled by lag.
import { exact, STATUS_TEXT, STATUS_ICON, timeLag } from "../format"
import type { PartitionExplanation } from "../schema"

export const partitionKey = (partition: { topic: string; partition: number }) =>
  `${partition.topic}/${partition.partition}`

export function PartitionMap({
  partitions,
  selected,
  select,
}: {
  partitions: PartitionExplanation[]
  selected: string | null
  select: (key: string) => void
}) {
  const maxLag = Math.max(...partitions.map((partition) => partition.current_lag ?? 0), 1)
  const size = partitions.length > 600 ? 14 : partitions.length > 150 ? 20 : 30
  const columns = Math.max(Math.floor(1000 / (size + 2)), 1)
  const topics = [...new Set(partitions.map((partition) => partition.topic))]
  const bad = partitions.filter((partition) => partition.status !== "OK")
  const summary = `${partitions.length} partitions, ${bad.length ? `${bad.length} not OK` : "all OK"}. The table below lists them.`
  return (
    <div class="map" role="img" aria-label={summary}>
      {topics.map((topic) => {
        const own = partitions.filter((partition) => partition.topic === topic)
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
              {own.map((partition, index) => {
                const lag = partition.current_lag ?? 0
                // On a logarithmic scale, so that a small lag is visible beside a huge partition.
                const fill = lag > 0 ? Math.max((Math.log1p(lag) / Math.log1p(maxLag)) * (size - 2), 2) : 0
                const key = partitionKey(partition)
                return (
                  <g
                    key={key}
                    class={`cell is-${partition.status.toLowerCase()} ${key === selected ? "is-chosen" : ""}`}
                    transform={`translate(${(index % wide) * (size + 2) + 1} ${Math.floor(index / wide) * (size + 2) + 1})`}
                    onClick={() => select(key)}
                  >
                    <title>{`${partition.topic} ${partition.partition}: ${partition.status} (${STATUS_TEXT[partition.status]}), lag ${partition.current_lag === null ? "unknown" : exact(lag)}, time lag ${partition.time_lag.seconds_behind === null ? "unknown" : timeLag(partition.time_lag.seconds_behind, partition.time_lag.seconds_behind_method)}`}</title>
                    <rect class="ground" width={size} height={size} rx="2" />
                    <rect class="level" y={size - 1 - fill} x="1" width={size - 2} height={fill} />
                    {partition.status !== "OK" && (
                      <text x={size / 2} y={size * 0.72} text-anchor="middle" font-size={size * 0.55}>
                        {STATUS_ICON[partition.status]}
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

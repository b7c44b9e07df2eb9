// One partition of a group: why it has its status, and its last commits.
import { pathTo } from "../api"
import { capitalize, duration, exact } from "../format"
import { now, useAnswer } from "../polling"
import { topicLink } from "../route"
import type { PartitionExplanation } from "../schema"
import { Chart } from "./chart"
import { Badge, Card, Fact, Since } from "./common"
import { TimeLagFacts } from "./time-lag"

export function PartitionWindow({
  cluster,
  group,
  partition,
  close,
}: {
  cluster: string
  group: string
  partition: PartitionExplanation
  close: () => void
}) {
  const query = { topic: partition.topic, partition: partition.partition }
  const { data } = useAnswer(
    pathTo("/v3/kafka/{cluster}/consumer/{consumer}/explain", { cluster, consumer: group }, query),
  )
  const current = data?.explanation.partitions[0] ?? partition
  const slots = current.window ?? []
  const judgedAt = data?.explanation.judged_at ?? now.value
  const times = [...slots.map((slot) => slot.timestamp), judgedAt]
  const committed = [...slots.map((slot) => slot.offset), current.committed]
  const heads = [...slots.map((slot) => (slot.lag === null ? null : slot.offset + slot.lag)), current.head]
  return (
    <Card
      title={`Partition ${partition.partition}`}
      more={
        <button type="button" onClick={close} aria-label="Close this partition">
          ✕
        </button>
      }
    >
      <p>
        <a href={topicLink(cluster, partition.topic)}>
          <bdi>{partition.topic}</bdi>
        </a>{" "}
        {partition.partition} <Badge status={current.status} /> for <Since at={current.since} />.{" "}
        {capitalize(current.reason)}.
      </p>
      <dl class="facts">
        <Fact label="Lag">{current.current_lag === null ? "unknown" : exact(current.current_lag)}</Fact>
        <TimeLagFacts lag={current.time_lag} status={current.status} />
        <Fact label="Committed">{current.committed === null ? "never" : exact(current.committed)}</Fact>
        <Fact label="Head">{current.head === null ? "unknown" : exact(current.head)}</Fact>
        <Fact label="Head sampled">
          {current.head_at === null
            ? "never"
            : `${duration(Math.max(judgedAt - current.head_at, 0))} before the verdict`}
        </Fact>
        <Fact label="Log start">{current.log_start === null ? "unknown" : exact(current.log_start)}</Fact>
        <Fact label="Owner">
          <bdi>{current.owner || "–"}</bdi>
        </Fact>
        <Fact label="Client">
          <bdi>{current.client_id || "–"}</bdi>
        </Fact>
      </dl>
      {slots.length > 0 ? (
        <Chart
          label={`The last ${slots.length} commits, and the head at each`}
          times={times}
          lines={[
            { label: "head", colour: "mild", values: heads, hasPoints: true, dash: [6, 4] },
            { label: "committed", colour: "accent", values: committed, hasPoints: true },
          ]}
          fromZero={false}
          height={220}
        />
      ) : (
        <p class="empty">No commits yet.</p>
      )}
    </Card>
  )
}

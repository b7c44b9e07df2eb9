// One topic: its heads, their rates, and its consumers side by side.
import { pathTo } from "../api"
import { Badge, Card, Fact, GroupName, Since } from "../components/common"
import { exact, perSecond, short, timeLag } from "../format"
import { useAnswer } from "../polling"
import { toHash, route } from "../route"

const MAX_BARS = 200

export function TopicPage() {
  const [cluster, topic] = route.value.names as [string, string]
  const { data, error } = useAnswer(pathTo("/v3/kafka/{cluster}/topic/{topic}/detail", { cluster, topic }))
  if (error) return <p class="empty">{error.status === 404 ? "Topic not found." : error.message}</p>
  if (!data) return <p class="empty">Loading the topic…</p>
  const { partitions, consumers } = data.topic
  const messages = partitions.reduce((sum, { head, log_start }) => sum + ((head ?? 0) - (log_start ?? head ?? 0)), 0)
  const maxLag = Math.max(...consumers.flatMap((consumer) => consumer.lags.map(([, lag]) => lag ?? 0)), 1)
  return (
    <div class="topic">
      <header class="title">
        <div>
          <p class="mild">
            <a href={toHash("groups", [], { cluster })}>
              <bdi>{cluster}</bdi>
            </a>{" "}
            / topic
          </p>
          <h1>
            <bdi>{topic}</bdi>
          </h1>
        </div>
      </header>
      <dl class="facts">
        <Fact label="Messages per second">{perSecond(data.topic.rate)}</Fact>
        <Fact label="Partitions">{exact(partitions.length)}</Fact>
        <Fact label="Messages in the log">{short(messages)}</Fact>
        <Fact label="Consumers">{exact(consumers.length)}</Fact>
      </dl>
      <Card title="Consumers side by side" more={<a href={toHash("groups", [], { topic, cluster })}>as a list</a>}>
        {consumers.length === 0 ? (
          <p class="empty">No group consumes this topic.</p>
        ) : (
          <ul class="readers">
            {consumers.map((consumer) => (
              <li key={consumer.group}>
                <Badge status={consumer.status} />
                <span>
                  <GroupName cluster={cluster} group={consumer.group} />{" "}
                  <small class="mild">
                    for <Since at={consumer.since} />
                  </small>
                </span>
                <b class="is-number" title={`${exact(consumer.totallag)} messages`}>
                  {timeLag(consumer.seconds_behind)} <small class="mild">{short(consumer.totallag)}</small>
                </b>
                <Bars lags={consumer.lags.slice(0, MAX_BARS)} maxLag={maxLag} />
              </li>
            ))}
          </ul>
        )}
      </Card>
      <Card title="Heads">
        <div class="scroll" tabIndex={0} role="region" aria-label="Heads of the partitions">
          <table>
            <thead>
              <tr>
                <th scope="col">Partition</th>
                <th scope="col">Head</th>
                <th scope="col">Log start</th>
                <th scope="col">Messages per second</th>
              </tr>
            </thead>
            <tbody>
              {partitions.map((partition) => (
                <tr key={partition.partition}>
                  <td>{partition.partition}</td>
                  <td>{partition.head === null ? "unknown" : exact(partition.head)}</td>
                  <td>{partition.log_start === null ? "unknown" : exact(partition.log_start)}</td>
                  <td>{partition.rate === null ? "–" : partition.rate.toFixed(1)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      </Card>
    </div>
  )
}

/** One bar per partition; all groups of a topic have the same scale. */
function Bars({ lags, maxLag }: { lags: [number, number | null][]; maxLag: number }) {
  return (
    <svg class="bars" viewBox={`0 0 ${lags.length * 10} 24`} preserveAspectRatio="none" aria-hidden="true">
      {lags.map(([partition, lag], index) => {
        const height = lag ? Math.max((lag / maxLag) * 22, 1) : 0.5
        return (
          <rect key={partition} x={index * 10 + 1} y={24 - height} width="8" height={height}>
            <title>{`${partition}: ${lag === null ? "unknown" : exact(lag)}`}</title>
          </rect>
        )
      })}
    </svg>
  )
}

// One topic: its heads, how fast they move, and all who read it side by side.
import { type Topic, topicPath } from "../api"
import { useLive } from "../live"
import { Badge, Card, Fact, GroupName, Since } from "../parts/small"
import { hashOf, place } from "../route"
import { exact, rate, short } from "../words"

const CELLS_MOST = 200

export function TopicPage() {
  const [cluster, topic] = place.value.names as [string, string]
  const { data, refusal } = useLive<{ topic: Topic }>(topicPath(cluster, topic))
  if (refusal) return <p class="empty">{refusal.status === 404 ? "There is no such topic now." : refusal.message}</p>
  if (!data) return <p class="empty">Loading the topic.</p>
  const { partitions, consumers } = data.topic
  const messages = partitions.reduce((sum, one) => sum + ((one.head ?? 0) - (one.log_start ?? one.head ?? 0)), 0)
  const most = Math.max(...consumers.flatMap((one) => one.lags.map(([, lag]) => lag ?? 0)), 1)
  return (
    <div class="topic">
      <header class="title">
        <div>
          <p class="mild">
            <a href={hashOf("groups", [], { cluster })}>
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
        <Fact label="Messages a second">{data.topic.rate === null ? "–" : rate(data.topic.rate).replace("+", "")}</Fact>
        <Fact label="Partitions">{exact(partitions.length)}</Fact>
        <Fact label="Held in its logs">{short(messages)}</Fact>
        <Fact label="Consumers">{exact(consumers.length)}</Fact>
      </dl>
      <Card title="Consumers side by side" more={<a href={hashOf("groups", [], { topic, cluster })}>as a list</a>}>
        {consumers.length === 0 ? (
          <p class="empty">No group reads this topic.</p>
        ) : (
          <ul class="readers">
            {consumers.map((one) => (
              <li key={one.group}>
                <Badge status={one.status} />
                <span>
                  <GroupName cluster={cluster} group={one.group} />{" "}
                  <small class="mild">
                    for <Since at={one.since} />
                  </small>
                </span>
                <b class="is-number" title={exact(one.totallag)}>
                  {short(one.totallag)}
                </b>
                <Bars lags={one.lags.slice(0, CELLS_MOST)} most={most} />
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
                <th scope="col">Log begins</th>
                <th scope="col">Messages a second</th>
              </tr>
            </thead>
            <tbody>
              {partitions.map((one) => (
                <tr key={one.partition}>
                  <td>{one.partition}</td>
                  <td>{one.head === null ? "unknown" : exact(one.head)}</td>
                  <td>{one.log_start === null ? "unknown" : exact(one.log_start)}</td>
                  <td>{one.rate === null ? "–" : one.rate.toFixed(1)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      </Card>
    </div>
  )
}

/** A bar a partition, all groups of a topic to the same scale. */
function Bars({ lags, most }: { lags: [number, number | null][]; most: number }) {
  return (
    <svg class="bars" viewBox={`0 0 ${lags.length * 10} 24`} preserveAspectRatio="none" aria-hidden="true">
      {lags.map(([partition, lag], place) => {
        const tall = lag ? Math.max((lag / most) * 22, 1) : 0.5
        return (
          <rect key={partition} x={place * 10 + 1} y={24 - tall} width="8" height={tall}>
            <title>{`${partition}: ${lag === null ? "unknown" : exact(lag)}`}</title>
          </rect>
        )
      })}
    </svg>
  )
}

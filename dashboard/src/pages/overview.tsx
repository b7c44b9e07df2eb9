// The first page: is anything wrong, since when, and what has changed.
import { useMemo } from "preact/hooks"
import type { Cluster, ClusterMoments } from "../api"
import { now, overview, useLive } from "../live"
import { Chart } from "../parts/chart"
import { NotifyingNotice } from "../parts/notifying"
import { Badge, Card, Fact, GroupName, RANGES, RangePicker, rangeOf, Since } from "../parts/small"
import { groupLink, hashOf, place, wish } from "../route"
import { exact, rate, short, span } from "../words"

const STATUSES = ["ERR", "WARN", "OK"] as const

export function OverviewPage() {
  const seen = overview.value
  if (!seen) return <p class="empty">Waiting for the first answer.</p>
  return (
    <>
      <NotifyingNotice />
      <div class="overview">
        <Card title="Clusters">
          <ul class="clusters">
            {seen.clusters.map((cluster) => (
              <ClusterTile key={cluster.name} cluster={cluster} />
            ))}
          </ul>
        </Card>
        <Worst />
        <div class="stack">
          <TotalLag />
          <ChangedCard />
          <Health />
          <Sinks />
        </div>
      </div>
    </>
  )
}

function ClusterTile({ cluster }: { cluster: Cluster }) {
  const count = Object.values(cluster.groups).reduce((sum, one) => sum + (one ?? 0), 0)
  return (
    <li class="tile">
      <h3>
        <a href={hashOf("groups", [], { cluster: cluster.name })}>
          <bdi>{cluster.name}</bdi>
        </a>
      </h3>
      {cluster.unknown_since ? (
        <p class="trouble">
          <strong>Not known</strong> for <Since at={cluster.unknown_since} />:{" "}
          {cluster.error_message ?? (cluster.catching_up ? "catching up with its offsets topic" : "not judged")}
        </p>
      ) : null}
      <ul class="counts">
        {STATUSES.map((status) => (
          <li key={status} class={cluster.groups[status] ? "" : "is-none"}>
            <a href={hashOf("groups", [], { cluster: cluster.name, status })}>
              <Badge status={status} /> <b>{exact(cluster.groups[status] ?? 0)}</b>
            </a>
          </li>
        ))}
      </ul>
      <p class="mild">
        {exact(count)} groups · lag <b title={exact(cluster.totallag)}>{short(cluster.totallag)}</b>
      </p>
    </li>
  )
}

function Worst() {
  const worst = overview.value?.worst ?? []
  return (
    <Card title="Worst groups" more={<a href="#/groups">all groups</a>}>
      {worst.length === 0 ? (
        <p class="empty">Every group keeps up.</p>
      ) : (
        <ol class="worst">
          {worst.map((one) => (
            <li key={`${one.cluster}/${one.group}`}>
              <Badge status={one.status} />
              <div>
                <GroupName cluster={one.cluster} group={one.group} />{" "}
                <span class="mild">
                  <bdi>{one.cluster}</bdi> · for <Since at={one.since} />
                </span>
                <p>
                  <a href={groupLink(one.cluster, one.group, { partition: `${one.topic}/${one.partition}` })}>
                    <bdi>{one.topic}</bdi> {one.partition}
                  </a>{" "}
                  <Badge status={one.partition_status} /> {one.reason}
                </p>
              </div>
              <div class="is-number">
                <b title={exact(one.totallag)}>{short(one.totallag)}</b>
                <span class="mild">{rate(one.growth)}</span>
              </div>
            </li>
          ))}
        </ol>
      )}
    </Card>
  )
}

function TotalLag() {
  const range = rangeOf(place.value.wishes.get("range"))
  const { data } = useLive<{ history: ClusterMoments }>(`v3/history?hours=${RANGES[range]}`)
  const times = useMemo(() => summed(data?.history ?? null), [data])
  const to = now.value
  return (
    <Card title="Total lag" more={<RangePicker range={range} pick={(one) => wish({ range: one })} />}>
      <Chart
        label={`Total lag of all clusters over the last ${range}, now ${short(times.lag.at(-1) ?? null)}`}
        times={times.at}
        lines={[{ label: "lag", colour: "accent", values: times.lag, isFilled: true }]}
        from={Math.max(to - RANGES[range] * 3_600_000, times.at[0] ?? 0)}
        to={to}
        height={170}
      />
    </Card>
  )
}

/** The lag of all clusters together; clusters are written at the same moments. */
function summed(history: ClusterMoments | null): { at: number[]; lag: number[] } {
  const total = new Map<number, number>()
  history?.time_ms.forEach((at, i) => {
    total.set(at, (total.get(at) ?? 0) + history.totallag[i]!)
  })
  const at = [...total.keys()].sort((a, b) => a - b)
  return { at, lag: at.map((one) => total.get(one)!) }
}

function ChangedCard() {
  const changed = overview.value?.changed ?? []
  return (
    <Card title="Changed in the last hour">
      {changed.length === 0 ? (
        <p class="empty">Nothing.</p>
      ) : (
        <ul class="changed">
          {changed.map((one) => (
            <li key={`${one.cluster}/${one.group}`}>
              <span class="mild">
                <Since at={one.since} /> ago
              </span>
              <GroupName cluster={one.cluster} group={one.group} />
              <span>
                {one.before ? (
                  <>
                    <Badge status={one.before} /> <span aria-hidden="true">→</span>{" "}
                  </>
                ) : null}
                <Badge status={one.status} />
              </span>
            </li>
          ))}
        </ul>
      )}
    </Card>
  )
}

function Sinks() {
  const { sinks } = overview.value!
  if (sinks.length === 0) return null
  return (
    <Card title="Sinks">
      <dl class="facts">
        {sinks.map((one) => (
          <Fact key={one.name} label={`${one.name} (${one.class})`}>
            {one.state === "trouble" ? one.trouble : one.state}
            {one.waiting > 0 && `, ${exact(one.waiting)} ${one.waiting === 1 ? "interval waits" : "intervals wait"}`}
            {one.delivered && `, delivered ${span(now.value - one.delivered)} ago`}
          </Fact>
        ))}
      </dl>
    </Card>
  )
}

function Health() {
  const seen = overview.value!
  const rejects = Object.values(seen.rejects).reduce((sum, one) => sum + one, 0)
  return (
    <Card title="Pipeline">
      <dl class="facts">
        <Fact label="State">{seen.not_ready ?? "up to date"}</Fact>
        <Fact label="Last judged">{seen.judged_at ? `${span(now.value - seen.judged_at)} ago` : "never"}</Fact>
        <Fact label="Judges every">{seen.trigger_ms ? span(seen.trigger_ms) : "–"}</Fact>
        <Fact label="A cycle takes">{seen.cycle_ms ? `${(seen.cycle_ms / 1000).toFixed(2)} s` : "–"}</Fact>
        <Fact label="Commits to read">{exact(seen.backlog)}</Fact>
        <Fact label="Groups">{exact(seen.groups)}</Fact>
        <Fact label="Partitions">{exact(seen.partitions)}</Fact>
        <Fact label="Rejected records">{exact(rejects)}</Fact>
      </dl>
    </Card>
  )
}

// The first page: clusters, the most severe groups, changes, and the state of the pipeline.
import { useMemo } from "preact/hooks"
import { pathTo } from "../api"
import { Chart } from "../components/chart"
import { Badge, Card, Fact, GroupName, parseRange, RANGES, RangePicker, Since } from "../components/common"
import { NotificationProblems } from "../components/notifiers"
import { partitionKey } from "../components/partition-map"
import { Behind } from "../components/time-lag"
import { exact, GROUP_STATUSES, growth, short, duration } from "../format"
import { now, overview, useAnswer } from "../polling"
import { groupLink, toHash, route, setParams } from "../route"
import type { ClusterHistoryColumns, ClusterSummary } from "../schema"

export function OverviewPage() {
  const state = overview.value
  if (!state) return <p class="empty">Loading…</p>
  return (
    <>
      <NotificationProblems />
      <div class="overview">
        <Card title="Clusters">
          <ul class="clusters">
            {state.clusters.map((cluster) => (
              <ClusterTile key={cluster.name} cluster={cluster} />
            ))}
          </ul>
        </Card>
        <WorstGroups />
        <div class="stack">
          <TotalLag />
          <ChangedGroups />
          <Pipeline />
          <Sinks />
        </div>
      </div>
    </>
  )
}

const MAX_UNREAD = 3

function ClusterTile({ cluster }: { cluster: ClusterSummary }) {
  const count = Object.values(cluster.groups).reduce((sum, groups) => sum + (groups ?? 0), 0)
  return (
    <li class="tile">
      <h3>
        <a href={toHash("groups", [], { cluster: cluster.name })}>
          <bdi>{cluster.name}</bdi>
        </a>
      </h3>
      {cluster.unknown_since ? (
        <p class="trouble">
          <strong>Unknown</strong> for <Since at={cluster.unknown_since} />:{" "}
          {cluster.error_message ?? (cluster.catching_up ? "catching up with its offsets topic" : "not judged yet")}
        </p>
      ) : cluster.unknown_groups ? (
        <p class="trouble">
          <strong>
            {exact(cluster.unknown_groups)} {cluster.unknown_groups === 1 ? "group is" : "groups are"} unknown
          </strong>
          {(cluster.unread ?? []).slice(0, MAX_UNREAD).map((unread, i) => (
            <span key={`${unread.topic}/${unread.partition}`}>
              {i ? "; " : ": "}
              <bdi>{unread.topic}</bdi> {unread.partition} is read up to <Since at={unread.since} /> ago
              {unread.has_leader ? "" : ", it has no leader"}
              {unread.transactional_id != null ? (
                <>
                  , transaction <bdi>{unread.transactional_id}</bdi> holds it back
                </>
              ) : unread.held_by_transaction ? (
                ", an open transaction holds it back"
              ) : (
                ""
              )}
            </span>
          ))}
        </p>
      ) : null}
      {!cluster.unknown_since && cluster.missing_right && <p class="trouble">{cluster.missing_right}</p>}
      {!cluster.unknown_since && cluster.absent_offsets_topics?.length ? (
        <p class="mild">
          Its offsets topic <bdi>{cluster.absent_offsets_topics.join(", ")}</bdi> does not exist: waiting for the first
          commit
        </p>
      ) : null}
      {(cluster.zookeeper ?? [])
        .filter((section) => section.error_message)
        .map((section) => (
          <p class="trouble" key={section.name}>
            Groups of <bdi>{section.name}</bdi>: <bdi>{section.error_message}</bdi>
          </p>
        ))}
      <ul class="counts">
        {GROUP_STATUSES.map((status) => (
          <li key={status} class={cluster.groups[status] ? "" : "is-none"}>
            <a href={toHash("groups", [], { cluster: cluster.name, status })}>
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

function WorstGroups() {
  const worst = overview.value?.worst ?? []
  return (
    <Card title="Most severe groups" more={<a href="#/groups">all groups</a>}>
      {worst.length === 0 ? (
        <p class="empty">All groups are OK.</p>
      ) : (
        <ol class="worst">
          {worst.map((group) => (
            <li key={`${group.cluster}/${group.group}`}>
              <Badge status={group.status} unknownSince={group.unknown_since} />
              <div>
                <GroupName cluster={group.cluster} group={group.group} />{" "}
                <span class="mild">
                  <bdi>{group.cluster}</bdi> · for <Since at={group.since} />
                </span>
                <p>
                  <a href={groupLink(group.cluster, group.group, { partition: partitionKey(group) })}>
                    <bdi>{group.topic}</bdi> {group.partition}
                  </a>{" "}
                  <Badge status={group.partition_status} /> {group.reason}
                </p>
              </div>
              <div class="is-number">
                <b>
                  <Behind lag={group.time_lag} />
                </b>
                <span class="mild" title={`Lag of ${exact(group.totallag)} messages`}>
                  {short(group.totallag)}, {growth(group.growth)}
                </span>
              </div>
            </li>
          ))}
        </ol>
      )}
    </Card>
  )
}

function TotalLag() {
  const range = parseRange(route.value.params.get("range"))
  const { data } = useAnswer(pathTo("/v3/history", {}, { hours: RANGES[range] }))
  const { times, lags } = useMemo(() => totalLag(data?.history ?? null), [data])
  const to = now.value
  return (
    <Card title="Total lag" more={<RangePicker range={range} pick={(option) => setParams({ range: option })} />}>
      <Chart
        label={`Total lag of all clusters over the last ${range}, now ${short(lags.at(-1) ?? null)}`}
        times={times}
        lines={[{ label: "lag", colour: "accent", values: lags, isFilled: true }]}
        from={Math.max(to - RANGES[range] * 3_600_000, times[0] ?? 0)}
        to={to}
        height={170}
      />
    </Card>
  )
}

/** The lag of all clusters together, whose points are at the same times. */
function totalLag(history: ClusterHistoryColumns | null): { times: number[]; lags: number[] } {
  const total = new Map<number, number>()
  history?.time_ms.forEach((time, i) => {
    total.set(time, (total.get(time) ?? 0) + history.totallag[i]!)
  })
  const times = [...total.keys()].sort((a, b) => a - b)
  return { times, lags: times.map((time) => total.get(time)!) }
}

function ChangedGroups() {
  const changed = overview.value?.changed ?? []
  return (
    <Card title="Changed in the last hour">
      {changed.length === 0 ? (
        <p class="empty">No changes.</p>
      ) : (
        <ul class="changed">
          {changed.map((group) => (
            <li key={`${group.cluster}/${group.group}`}>
              <span class="mild">
                <Since at={group.since} /> ago
              </span>
              <GroupName cluster={group.cluster} group={group.group} />
              <span>
                {group.before ? (
                  <>
                    <Badge status={group.before} /> <span aria-hidden="true">→</span>{" "}
                  </>
                ) : null}
                <Badge status={group.status} />
              </span>
            </li>
          ))}
        </ul>
      )}
    </Card>
  )
}

const SINK_TEXT = { starting: "starting", well: "up to date", behind: "behind" }

function Sinks() {
  const { sinks } = overview.value!
  if (sinks.length === 0) return null
  return (
    <Card title="Sinks">
      <dl class="facts">
        {sinks.map((sink) => (
          <Fact key={sink.name} label={`${sink.name} (${sink.class})`}>
            {sink.state === "trouble" ? sink.trouble : SINK_TEXT[sink.state]}
            {sink.waiting > 0 && `, ${exact(sink.waiting)} ${sink.waiting === 1 ? "interval" : "intervals"} waiting`}
            {sink.delivered && `, delivered ${duration(now.value - sink.delivered)} ago`}
          </Fact>
        ))}
      </dl>
    </Card>
  )
}

function ConfigurationProblems() {
  const configuration = overview.value?.configuration
  if (!configuration) return null
  return (
    <>
      {configuration.mistakes.length > 0 && (
        <p class="trouble">
          <strong>The last reload was refused</strong>, so nothing has changed: {configuration.mistakes.join("; ")}
        </p>
      )}
      {configuration.needs_restart.map((key) => (
        <p key={key} class="mild">
          {key}
        </p>
      ))}
    </>
  )
}

function Pipeline() {
  const state = overview.value!
  const rejects = Object.values(state.rejects).reduce((sum, count) => sum + count, 0)
  return (
    <Card title="Pipeline">
      <dl class="facts">
        <Fact label="State">{state.not_ready ?? "up to date"}</Fact>
        <Fact label="Last judged">{state.judged_at ? `${duration(now.value - state.judged_at)} ago` : "never"}</Fact>
        <Fact label="Trigger interval">{state.trigger_ms ? duration(state.trigger_ms) : "–"}</Fact>
        <Fact label="Cycle time">{state.cycle_ms ? `${(state.cycle_ms / 1000).toFixed(2)} s` : "–"}</Fact>
        <Fact label="Backlog">{exact(state.backlog)}</Fact>
        <Fact label="Groups">{exact(state.groups)}</Fact>
        <Fact label="Partitions">{exact(state.partitions)}</Fact>
        <Fact label="Rejected records">{exact(rejects)}</Fact>
        {state.configuration && (
          <Fact label="Configuration">read {duration(now.value - state.configuration.applied_at)} ago</Fact>
        )}
      </dl>
      <ConfigurationProblems />
    </Card>
  )
}

// One group: its status and the reason, its partitions, history and incidents.
import { useMemo, useState } from "preact/hooks"
import { pathTo } from "../api"
import { Badge, Card, Fact, Since } from "../components/common"
import { GroupHistory } from "../components/group-history"
import { IncidentState } from "../components/incident"
import { PartitionMap, partitionKey } from "../components/partition-map"
import { PartitionTable, worstFirst } from "../components/partition-table"
import { PartitionWindow } from "../components/partition-window"
import { TimeLagFacts } from "../components/time-lag"
import { capitalize, dateTime, exact, STATUS_TEXT, short } from "../format"
import { useAnswer } from "../polling"
import { route, silenceLink, setParams } from "../route"
import type { GroupExplanation } from "../schema"
import { GroupIncidents } from "./incidents"

const COMMITS_TO: Record<string, string> = { kafka: "Kafka", kafka_zk: "ZooKeeper", storm_zk: "ZooKeeper, by Storm" }

export function GroupPage() {
  const [cluster, group] = route.value.names as [string, string]
  const { data, error } = useAnswer(
    pathTo("/v3/kafka/{cluster}/consumer/{consumer}/explain", { cluster, consumer: group }),
  )
  if (error)
    return (
      <div class="empty">
        <h1>
          <bdi>{group}</bdi>
        </h1>
        <p>
          {error.status === 404
            ? `Group not found in ${cluster}: it may have been deleted, or has not committed for a long time.`
            : error.message}
        </p>
        <p>
          <a href="#/groups">All groups</a>
        </p>
      </div>
    )
  if (!data) return <p class="empty">Loading the group…</p>
  return <Group explanation={data.explanation} />
}

function Group({ explanation }: { explanation: GroupExplanation }) {
  const { cluster, group, partitions } = explanation
  const { params } = route.value
  const incidents = useAnswer(pathTo("/v3/incidents", {}, { cluster, group, limit: 10 })).data?.incidents ?? []
  const current = incidents.find((incident) => !incident.closed)
  const worst = useMemo(() => [...partitions].sort(worstFirst)[0], [partitions])
  const selectedKey = params.get("partition")
  const selected = partitions.find((partition) => partitionKey(partition) === selectedKey) ?? null
  const select = (key: string) => setParams({ partition: key === selectedKey ? "" : key })
  const bad = partitions.filter((partition) => partition.status !== "OK")
  return (
    <div class="group">
      <header class="title">
        <div>
          <p class="mild">
            <a href="#/groups">Groups</a> /{" "}
            <a href={`#/groups?cluster=${encodeURIComponent(cluster)}`}>
              <bdi>{cluster}</bdi>
            </a>
          </p>
          <h1>
            <bdi>{group}</bdi> <Badge status={explanation.status} unknownSince={explanation.unknown_since} />
          </h1>
          <p class="verdict">
            {capitalize(STATUS_TEXT[explanation.status])}, since <b>{dateTime(explanation.since)}</b>, for{" "}
            <Since at={explanation.since} />.{" "}
            {worst && worst.status !== "OK" && (
              <>
                Most severe partition: <bdi>{worst.topic}</bdi> {worst.partition}: {worst.reason}.
              </>
            )}
          </p>
          {explanation.unknown_since && (
            <p class="trouble">
              The group could not be judged for <Since at={explanation.unknown_since} />: this is its last known state.
            </p>
          )}
          {current && <IncidentState incident={current} />}
        </div>
        <div class="share">
          <CopyLink />
          <a href={silenceLink(cluster, group)}>Silence…</a>
        </div>
      </header>
      <dl class="facts">
        <Fact label="Lag">
          <b title={exact(explanation.totallag)}>{short(explanation.totallag)}</b>
        </Fact>
        <TimeLagFacts lag={explanation.time_lag} status={explanation.status} />
        <Fact label="Partitions">
          {exact(partitions.length)}
          {bad.length ? `, ${exact(bad.length)} not OK` : ""}
        </Fact>
        <Fact label="Members">
          {exact(new Set(partitions.map((partition) => partition.client_id + partition.owner).filter(Boolean)).size)}
        </Fact>
        <Fact label="Commits to">{explanation.commits_to.map((to) => COMMITS_TO[to] ?? to).join(", ") || "–"}</Fact>
      </dl>
      <Card title="Partitions at a glance">
        <PartitionMap partitions={partitions} selected={selectedKey} select={select} />
        <p class="legend mild">
          One cell per partition, filled by its lag. <Badge status="WARN" /> <Badge status="STOP" />{" "}
          <Badge status="STALL" /> <Badge status="REWIND" />
        </p>
      </Card>
      {selected && (
        <PartitionWindow
          cluster={cluster}
          group={group}
          partition={selected}
          close={() => setParams({ partition: "" })}
        />
      )}
      <GroupHistory explanation={explanation} />
      <GroupIncidents cluster={cluster} group={group} incidents={incidents} />
      <PartitionTable cluster={cluster} partitions={partitions} selected={selectedKey} select={select} />
    </div>
  )
}

function CopyLink() {
  const [message, setMessage] = useState("")
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(location.href)
      setMessage("Copied")
    } catch {
      setMessage("Copy the address of this page")
    }
    setTimeout(() => setMessage(""), 3000)
  }
  return (
    <>
      <button type="button" onClick={copy}>
        Copy link to this view
      </button>
      <output>{message}</output>
    </>
  )
}

// Incidents: what was wrong, from when until when, and how bad it got.
import type { Incident } from "../api"
import { useLive } from "../live"
import { Badge, Card, GroupName, Since } from "../parts/small"
import { groupLink, hashOf, place, wish } from "../route"
import { clock, exact, span } from "../words"

const MOST = 200
const STATES = ["", "open", "closed"] as const

export function IncidentsPage() {
  const { wishes } = place.value
  const state = wishes.get("state") ?? ""
  const query = new URLSearchParams({ limit: `${MOST}` })
  for (const name of ["state", "cluster", "group"]) {
    const wanted = wishes.get(name)
    if (wanted) query.set(name, wanted)
  }
  const { data } = useLive<{ incidents: Incident[] }>(`v3/incidents?${query}`)
  const title = wishes.get("group") ? `Incidents of ${wishes.get("group")}` : "Incidents"
  return (
    <Card
      title={title}
      more={
        <fieldset class="ranges">
          <legend class="hidden">Which incidents</legend>
          {STATES.map((one) => (
            <button type="button" key={one} aria-pressed={one === state} onClick={() => wish({ state: one })}>
              {one || "all"}
            </button>
          ))}
        </fieldset>
      }
    >
      {data ? <Incidents incidents={data.incidents} /> : <p class="empty">Loading the incidents.</p>}
    </Card>
  )
}

export function Incidents({ incidents }: { incidents: Incident[] }) {
  if (incidents.length === 0) return <p class="empty">None.</p>
  return (
    <ol class="incidents">
      {incidents.map((one) => (
        <li key={one.id} class={one.closed ? "is-closed" : ""}>
          <span>
            <Badge status={one.worst} />
            <span class="mild">{one.closed ? "closed" : "open"}</span>
          </span>
          <div>
            <GroupName cluster={one.cluster} group={one.group} />{" "}
            <span class="mild">
              <bdi>{one.cluster}</bdi>
            </span>
            <p>
              {clock(one.opened)} {one.closed ? `to ${clock(one.closed)}` : ""}:{" "}
              {one.changes.map((change) => change.status).join(" → ")}
            </p>
            <p class="mild">{partitionsOf(one)}</p>
          </div>
          <span class="is-number">{one.closed ? span(one.closed - one.opened) : <Since at={one.opened} />}</span>
        </li>
      ))}
    </ol>
  )
}

function partitionsOf(incident: Incident) {
  const shown = incident.partitions.slice(0, 3)
  return (
    <>
      {exact(incident.partition_count)} {incident.partition_count === 1 ? "partition" : "partitions"}:{" "}
      {shown.map((one, place) => (
        <span key={`${one.topic}/${one.partition}`}>
          {place > 0 && ", "}
          <a href={groupLink(incident.cluster, incident.group, { partition: `${one.topic}/${one.partition}` })}>
            <bdi>{one.topic}</bdi> {one.partition}
          </a>{" "}
          {one.status}
        </span>
      ))}
      {incident.partition_count > shown.length && ", …"}
    </>
  )
}

/** A group's own incidents, for its page. */
export function GroupIncidents({ cluster, group }: { cluster: string; group: string }) {
  const query = new URLSearchParams({ cluster, group, limit: "10" })
  const { data } = useLive<{ incidents: Incident[] }>(`v3/incidents?${query}`)
  if (!data || data.incidents.length === 0) return null
  return (
    <Card title="Incidents" more={<a href={hashOf("incidents", [], { cluster, group })}>all of this group</a>}>
      <Incidents incidents={data.incidents} />
    </Card>
  )
}

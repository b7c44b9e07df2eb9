// Incidents: what was wrong, from when until when, and how bad it got.
import type { Incident } from "../api"
import { useLive } from "../live"
import { IncidentActs, IncidentState, PartitionsOf } from "../parts/incident"
import { Notifiers } from "../parts/notifying"
import { Silences } from "../parts/silences"
import { Badge, Card, GroupName, Since } from "../parts/small"
import { hashOf, incidentLink, place, wish } from "../route"
import { clock, span } from "../words"

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
    <div class="beside">
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
      <div class="stack">
        <Silences />
        <Notifiers />
      </div>
    </div>
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
            <p class="mild">
              <PartitionsOf incident={one} most={3} />
            </p>
            <IncidentState incident={one} />
            <IncidentActs incident={one}>
              <a href={incidentLink(one.id)} aria-label={`Who was told of ${one.group}`}>
                Who was told
              </a>
            </IncidentActs>
          </div>
          <span class="is-number">{one.closed ? span(one.closed - one.opened) : <Since at={one.opened} />}</span>
        </li>
      ))}
    </ol>
  )
}

/** A group's own incidents, for its page. */
export function GroupIncidents({
  cluster,
  group,
  incidents,
}: {
  cluster: string
  group: string
  incidents: Incident[]
}) {
  if (incidents.length === 0) return null
  return (
    <Card title="Incidents" more={<a href={hashOf("incidents", [], { cluster, group })}>all of this group</a>}>
      <Incidents incidents={incidents} />
    </Card>
  )
}

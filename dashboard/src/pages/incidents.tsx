// The incidents, and beside them silences and notifiers.
import { pathTo } from "../api"
import { Badge, Card, GroupName, Since } from "../components/common"
import { IncidentActions, IncidentPartitions, IncidentState } from "../components/incident"
import { Notifiers } from "../components/notifiers"
import { Silences } from "../components/silences"
import { dateTime, duration } from "../format"
import { useAnswer } from "../polling"
import { toHash, incidentLink, route, setParams } from "../route"
import type { IncidentSummary } from "../schema"

const MAX_INCIDENTS = 200
const STATES = ["", "open", "closed"] as const

export function IncidentsPage() {
  const { params } = route.value
  const state = params.get("state") ?? ""
  const query: Record<string, string | number> = { limit: MAX_INCIDENTS }
  for (const name of ["state", "cluster", "group"]) {
    const value = params.get(name)
    if (value) query[name] = value
  }
  const { data } = useAnswer(pathTo("/v3/incidents", {}, query))
  const title = params.get("group") ? `Incidents of ${params.get("group")}` : "Incidents"
  return (
    <div class="beside">
      <Card
        title={title}
        more={
          <fieldset class="ranges">
            <legend class="hidden">Which incidents</legend>
            {STATES.map((option) => (
              <button
                type="button"
                key={option}
                aria-pressed={option === state}
                onClick={() => setParams({ state: option })}
              >
                {option || "all"}
              </button>
            ))}
          </fieldset>
        }
      >
        {data ? <IncidentList incidents={data.incidents} /> : <p class="empty">Loading incidents…</p>}
      </Card>
      <div class="stack">
        <Silences />
        <Notifiers />
      </div>
    </div>
  )
}

function IncidentList({ incidents }: { incidents: IncidentSummary[] }) {
  if (incidents.length === 0) return <p class="empty">No incidents.</p>
  return (
    <ol class="incidents">
      {incidents.map((incident) => (
        <li key={incident.id} class={incident.closed ? "is-closed" : ""}>
          <span>
            <Badge status={incident.worst} />
            <span class="mild">{incident.closed ? "closed" : "open"}</span>
          </span>
          <div>
            <GroupName cluster={incident.cluster} group={incident.group} />{" "}
            <span class="mild">
              <bdi>{incident.cluster}</bdi>
            </span>
            <p>
              {dateTime(incident.opened)} {incident.closed ? `to ${dateTime(incident.closed)}` : ""}:{" "}
              {incident.changes.map((change) => change.status).join(" → ")}
            </p>
            <p class="mild">
              <IncidentPartitions incident={incident} limit={3} />
            </p>
            <IncidentState incident={incident} />
            <IncidentActions incident={incident}>
              <a href={incidentLink(incident.id)} aria-label={`Notifications about ${incident.group}`}>
                Notifications
              </a>
            </IncidentActions>
          </div>
          <span class="is-number">
            {incident.closed ? duration(incident.closed - incident.opened) : <Since at={incident.opened} />}
          </span>
        </li>
      ))}
    </ol>
  )
}

/** The incidents of incident group. */
export function GroupIncidents({
  cluster,
  group,
  incidents,
}: {
  cluster: string
  group: string
  incidents: IncidentSummary[]
}) {
  if (incidents.length === 0) return null
  return (
    <Card title="Incidents" more={<a href={toHash("incidents", [], { cluster, group })}>all of this group</a>}>
      <IncidentList incidents={incidents} />
    </Card>
  )
}

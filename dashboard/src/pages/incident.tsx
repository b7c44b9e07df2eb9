// One incident: its course, who has it in hand, and who was told what.
import { incidentPath, type Message, type ToldIncident } from "../api"
import { useLive } from "../live"
import { IncidentActs, IncidentState, PartitionsOf } from "../parts/incident"
import { Badge, Card, GroupName, Since } from "../parts/small"
import { place } from "../route"
import { clock, exact, span } from "../words"

export function IncidentPage() {
  const [id] = place.value.names as [string]
  const { data, refusal } = useLive<{ incident: ToldIncident }>(incidentPath(id))
  if (refusal)
    return (
      <div class="empty">
        <p>{refusal.status === 404 ? "There is no such incident, or it ended long ago." : refusal.message}</p>
        <p>
          <a href="#/incidents">All incidents</a>
        </p>
      </div>
    )
  if (!data) return <p class="empty">Loading the incident.</p>
  const { incident } = data
  return (
    <div class="group">
      <header class="title">
        <div>
          <p class="mild">
            <a href="#/incidents">Incidents</a> / <bdi>{incident.cluster}</bdi>
          </p>
          <h1>
            <GroupName cluster={incident.cluster} group={incident.group} /> <Badge status={incident.status} />
          </h1>
          <p class="verdict">
            {incident.closed ? (
              <>
                Closed: from <b>{clock(incident.opened)}</b> to <b>{clock(incident.closed)}</b>, for{" "}
                {span(incident.closed - incident.opened)}.
              </>
            ) : (
              <>
                Open since <b>{clock(incident.opened)}</b>, for <Since at={incident.opened} />.
              </>
            )}
          </p>
          <IncidentState incident={incident} />
          <IncidentActs incident={incident} />
        </div>
      </header>
      <Card title="Who was told">
        <Messages incident={incident} />
      </Card>
      <Card title="Its course">
        <ol class="course">
          {incident.changes.map((change) => (
            <li key={change.time}>
              <span class="mild">{clock(change.time)}</span>
              <span>
                <Badge status={change.status} />
              </span>
            </li>
          ))}
        </ol>
        <p>
          <PartitionsOf incident={incident} most={20} />
        </p>
      </Card>
    </div>
  )
}

function Messages({ incident }: { incident: ToldIncident }) {
  const { messages, message_count } = incident
  if (messages.length === 0) return <p class="empty">Nobody, so far.</p>
  return (
    <>
      <div class="scroll told" tabIndex={0} role="region" aria-label="Messages about this incident">
        <table>
          <thead>
            <tr>
              <th scope="col">Notifier</th>
              <th scope="col">Event</th>
              <th scope="col">Due</th>
              <th scope="col">Sent</th>
            </tr>
          </thead>
          <tbody>
            {messages.map((one, place) => (
              <tr key={place}>
                <td>
                  <bdi>{one.notifier}</bdi>
                  {one.channel && (
                    <small class="mild">
                      <bdi>{one.channel}</bdi>
                    </small>
                  )}
                </td>
                <td>
                  {one.event}
                  <small class="mild">{one.why}</small>
                </td>
                <td>{clock(one.due)}</td>
                <td>
                  <Fate message={one} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {message_count > messages.length && (
        <p class="mild">
          The last {exact(messages.length)} of {exact(message_count)}.
        </p>
      )}
    </>
  )
}

function Fate({ message }: { message: Message }) {
  if (message.sent) return <>{clock(message.sent)}</>
  const tries = message.attempts === 1 ? "1 attempt" : `${exact(message.attempts)} attempts`
  return (
    <>
      <strong>{message.given_up ? `Given up ${clock(message.given_up)}` : "Not yet"}</strong>
      {message.attempts > 0 && `, ${tries}`}
      {message.trouble && (
        <small class="mild">
          <bdi>{message.trouble}</bdi>
        </small>
      )}
    </>
  )
}

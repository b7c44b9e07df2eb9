// One incident: its timeline, its acknowledgement, and its notifications.
import { pathTo } from "../api"
import { Badge, Card, GroupName, Since } from "../components/common"
import { IncidentActions, IncidentPartitions, IncidentState } from "../components/incident"
import { dateTime, exact, duration } from "../format"
import { useAnswer } from "../polling"
import { route } from "../route"
import type { IncidentDetail, IncidentMessage } from "../schema"

export function IncidentPage() {
  const [id] = route.value.names as [string]
  const { data, error } = useAnswer(pathTo("/v3/incidents/{incident}", { incident: id }))
  if (error)
    return (
      <div class="empty">
        <p>{error.status === 404 ? "Incident not found: it may have been closed long ago." : error.message}</p>
        <p>
          <a href="#/incidents">All incidents</a>
        </p>
      </div>
    )
  if (!data) return <p class="empty">Loading the incident…</p>
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
                Closed: from <b>{dateTime(incident.opened)}</b> to <b>{dateTime(incident.closed)}</b>, for{" "}
                {duration(incident.closed - incident.opened)}.
              </>
            ) : (
              <>
                Open since <b>{dateTime(incident.opened)}</b>, for <Since at={incident.opened} />.
              </>
            )}
          </p>
          <IncidentState incident={incident} />
          <IncidentActions incident={incident} />
        </div>
      </header>
      <Card title="Notifications">
        <Messages incident={incident} />
      </Card>
      <Card title="Timeline">
        <ol class="course">
          {incident.changes.map((change) => (
            <li key={change.time}>
              <span class="mild">{dateTime(change.time)}</span>
              <span>
                <Badge status={change.status} />
              </span>
            </li>
          ))}
        </ol>
        <p>
          <IncidentPartitions incident={incident} limit={20} />
        </p>
      </Card>
    </div>
  )
}

function Messages({ incident }: { incident: IncidentDetail }) {
  const { messages, message_count } = incident
  if (messages.length === 0) return <p class="empty">No notifications yet.</p>
  return (
    <>
      <div class="scroll told" tabIndex={0} role="region" aria-label="Notifications about this incident">
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
            {messages.map((message, index) => (
              <tr key={index}>
                <td>
                  <bdi>{message.notifier}</bdi>
                  {message.channel && (
                    <small class="mild">
                      <bdi>{message.channel}</bdi>
                    </small>
                  )}
                </td>
                <td>
                  {message.event}
                  <small class="mild">{message.why}</small>
                </td>
                <td>{dateTime(message.due)}</td>
                <td>
                  <DeliveryState message={message} />
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

function DeliveryState({ message }: { message: IncidentMessage }) {
  if (message.sent) return <>{dateTime(message.sent)}</>
  const attempts = message.attempts === 1 ? "1 attempt" : `${exact(message.attempts)} attempts`
  return (
    <>
      <strong>{message.given_up ? `Given up ${dateTime(message.given_up)}` : "Not yet"}</strong>
      {message.attempts > 0 && `, ${attempts}`}
      {message.trouble && (
        <small class="mild">
          <bdi>{message.trouble}</bdi>
        </small>
      )}
    </>
  )
}

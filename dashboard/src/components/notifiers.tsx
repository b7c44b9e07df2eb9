// Whether this Warren sends notifications, and the state of each notifier.
import { pathTo } from "../api"
import { exact } from "../format"
import { overview, useAnswer } from "../polling"
import type { LeadershipSummary } from "../schema"
import { Card, Since } from "./common"

const STATE_TEXT: Record<LeadershipSummary["state"], string> = {
  alone: "This Warren sends notifications",
  active: "This Warren sends notifications, others are on standby",
  standby: "This Warren is on standby, another Warren sends notifications",
  away: "This Warren sends no notifications",
  stopped: "This Warren has stopped sending notifications",
  unknown: "It is not known yet whether this Warren sends notifications",
}

/** One line per problem that keeps notifications from being sent. */
export function NotificationProblems() {
  const { data } = useAnswer(pathTo("/v3/notifiers"))
  const leadership = overview.value?.notifying
  const stuck = data?.notifiers.filter((notifier) => notifier.waiting > 0 && notifier.trouble) ?? []
  const isInactive = leadership?.state === "standby" || leadership?.state === "away" || leadership?.state === "stopped"
  if (!isInactive && stuck.length === 0) return null
  return (
    <section class="notices" aria-label="Notification problems">
      {isInactive && (
        <p class={leadership.state === "standby" ? "" : "is-away"}>
          <strong>{STATE_TEXT[leadership.state]}</strong>
          {leadership.why && `: ${leadership.why}`}
        </p>
      )}
      {stuck.map((notifier) => (
        <p key={notifier.name} class="is-away">
          <strong>
            {exact(notifier.waiting)} {notifier.waiting === 1 ? "notification is" : "notifications are"} waiting for{" "}
            <bdi>{notifier.name}</bdi>:
          </strong>{" "}
          <bdi>{notifier.trouble}</bdi>
        </p>
      ))}
    </section>
  )
}

export function Notifiers() {
  const { data } = useAnswer(pathTo("/v3/notifiers"))
  if (!data) return null
  return (
    <Card title="Notifiers">
      {data.notifiers.length === 0 ? (
        <p class="empty">No notifier is configured: nobody is notified.</p>
      ) : (
        <>
          <p>
            {STATE_TEXT[data.duty.state]}
            {data.duty.why && `: ${data.duty.why}`}
          </p>
          <ul class="silences">
            {data.notifiers.map((notifier) => (
              <li key={notifier.name}>
                <div>
                  <b>
                    <bdi>{notifier.name}</bdi>
                  </b>{" "}
                  <span class="mild">{notifier.class}</span>
                  <p class="mild">
                    {exact(notifier.sent)} sent
                    {notifier.last_sent ? (
                      <>
                        , the last <Since at={notifier.last_sent} /> ago
                      </>
                    ) : null}
                    , {exact(notifier.waiting)} waiting, {exact(notifier.given_up)} given up
                  </p>
                  {notifier.waiting > 0 && notifier.trouble && (
                    <p class="trouble">
                      <bdi>{notifier.trouble}</bdi>
                    </p>
                  )}
                </div>
              </li>
            ))}
          </ul>
        </>
      )}
    </Card>
  )
}

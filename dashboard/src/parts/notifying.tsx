// Whether this Warren notifies at all, and how each notifier fares.
import type { Duty, Notifiers as Answer } from "../api"
import { overview, useLive } from "../live"
import { exact } from "../words"
import { Card, Since } from "./small"

const WORDS: Record<Duty, string> = {
  alone: "This Warren notifies",
  active: "This Warren notifies, others stand by",
  standby: "This Warren does not notify, another Warren does",
  away: "This Warren does not notify",
  stopped: "This Warren has stopped to notify",
  unknown: "Whether this Warren notifies is not known yet",
}

/** A line for each thing that keeps people from being told. */
export function NotifyingNotice() {
  const { data } = useLive<Answer>("v3/notifiers")
  const duty = overview.value?.notifying
  const stuck = data?.notifiers.filter((one) => one.waiting > 0 && one.trouble) ?? []
  const isQuiet = duty?.state === "standby" || duty?.state === "away" || duty?.state === "stopped"
  if (!isQuiet && stuck.length === 0) return null
  return (
    <section class="notices" aria-label="Notifying">
      {isQuiet && (
        <p class={duty.state === "standby" ? "" : "is-away"}>
          <strong>{WORDS[duty.state]}</strong>
          {duty.why && `: ${duty.why}`}
        </p>
      )}
      {stuck.map((one) => (
        <p key={one.name} class="is-away">
          <strong>
            {exact(one.waiting)} {one.waiting === 1 ? "message waits" : "messages wait"} for <bdi>{one.name}</bdi>:
          </strong>{" "}
          <bdi>{one.trouble}</bdi>
        </p>
      ))}
    </section>
  )
}

export function Notifiers() {
  const { data } = useLive<Answer>("v3/notifiers")
  if (!data) return null
  return (
    <Card title="Notifiers">
      {data.notifiers.length === 0 ? (
        <p class="empty">No notifier is configured: nobody is told of anything.</p>
      ) : (
        <>
          <p>
            {WORDS[data.duty.state]}
            {data.duty.why && `: ${data.duty.why}`}
          </p>
          <ul class="silences">
            {data.notifiers.map((one) => (
              <li key={one.name}>
                <div>
                  <b>
                    <bdi>{one.name}</bdi>
                  </b>{" "}
                  <span class="mild">{one.class}</span>
                  <p class="mild">
                    {exact(one.sent)} sent
                    {one.last_sent ? (
                      <>
                        , the last <Since at={one.last_sent} /> ago
                      </>
                    ) : null}
                    , {exact(one.waiting)} waiting, {exact(one.given_up)} given up
                  </p>
                  {one.waiting > 0 && one.trouble && (
                    <p class="trouble">
                      <bdi>{one.trouble}</bdi>
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

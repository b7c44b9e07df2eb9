// The silences, and the form that makes silence.
import { useEffect, useRef, useState } from "preact/hooks"
import { author, useAction } from "../actions"
import { pathTo, silencePath } from "../api"
import { dateTime, duration } from "../format"
import { now, useAnswer } from "../polling"
import { route, setParams } from "../route"
import type { SilenceSummary } from "../schema"
import { Card } from "./common"
import { ErrorText, Field, NameField } from "./field"

const HOURS = { "1": "1 hour", "4": "4 hours", "24": "1 day", "168": "1 week" }

export function Silences() {
  const { data } = useAnswer(pathTo("/v3/silences"))
  const { error, run } = useAction()
  const list = useRef<HTMLDivElement>(null)
  const end = async (silence: SilenceSummary) => {
    // The clicked button is gone: the keyboard focus stays nearby.
    if (await run("DELETE", silencePath(silence.id), `Silence of ${silence.group} ended`)) list.current?.focus()
  }
  return (
    <Card title="Silences">
      <div ref={list} tabIndex={-1}>
        {data && data.silences.length > 0 ? (
          <ul class="silences">
            {data.silences.map((silence) => (
              <li key={silence.id}>
                <div>
                  <b>
                    <bdi>{silence.group}</bdi>
                  </b>{" "}
                  <span class="mild">
                    in <bdi>{silence.cluster}</bdi>
                  </span>
                  <p>
                    <bdi>{silence.why}</bdi>
                  </p>
                  <p class="mild">
                    <bdi>{silence.by}</bdi>, until{" "}
                    <time dateTime={new Date(silence.until).toISOString()}>{dateTime(silence.until)}</time>,{" "}
                    {duration(silence.until - now.value)} left
                  </p>
                </div>
                <button type="button" onClick={() => end(silence)} aria-label={`End the silence of ${silence.group}`}>
                  End
                </button>
              </li>
            ))}
          </ul>
        ) : (
          <p class="empty">{data ? "No silences." : "Loading silences…"}</p>
        )}
      </div>
      <ErrorText text={error} />
      <SilenceForm />
    </Card>
  )
}

function SilenceForm() {
  const { params } = route.value
  const [linkedCluster, linkedGroup] = [params.get("for_cluster"), params.get("for_group")]
  const [cluster, setCluster] = useState("*")
  // Empty at first, so that nobody silences all groups by accident.
  const [group, setGroup] = useState("")
  const [hours, setHours] = useState("4")
  const [why, setWhy] = useState("")
  const { error, run } = useAction()
  const reason = useRef<HTMLInputElement>(null)
  useEffect(() => {
    if (linkedGroup === null) return
    setCluster(linkedCluster ?? "*")
    setGroup(linkedGroup)
    // After the page was scrolled to its top.
    requestAnimationFrame(() => reason.current?.focus())
  }, [linkedCluster, linkedGroup])
  const submit = async (event: Event) => {
    event.preventDefault()
    const body = { cluster, group, hours: Number(hours), why, ...author() }
    if (!(await run("POST", "v3/silences", `${group} is silenced for ${HOURS[hours as keyof typeof HOURS]}`, body)))
      return
    setGroup("")
    setWhy("")
    setParams({ for_cluster: "", for_group: "" })
  }
  return (
    <form class="filters silence" onSubmit={submit} aria-label="Silence groups">
      <Field label="Cluster (* for any)" value={cluster} change={setCluster} maxLength={500} isRequired />
      <Field label="Group (* for any)" value={group} change={setGroup} maxLength={500} isRequired />
      <label>
        <span>For</span>
        <select value={hours} onChange={(event) => setHours(event.currentTarget.value)}>
          {Object.entries(HOURS).map(([count, text]) => (
            <option key={count} value={count}>
              {text}
            </option>
          ))}
        </select>
      </label>
      <Field label="Why" value={why} change={setWhy} maxLength={500} isRequired input={reason} id="silence-why" />
      <NameField />
      <button type="submit">Silence</button>
      <ErrorText text={error} />
    </form>
  )
}

// Silences: which groups nobody hears of, until when and why; begun and ended here.
import { useEffect, useRef, useState } from "preact/hooks"
import { signed, useAct } from "../act"
import type { Silence } from "../api"
import { now, useLive } from "../live"
import { place, wish } from "../route"
import { clock, span } from "../words"
import { Field, NameField, Trouble } from "./field"
import { Card } from "./small"

const HOURS = { "1": "1 hour", "4": "4 hours", "24": "1 day", "168": "1 week" }

export function Silences() {
  const { data } = useLive<{ silences: Silence[] }>("v3/silences")
  const { trouble, act } = useAct()
  const list = useRef<HTMLDivElement>(null)
  const end = async (one: Silence) => {
    const path = `v3/silences/${encodeURIComponent(one.id)}`
    // Its button is gone then, and with it the place of whoever uses the keyboard.
    if (await act("DELETE", path, `The silence of ${one.group} is ended`)) list.current?.focus()
  }
  return (
    <Card title="Silences">
      <div ref={list} tabIndex={-1}>
        {data && data.silences.length > 0 ? (
          <ul class="silences">
            {data.silences.map((one) => (
              <li key={one.id}>
                <div>
                  <b>
                    <bdi>{one.group}</bdi>
                  </b>{" "}
                  <span class="mild">
                    in <bdi>{one.cluster}</bdi>
                  </span>
                  <p>
                    <bdi>{one.why}</bdi>
                  </p>
                  <p class="mild">
                    <bdi>{one.by}</bdi>, until{" "}
                    <time dateTime={new Date(one.until).toISOString()}>{clock(one.until)}</time>,{" "}
                    {span(one.until - now.value)} more
                  </p>
                </div>
                <button type="button" onClick={() => end(one)} aria-label={`End the silence of ${one.group}`}>
                  End
                </button>
              </li>
            ))}
          </ul>
        ) : (
          <p class="empty">{data ? "None: everything is told." : "Loading the silences."}</p>
        )}
      </div>
      <Trouble words={trouble} />
      <SilenceForm />
    </Card>
  )
}

function SilenceForm() {
  const { wishes } = place.value
  const [wantedCluster, wantedGroup] = [wishes.get("for_cluster"), wishes.get("for_group")]
  const [cluster, setCluster] = useState("*")
  // No group is named until somebody does: all of them are silenced only on purpose.
  const [group, setGroup] = useState("")
  const [hours, setHours] = useState("4")
  const [why, setWhy] = useState("")
  const { trouble, act } = useAct()
  const reason = useRef<HTMLInputElement>(null)
  useEffect(() => {
    if (wantedGroup === null) return
    setCluster(wantedCluster ?? "*")
    setGroup(wantedGroup)
    // After the page has been scrolled to its top.
    requestAnimationFrame(() => reason.current?.focus())
  }, [wantedCluster, wantedGroup])
  const submit = async (event: Event) => {
    event.preventDefault()
    const body = { cluster, group, hours: Number(hours), why, ...signed() }
    if (!(await act("POST", "v3/silences", `${group} is silenced for ${HOURS[hours as keyof typeof HOURS]}`, body)))
      return
    setGroup("")
    setWhy("")
    wish({ for_cluster: "", for_group: "" })
  }
  return (
    <form class="filters silence" onSubmit={submit} aria-label="Silence groups">
      <Field label="Cluster (* for any)" value={cluster} change={setCluster} most={500} isNeeded />
      <Field label="Group (* for any)" value={group} change={setGroup} most={500} isNeeded />
      <label>
        <span>For</span>
        <select value={hours} onChange={(event) => setHours(event.currentTarget.value)}>
          {Object.entries(HOURS).map(([count, words]) => (
            <option key={count} value={count}>
              {words}
            </option>
          ))}
        </select>
      </label>
      <Field label="Why" value={why} change={setWhy} most={500} isNeeded input={reason} id="silence-why" />
      <NameField />
      <button type="submit">Silence</button>
      <Trouble words={trouble} />
    </form>
  )
}

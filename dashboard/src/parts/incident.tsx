// An incident's state in people's words, and what they can do about it.
import type { ComponentChildren } from "preact"
import { useEffect, useRef, useState } from "preact/hooks"
import { signed, useAct } from "../act"
import { type Incident, incidentPath } from "../api"
import { groupLink, silenceLink } from "../route"
import { exact } from "../words"
import { Field, NameField, Trouble } from "./field"
import { Since } from "./small"

/** Whose it is, who has it in hand, and whether anybody hears of it. */
export function IncidentState({ incident }: { incident: Incident }) {
  const { team, acknowledged, silenced, closed } = incident
  const isSilent = silenced && !closed
  if (!team && !acknowledged && !isSilent) return null
  return (
    <p class="state">
      {team && (
        <span>
          Team <bdi>{team}</bdi>
        </span>
      )}
      {isSilent && <span class="badge">silenced</span>}
      {acknowledged && (
        <span>
          Acknowledged by <bdi>{acknowledged.by}</bdi> <Since at={acknowledged.time} /> ago
          {acknowledged.why && (
            <>
              : <bdi>{acknowledged.why}</bdi>
            </>
          )}
        </span>
      )}
    </p>
  )
}

export function IncidentActs({ incident, children }: { incident: Incident; children?: ComponentChildren }) {
  const { id, cluster, group, acknowledged, closed } = incident
  const [isAsked, setAsked] = useState(false)
  const { trouble, act } = useAct()
  const box = useRef<HTMLDivElement>(null)
  if (closed) return <div class="acts">{children}</div>
  const path = `${incidentPath(id)}/acknowledge`
  // What was clicked is gone then, and with it the place of whoever uses the keyboard.
  const isDone = () => box.current?.focus()
  const takeBack = async () => {
    if (await act("DELETE", path, `Nobody has ${group} in hand any more`)) isDone()
  }
  const acknowledge = async (why: string) => {
    if (!(await act("POST", path, `${group} is acknowledged`, { why, ...signed() }))) return
    setAsked(false)
    isDone()
  }
  return (
    <div class="acts" ref={box} tabIndex={-1}>
      {acknowledged ? (
        <button type="button" onClick={takeBack} aria-label={`Take back the acknowledgement of ${group}`}>
          Take back
        </button>
      ) : (
        <button
          type="button"
          aria-expanded={isAsked}
          onClick={() => setAsked(!isAsked)}
          aria-label={`Acknowledge ${group}`}
        >
          Acknowledge
        </button>
      )}
      <a
        href={silenceLink(cluster, group)}
        onClick={() => document.getElementById("silence-why")?.focus()}
        aria-label={`Silence… ${group}`}
      >
        Silence…
      </a>
      {children}
      {isAsked && !acknowledged && <Acknowledge send={acknowledge} />}
      <Trouble words={trouble} />
    </div>
  )
}

function Acknowledge({ send }: { send: (why: string) => void }) {
  const [why, setWhy] = useState("")
  const form = useRef<HTMLFormElement>(null)
  useEffect(() => form.current?.querySelector("input")?.focus(), [])
  const submit = (event: Event) => {
    event.preventDefault()
    send(why)
  }
  return (
    <form class="filters" ref={form} onSubmit={submit}>
      <NameField />
      <Field label="What you do about it (if you like)" value={why} change={setWhy} most={500} />
      <button type="submit">I have it in hand</button>
    </form>
  )
}

/** The worst of an incident's partitions. */
export function PartitionsOf({ incident, most }: { incident: Incident; most: number }) {
  const shown = incident.partitions.slice(0, most)
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

// The state of an incident, and the actions on it.
import type { ComponentChildren } from "preact"
import { useEffect, useRef, useState } from "preact/hooks"
import { author, useAction } from "../actions"
import { acknowledgePath } from "../api"
import { exact } from "../format"
import { groupLink, silenceLink } from "../route"
import type { IncidentSummary } from "../schema"
import { Since } from "./common"
import { ErrorText, Field, NameField } from "./field"

/** The team of an incident, its acknowledgement, and whether it is silenced. */
export function IncidentState({ incident }: { incident: IncidentSummary }) {
  const { team, acknowledged, silenced, closed } = incident
  const isSilenced = silenced && !closed
  if (!team && !acknowledged && !isSilenced) return null
  return (
    <p class="state">
      {team && (
        <span>
          Team <bdi>{team}</bdi>
        </span>
      )}
      {isSilenced && <span class="badge">silenced</span>}
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

export function IncidentActions({ incident, children }: { incident: IncidentSummary; children?: ComponentChildren }) {
  const { id, cluster, group, acknowledged, closed } = incident
  const [isFormOpen, setFormOpen] = useState(false)
  const { error, run } = useAction()
  const box = useRef<HTMLDivElement>(null)
  if (closed) return <div class="acts">{children}</div>
  const path = acknowledgePath(id)
  // The clicked button is gone: the keyboard focus stays nearby.
  const keepFocus = () => box.current?.focus()
  const withdraw = async () => {
    if (await run("DELETE", path, `Acknowledgement of ${group} withdrawn`)) keepFocus()
  }
  const acknowledge = async (why: string) => {
    if (!(await run("POST", path, `${group} is acknowledged`, { why, ...author() }))) return
    setFormOpen(false)
    keepFocus()
  }
  return (
    <div class="acts" ref={box} tabIndex={-1}>
      {acknowledged ? (
        <button type="button" onClick={withdraw} aria-label={`Withdraw the acknowledgement of ${group}`}>
          Withdraw
        </button>
      ) : (
        <button
          type="button"
          aria-expanded={isFormOpen}
          onClick={() => setFormOpen(!isFormOpen)}
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
      {isFormOpen && !acknowledged && <AcknowledgeForm send={acknowledge} />}
      <ErrorText text={error} />
    </div>
  )
}

function AcknowledgeForm({ send }: { send: (why: string) => void }) {
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
      <Field label="What you are doing about it (optional)" value={why} change={setWhy} maxLength={500} />
      <button type="submit">Acknowledge incident</button>
    </form>
  )
}

/** The most severe partitions of an incident. */
export function IncidentPartitions({ incident, limit }: { incident: IncidentSummary; limit: number }) {
  const shown = incident.partitions.slice(0, limit)
  return (
    <>
      {exact(incident.partition_count)} {incident.partition_count === 1 ? "partition" : "partitions"}:{" "}
      {shown.map((partition, index) => (
        <span key={`${partition.topic}/${partition.partition}`}>
          {index > 0 && ", "}
          <a
            href={groupLink(incident.cluster, incident.group, {
              partition: `${partition.topic}/${partition.partition}`,
            })}
          >
            <bdi>{partition.topic}</bdi> {partition.partition}
          </a>{" "}
          {partition.status}
        </span>
      ))}
      {incident.partition_count > shown.length && ", …"}
    </>
  )
}

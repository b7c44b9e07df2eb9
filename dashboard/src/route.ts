// Where we are: a place in the hash, so that one page serves all, and every view has a link of its own.
import { signal } from "@preact/signals"

export interface Place {
  page: "overview" | "groups" | "incidents" | "incident" | "group" | "topic" | "nowhere"
  names: string[]
  wishes: URLSearchParams
}

export function placeOf(hash: string): Place {
  const [path = "", query = ""] = hash.replace(/^#\/?/, "").split("?", 2)
  const wishes = new URLSearchParams(query)
  let parts: string[]
  try {
    parts = path.split("/").map(decodeURIComponent)
  } catch {
    return { page: "nowhere", names: [], wishes }
  }
  const [page, ...names] = parts
  if (page === "") return { page: "overview", names: [], wishes }
  if ((page === "groups" || page === "incidents") && names.length === 0) return { page, names, wishes }
  if (page === "incident" && names.length === 1) return { page, names, wishes }
  if ((page === "group" || page === "topic") && names.length === 2) return { page, names, wishes }
  return { page: "nowhere", names: [], wishes }
}

export function hashOf(page: string, names: string[] = [], wishes: Record<string, string> = {}): string {
  const query = new URLSearchParams(Object.entries(wishes).filter(([, value]) => value !== "")).toString()
  return `#/${[page === "overview" ? "" : page, ...names].map(encodeURIComponent).join("/")}${query ? `?${query}` : ""}`
}

export const place = signal(placeOf(location.hash))

addEventListener("hashchange", () => {
  place.value = placeOf(location.hash)
})

/** Another wish for the view we are in; it becomes part of the link, without a step for the back button. */
export function wish(changes: Record<string, string>) {
  const { page, names, wishes } = place.value
  history.replaceState(null, "", hashOf(page, names, { ...Object.fromEntries(wishes), ...changes }))
  place.value = placeOf(location.hash)
}

export const groupLink = (cluster: string, group: string, wishes: Record<string, string> = {}) =>
  hashOf("group", [cluster, group], wishes)
export const topicLink = (cluster: string, topic: string) => hashOf("topic", [cluster, topic])
export const incidentLink = (id: string) => hashOf("incident", [id])

const PATTERN_MOST = 500

/** A name as a pattern that fits it: what cannot be typed becomes "any one", what is too long "any more". */
function patternOf(name: string): string {
  const typed = name.replace(/[\p{Cc}\u2028\u2029]/gu, "?")
  const letters = [...typed]
  return letters.length > PATTERN_MOST ? `${letters.slice(0, PATTERN_MOST - 1).join("")}*` : typed
}

/** To the form in which a group is silenced, filled in; a list that is in sight stays as it is. */
export function silenceLink(cluster: string, group: string): string {
  const { page, wishes } = place.value
  const kept = page === "incidents" ? Object.fromEntries(wishes) : {}
  return hashOf("incidents", [], { ...kept, for_cluster: patternOf(cluster), for_group: patternOf(group) })
}

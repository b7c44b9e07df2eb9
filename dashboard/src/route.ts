// The current view: it is part of the URL's hash, so that one page serves all views and each has a link.
import { signal } from "@preact/signals"

export interface Route {
  page: "overview" | "groups" | "incidents" | "incident" | "group" | "topic" | "notFound"
  names: string[]
  params: URLSearchParams
}

export function parseHash(hash: string): Route {
  const [path = "", query = ""] = hash.replace(/^#\/?/, "").split("?", 2)
  const params = new URLSearchParams(query)
  let parts: string[]
  try {
    parts = path.split("/").map(decodeURIComponent)
  } catch {
    return { page: "notFound", names: [], params }
  }
  const [page, ...names] = parts
  if (page === "") return { page: "overview", names: [], params }
  if ((page === "groups" || page === "incidents") && names.length === 0) return { page, names, params }
  if (page === "incident" && names.length === 1) return { page, names, params }
  if ((page === "group" || page === "topic") && names.length === 2) return { page, names, params }
  return { page: "notFound", names: [], params }
}

export function toHash(page: string, names: string[] = [], params: Record<string, string> = {}): string {
  const query = new URLSearchParams(Object.entries(params).filter(([, value]) => value !== "")).toString()
  return `#/${[page === "overview" ? "" : page, ...names].map(encodeURIComponent).join("/")}${query ? `?${query}` : ""}`
}

export const route = signal(parseHash(location.hash))

addEventListener("hashchange", () => {
  route.value = parseHash(location.hash)
})

/** Changes parameters of the current view; they become part of the link, but not of the browser's history. */
export function setParams(changes: Record<string, string>) {
  const { page, names, params } = route.value
  history.replaceState(null, "", toHash(page, names, { ...Object.fromEntries(params), ...changes }))
  route.value = parseHash(location.hash)
}

export const groupLink = (cluster: string, group: string, params: Record<string, string> = {}) =>
  toHash("group", [cluster, group], params)
export const topicLink = (cluster: string, topic: string) => toHash("topic", [cluster, topic])
export const incidentLink = (id: string) => toHash("incident", [id])

const MAX_PATTERN_CHARS = 500

/** A pattern that matches a name: ? replaces characters that cannot be typed, * the end of a name that is too long. */
function patternOf(name: string): string {
  const typed = name.replace(/[\p{Cc}\u2028\u2029]/gu, "?")
  const letters = [...typed]
  return letters.length > MAX_PATTERN_CHARS ? `${letters.slice(0, MAX_PATTERN_CHARS - 1).join("")}*` : typed
}

/** A link to the form that silences a group, filled in; on the page of incidents its filters are kept. */
export function silenceLink(cluster: string, group: string): string {
  const { page, params } = route.value
  const kept = page === "incidents" ? Object.fromEntries(params) : {}
  return toHash("incidents", [], { ...kept, for_cluster: patternOf(cluster), for_group: patternOf(group) })
}

// Requests to Warren's API. The types of its answers are generated into schema.ts.
import type { Answers } from "./schema"

/** An error that the server answered. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message)
  }
}

/** A path of the API with its names and query filled in; it carries the type of its answer. */
export type Path<A> = string & { answer?: A }

type Params = Record<string, string | number>

/** Fills in a path; relative to the page, so that it works behind a proxy that adds a prefix. */
export function pathTo<P extends keyof Answers>(path: P, names: Params = {}, query: Params = {}): Path<Answers[P]> {
  const filled = path.slice(1).replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(names[name]!))
  const search = new URLSearchParams(Object.entries(query).map(([name, value]) => [name, `${value}`]))
  return search.size ? `${filled}?${search}` : filled
}

export async function getJson<A>(path: Path<A>, signal?: AbortSignal): Promise<A> {
  return parse(await fetch(path, { signal, headers: { Accept: "application/json" } }))
}

export async function send(method: "POST" | "DELETE", path: string, body?: object): Promise<void> {
  const json = body && { body: JSON.stringify(body), headers: { "Content-Type": "application/json" } }
  await parse(await fetch(path, { method, ...json }))
}

async function parse<A>(response: Response): Promise<A> {
  const answer = await response.json().catch(() => null)
  if (!response.ok) throw new ApiError(response.status, answer?.message ?? `the server answered ${response.status}`)
  return answer as A
}

export const acknowledgePath = (incident: string) => `v3/incidents/${encodeURIComponent(incident)}/acknowledge`
export const silencePath = (silence: string) => `v3/silences/${encodeURIComponent(silence)}`

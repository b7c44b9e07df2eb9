// The server's state. It is polled as often as the server judges; the page is updated in place.
import { computed, effect, signal } from "@preact/signals"
import { useEffect, useState } from "preact/hooks"
import { ApiError, getJson, type Path, pathTo } from "./api"
import type { Overview } from "./schema"

const HIDDEN_INTERVAL_MS = 30_000

export const overview = signal<Overview | null>(null)
const pollError = signal<string | null>(null)
/** The server's time, which all ages are relative to; it is updated every second. */
export const now = signal(Date.now())

let clockOffset = 0

function pollIntervalMs(): number {
  const trigger = overview.value?.trigger_ms ?? 2000
  return Math.min(Math.max(trigger / 2, 1000), 10_000)
}

async function poll() {
  try {
    const answer = await getJson(pathTo("/v3/overview"))
    clockOffset = answer.overview.now - Date.now()
    overview.value = answer.overview
    pollError.value = null
  } catch (error) {
    pollError.value =
      error instanceof ApiError ? error.message : "the server does not answer; this page shows its last answer"
  }
  now.value = Date.now() + clockOffset
}

export function startPolling() {
  let timer = 0
  const next = async () => {
    await poll()
    timer = window.setTimeout(next, document.hidden ? HIDDEN_INTERVAL_MS : pollIntervalMs())
  }
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) return
    clearTimeout(timer)
    next()
  })
  setInterval(() => {
    now.value = Date.now() + clockOffset
  }, 1000)
  next()
}

/** Why the page may not show the current state; null if it does. */
export const staleReason = computed(() => pollError.value ?? overview.value?.not_ready ?? null)

const sequence = computed(() => overview.value?.sequence ?? null)
const changeCount = signal(0)

/** Requests everything on the page again, after a change. */
export function refresh() {
  changeCount.value++
}

export interface Result<A> {
  data: A | null
  error: ApiError | null
}

/** The answer of a path, requested again for every snapshot; the old answer stays until the new one is there. */
export function useAnswer<A>(path: Path<A>): Result<A> {
  const [result, setResult] = useState<Result<A> & { path: string }>({ path: "", data: null, error: null })
  useEffect(() => {
    const abort = new AbortController()
    let isRunning = false
    let isOutdated = false
    const request = () => {
      // One request at a time: a slow answer is not requested twice.
      if (isRunning) return
      isRunning = true
      isOutdated = false
      getJson(path, abort.signal)
        .then((data) => setResult({ path, data, error: null }))
        .catch((error) => {
          if (error instanceof ApiError) setResult({ path, data: null, error })
        })
        .finally(() => {
          isRunning = false
          if (isOutdated && !abort.signal.aborted) request()
        })
    }
    request()
    let lastSequence = sequence.peek()
    const stopSnapshots = effect(() => {
      const newest = sequence.value
      // The first sequence arrives while the first request is running.
      if (lastSequence !== null && newest !== lastSequence) request()
      lastSequence = newest
    })
    const initialCount = changeCount.peek()
    const stopChanges = effect(() => {
      if (changeCount.value === initialCount) return
      // The answer of a running request may be from before the change.
      isOutdated = isRunning
      request()
    })
    return () => {
      stopSnapshots()
      stopChanges()
      abort.abort()
    }
  }, [path])
  return result.path === path ? result : { data: null, error: null }
}

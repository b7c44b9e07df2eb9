// What the server knows now. It is asked as often as it judges; what is on the screen changes in place.
import { computed, effect, signal } from "@preact/signals"
import { useEffect, useState } from "preact/hooks"
import { ask, type Overview, Refused } from "./api"

export const overview = signal<Overview | null>(null)
/** Why the last question was not answered. */
export const trouble = signal<string | null>(null)
/** The time on the server, which is what all ages are counted from; it moves once a second. */
export const now = signal(Date.now())

let ahead = 0

function paceMs(): number {
  const trigger = overview.value?.trigger_ms ?? 2000
  return Math.min(Math.max(trigger / 2, 1000), 10_000)
}

async function look() {
  try {
    const { overview: seen } = await ask<{ overview: Overview }>("v3/overview")
    ahead = seen.now - Date.now()
    overview.value = seen
    trouble.value = null
  } catch (error) {
    trouble.value =
      error instanceof Refused ? error.message : "the server does not answer; what you see is what it said last"
  }
  now.value = Date.now() + ahead
}

export function follow() {
  let timer = 0
  const turn = async () => {
    await look()
    timer = window.setTimeout(turn, document.hidden ? 30_000 : paceMs())
  }
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) return
    clearTimeout(timer)
    turn()
  })
  setInterval(() => {
    now.value = Date.now() + ahead
  }, 1000)
  turn()
}

/** Why what is shown may not be how things are; null when it is. */
export const stale = computed(() => trouble.value ?? overview.value?.not_ready ?? null)

const sequence = computed(() => overview.value?.sequence ?? null)
const touched = signal(0)

/** Somebody has changed something: all that is shown is asked for again. */
export function touch() {
  touched.value++
}

export interface Asked<T> {
  data: T | null
  refusal: Refused | null
}

/** What a path answers, asked anew with every snapshot; what was there stays until its successor is. */
export function useLive<T>(path: string): Asked<T> {
  const [asked, setAsked] = useState<Asked<T> & { path: string }>({ path: "", data: null, refusal: null })
  useEffect(() => {
    const stop = new AbortController()
    let isUnderWay = false
    let isOutdated = false
    const look = () => {
      // One question at a time: a slow answer is not asked for twice.
      if (isUnderWay) return
      isUnderWay = true
      isOutdated = false
      ask<T>(path, stop.signal)
        .then((data) => setAsked({ path, data, refusal: null }))
        .catch((error) => {
          if (error instanceof Refused) setAsked({ path, data: null, refusal: error })
        })
        .finally(() => {
          isUnderWay = false
          if (isOutdated && !stop.signal.aborted) look()
        })
    }
    look()
    let known = sequence.peek()
    const dispose = effect(() => {
      const newest = sequence.value
      // The first number comes while the first answer is on its way.
      if (known !== null && newest !== known) look()
      known = newest
    })
    const held = touched.peek()
    const forget = effect(() => {
      if (touched.value === held) return
      // An answer that is under way may be from before the change.
      isOutdated = isUnderWay
      look()
    })
    return () => {
      dispose()
      forget()
      stop.abort()
    }
  }, [path])
  return asked.path === path ? asked : { data: null, refusal: null }
}

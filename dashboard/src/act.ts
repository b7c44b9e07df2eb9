// What people want done: asked of the server, said aloud, and seen at once.
import { signal } from "@preact/signals"
import { useRef, useState } from "preact/hooks"
import { Refused, tell } from "./api"
import { touch } from "./live"

/** What has just been done, for those who do not see it happen. */
export const said = signal("")

let timer = 0

function say(words: string) {
  said.value = words
  clearTimeout(timer)
  timer = window.setTimeout(() => {
    said.value = ""
  }, 8000)
}

function remembered(): string {
  try {
    return localStorage.getItem("warren-name") ?? ""
  } catch {
    return ""
  }
}

/** Who sits here, as they last said. */
export const me = signal(remembered())

export function nameMe(name: string) {
  me.value = name
  try {
    localStorage.setItem("warren-name", name)
  } catch {
    // Then it lasts as long as the page.
  }
}

/** Who sits here, for the server; who has not said so may be known to it. */
export const signed = () => (me.value.trim() ? { by: me.value } : {})

function wordsOf(error: unknown): string {
  if (!(error instanceof Refused)) return "the server does not answer; nothing was changed that we know of"
  return error.status === 401 || error.status === 403 ? "you need the admin role for this" : error.message
}

/** A way to have something done, and why it was not; true when it was. */
export function useAct() {
  const [trouble, setTrouble] = useState("")
  const isUnderWay = useRef(false)
  const act = async (method: "POST" | "DELETE", path: string, done: string, body?: object): Promise<boolean> => {
    if (isUnderWay.current) return false
    isUnderWay.current = true
    try {
      await tell(method, path, body)
    } catch (error) {
      setTrouble(wordsOf(error))
      return false
    } finally {
      isUnderWay.current = false
    }
    setTrouble("")
    say(done)
    touch()
    return true
  }
  return { trouble, act }
}

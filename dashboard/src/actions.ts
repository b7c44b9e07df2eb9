// Changes that the user makes: sent to the server, announced, and shown at once.
import { signal } from "@preact/signals"
import { useRef, useState } from "preact/hooks"
import { ApiError, send } from "./api"
import { refresh } from "./polling"

const ANNOUNCED_MS = 8000

/** The last change, for screen readers and for a short message on the page. */
export const announcement = signal("")

let timer = 0

function announce(text: string) {
  announcement.value = text
  clearTimeout(timer)
  timer = window.setTimeout(() => {
    announcement.value = ""
  }, ANNOUNCED_MS)
}

function storedName(): string {
  try {
    return localStorage.getItem("warren-name") ?? ""
  } catch {
    return ""
  }
}

/** The user's name as last entered. */
export const userName = signal(storedName())

export function setUserName(name: string) {
  userName.value = name
  try {
    localStorage.setItem("warren-name", name)
  } catch {
    // Without storage the name lasts until the page is closed.
  }
}

/** The author of a change; without one the server takes the name of the authenticated user. */
export const author = () => (userName.value.trim() ? { by: userName.value } : {})

function errorText(error: unknown): string {
  if (!(error instanceof ApiError)) return "the server does not answer; the change may not have been made"
  return error.status === 401 ? "you need the admin role for this" : error.message
}

/** A function that sends a change and tells whether it was made, and the error of the last change that was not. */
export function useAction() {
  const [error, setError] = useState("")
  const isRunning = useRef(false)
  const run = async (method: "POST" | "DELETE", path: string, done: string, body?: object): Promise<boolean> => {
    if (isRunning.current) return false
    isRunning.current = true
    try {
      await send(method, path, body)
    } catch (failure) {
      setError(errorText(failure))
      return false
    } finally {
      isRunning.current = false
    }
    setError("")
    announce(done)
    refresh()
    return true
  }
  return { error, run }
}

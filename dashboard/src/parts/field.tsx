// Something to fill in, and why it was not taken.
import type { Ref } from "preact"
import { me, nameMe } from "../act"

export function Field({
  label,
  value,
  change,
  most,
  isNeeded,
  id,
  input,
}: {
  label: string
  value: string
  change: (value: string) => void
  most: number
  isNeeded?: boolean
  id?: string
  input?: Ref<HTMLInputElement>
}) {
  return (
    <label>
      <span>{label}</span>
      <input
        id={id}
        ref={input}
        value={value}
        maxLength={most}
        required={isNeeded}
        onInput={(event) => change(event.currentTarget.value)}
      />
    </label>
  )
}

/** Who sits here. Not needed: who has logged in is known to the server, and else it says so. */
export function NameField() {
  return <Field label="Your name" value={me.value} change={nameMe} most={100} />
}

export function Trouble({ words }: { words: string }) {
  return words ? (
    <p class="trouble" role="alert">
      Not done: {words}
    </p>
  ) : null
}

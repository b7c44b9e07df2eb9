// Fields of forms, and errors.
import type { Ref } from "preact"
import { setUserName, userName } from "../actions"

export function Field({
  label,
  value,
  change,
  maxLength,
  isRequired,
  id,
  input,
}: {
  label: string
  value: string
  change: (value: string) => void
  maxLength: number
  isRequired?: boolean
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
        maxLength={maxLength}
        required={isRequired}
        onInput={(event) => change(event.currentTarget.value)}
      />
    </label>
  )
}

/** The user's name. It is optional here: the server knows who is authenticated, and requires a name otherwise. */
export function NameField() {
  return <Field label="Your name" value={userName.value} change={setUserName} maxLength={100} />
}

export function ErrorText({ text }: { text: string }) {
  return text ? (
    <p class="trouble" role="alert">
      Failed: {text}
    </p>
  ) : null
}
